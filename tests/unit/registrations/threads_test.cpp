// registration_cache in many threads at once, and the searches that take no lock.
#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "pages.hpp"
#include "patience.hpp"
#include "registrations/cache.hpp"
#include "registrations/hit_counter.hpp"
#include "registrations/page_map.hpp"
#include "weftio/error.hpp"

namespace weftio::test {
namespace {

using registrations::node;
using registrations::page_map;
using registrations::range;

range whole(std::uintptr_t first, std::uintptr_t count)
{
    return {first * 4096, (first + count) * 4096};
}

TEST(PageMap, FindsTheNodeOfEachPageAsAModelDoes)
{
    page_map map(12);
    std::mt19937_64 random(1);
    std::map<std::uintptr_t, std::pair<range, std::unique_ptr<node>>> model; // by first byte
    const std::array<std::uintptr_t, 5> places{0, 510, 511 * 512, 512 * 512 - 3, (std::uintptr_t{1} << 45) - 600000};
    const auto at = [&](std::uintptr_t address) -> node* {
        auto behind = model.upper_bound(address);
        return behind != model.begin() && std::prev(behind)->second.first.end > address
                   ? std::prev(behind)->second.second.get()
                   : nullptr;
    };
    for (int step = 0; step < 20000; ++step) {
        const std::uintptr_t first = places[random() % places.size()] + random() % 1500;
        const range pages = whole(first, 1 + random() % (random() % 20 == 0 ? 270000 : 30));
        map.prepare();
        if (const auto behind = model.lower_bound(pages.begin);
            !at(pages.begin) && (behind == model.end() || behind->first >= pages.end)) {
            auto& made = model[pages.begin] = {pages, std::make_unique<node>()};
            map.set(pages, *made.second);
        } else if (behind != model.end()) {
            map.clear(behind->second.first);
            model.erase(behind);
        }
        for (const std::uintptr_t probe : {pages.begin, pages.end - 1, pages.end, pages.begin + pages.bytes() / 2})
            ASSERT_EQ(map.find(probe), at(probe)) << std::hex << probe << " in step " << std::dec << step;
    }
    for (const auto& each : model)
        map.clear(each.second.first);
    EXPECT_EQ(map.tables(), 0u);
}

TEST(HitCounter, LosesNothingOfMoreThreadsThanItHasStripes)
{
    registrations::hit_counter hits;
    for (unsigned round = 1; round <= 3; ++round) { // stripes are used again
        std::vector<std::thread> adders;
        for (unsigned at = 0; at < 24; ++at)
            adders.emplace_back([&] {
                for (unsigned count = 0; count < 5000; ++count)
                    hits.add();
            });
        for (std::thread& each : adders)
            each.join();
        EXPECT_EQ(hits.sum(), round * 24u * 5000);
    }
}

/// What the threads of a test agree on: nobody drops a page that somebody has just got from the same slot.
class Crowd : public testing::Test {
 protected:
    static constexpr unsigned threads = 4, slots = 40;

    void expect_right(const registration& got, const std::byte* address, std::size_t bytes, access rights)
    {
        const auto local = entry_of(null, got.lkey());
        ASSERT_TRUE(local) << "the key of a handle is refused";
        EXPECT_TRUE(local->holds(reinterpret_cast<std::uint64_t>(address), bytes));
        EXPECT_EQ(local->rights & access::remote_write, access::none);
        if ((rights & access::remote_write) != access::none) {
            EXPECT_TRUE(is_exactly(entry_of(null, got.rkey()), address, bytes, rights));
        } else {
            EXPECT_EQ(got.rkey(), 0u);
        }
    }
    void step(std::mt19937& random, std::vector<registration>& held)
    {
        const std::size_t page = random() % slots, length = 1 + random() % (2 * page_bytes);
        std::byte* const address = memory.at(page) + random() % 8 * 16;
        const std::array<access, 3> rights{access::none, access::local_write,
                                           access::local_write | access::remote_write};
        switch (random() % 16) {
            case 0: cache.invalidate(address, length); return;
            case 1: held.clear(); return;
            default: break;
        }
        const std::size_t bytes = random() % 4 == 0 ? length : 64; // so that threads meet
        const access right = rights[random() % rights.size()];
        try {
            held.push_back(cache.get(address, bytes, right));
            expect_right(held.back(), address, bytes, right);
        } catch (const error& full) {
            EXPECT_EQ(full.code(), errc::out_of_memory) << full.what();
            held.clear();
        }
        if (held.size() > 6)
            held.erase(held.begin() + static_cast<std::ptrdiff_t>(random() % held.size()));
    }

    port null = port::open("null");
    keys::key_table& table = core::undying<keys::key_table>();
    const std::uint32_t keys_before = table.in_use();
    const pages memory{slots + 4};
    registration_cache cache{null, {.budget_bytes = 60 * page_bytes}};
};

TEST_F(Crowd, HoldsKeysThatAreRightWhateverTheOthersDo)
{
    std::vector<std::thread> crowd;
    for (unsigned at = 0; at < threads; ++at)
        crowd.emplace_back([this, at] {
            std::mt19937 random(at);
            std::vector<registration> held;
            for (int count = 0; count < 3000 && !HasFailure(); ++count)
                step(random, held);
        });
    for (std::thread& each : crowd)
        each.join();
    const registration_cache_counters end = cache.counters();
    EXPECT_GT(end.evictions, 0u);
    EXPECT_GT(end.hits, 0u);
    EXPECT_LE(end.bytes, 60 * page_bytes);
    cache.invalidate(memory.at(0), (slots + 4) * page_bytes);
    EXPECT_EQ(cache.counters().bytes, 0u);
    EXPECT_EQ(cache.counters().registrations, 0u);
    EXPECT_EQ(table.in_use(), keys_before);
}

TEST_F(Crowd, HitsWhileAnotherThreadHasTheLock)
{
    auto& core = *new registrations::cache({});
    std::promise<void> has_the_lock, may_go_on;
    const range hot{reinterpret_cast<std::uintptr_t>(memory.at(0)), reinterpret_cast<std::uintptr_t>(memory.at(1))};
    const range cold{hot.begin + 4 * page_bytes, hot.end + 4 * page_bytes};
    const std::uintptr_t slow = cold.begin;
    core.register_with([&](memory_region& region) {
        if (region.iova() != slow)
            return;
        has_the_lock.set_value();
        may_go_on.get_future().wait();
    });
    const access peer = access::local_write | access::remote_write;
    node& local = core.get(hot, access::local_write);
    node& remote = core.get(hot, peer);
    std::thread registers([&] { core.get(cold, access::local_write).give_back(); });
    has_the_lock.get_future().wait();
    std::future<bool> hits = std::async(std::launch::async, [&] {
        node& again = core.get(hot, access::local_write);
        again.give_back();
        node& key = core.get(hot, peer);
        key.give_back();
        return &again == &local && &key == &remote;
    });
    EXPECT_EQ(hits.wait_for(patience), std::future_status::ready) << "it waits for the lock";
    may_go_on.set_value();
    EXPECT_TRUE(hits.get());
    registers.join();
    local.give_back();
    remote.give_back();
    core.close();
}

} // namespace
} // namespace weftio::test
