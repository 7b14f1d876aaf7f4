// Random steps on a cache in four threads, each of which knows what must be so: which keys live, what every byte is.
// WEFTIO_STEPS: how many steps, of all threads together.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "fleeting_memory.hpp"
#include "pages.hpp"
#include "patience.hpp"
#include "sanitized.hpp"
#include "weftio/error.hpp"
#include "writing_peer.hpp"

namespace weftio::test {
namespace {

constexpr unsigned threads = 4, areas = 6, area_pages = 4;
constexpr access peer_reads = access::local_write | access::remote_read;

std::uint64_t wanted_steps()
{
    const char* const text = std::getenv("WEFTIO_STEPS");
#ifdef WEFTIO_TEST_SANITIZED
    constexpr std::uint64_t usual = 10'000;
#else
    constexpr std::uint64_t usual = 20'000;
#endif
    return text ? std::strtoull(text, nullptr, 10) : usual;
}

/// What all threads share. Areas of different threads are neighbors, so that they share registrations.
struct world {
    explicit world(registration_staleness staleness)
        : watched(staleness == registration_staleness::userfault),
          cache(all.at, {.budget_bytes = 60 * page_bytes, .staleness = staleness})
    {}

    const bool watched;
    peers all;
    std::byte* const base = static_cast<std::byte*>(lonely_address());
    registration_cache cache;
    std::atomic<std::uint64_t> gets{0}, writes{0}, refused{0}, frees{0}, revokes{0}, forks{0}, full{0};
};

/// A remote key, as the thread that asked for it knows it.
struct known_key {
    std::uint32_t rkey;
    std::byte* at;
    std::size_t bytes;
    access rights;
    unsigned handles = 0;
    bool lives = true; ///< a peer may use it
    bool found = true; ///< the next get() returns it
};

struct known_handle {
    registration held;
    std::byte* at;
    std::size_t bytes;
    access rights;
    known_key* key; ///< nullptr: local only
};

class walker {
 public:
    walker(world& in, unsigned number)
        : in_(in), number_(number), random_(number), peer_(in.all), bytes_(areas * area_bytes())
    {
        for (unsigned area = 0; area < areas; ++area)
            map(area, 0, area_pages);
    }
    walker(const walker&) = delete;
    walker& operator=(const walker&) = delete;
    ~walker()
    {
        handles_.clear();
        for (unsigned area = 0; area < areas; ++area) {
            if (!in_.watched)
                in_.cache.invalidate(at(area), area_bytes());
            munmap(at(area), area_bytes());
        }
    }

    void step()
    {
        const unsigned what = number(1000);
        if (what < 380)
            get();
        else if (what < 620)
            write();
        else if (what < 640)
            write_in_vain();
        else if (what < 820)
            drop();
        else if (what < 860)
            free_pages();
        else if (what < 920)
            map_what_is_missing();
        else if (what < 945)
            revoke();
        else if (what < 960)
            invalidate();
        else if (what == 960)
            fork_and_free();
        else
            check_all();
    }
    void check_all()
    {
        for (const known_handle& each : handles_)
            check(each);
        for (unsigned area = 0; area < areas; ++area)
            check_bytes(area);
    }

 private:
    static std::size_t area_bytes() { return area_pages * page_bytes; }
    unsigned number(unsigned below) { return static_cast<unsigned>(random_() % below); }
    std::byte* at(unsigned area) const { return in_.base + (area * threads + number_) * area_bytes(); }
    std::uint8_t* expected(const std::byte* at) { return &bytes_[index_of(at)]; }
    /// Of a byte of this thread, in bytes_.
    std::size_t index_of(const std::byte* byte) const
    {
        const auto offset = static_cast<std::size_t>(byte - in_.base);
        return offset / (threads * area_bytes()) * area_bytes() + offset % area_bytes();
    }
    unsigned area_of(const std::byte* byte) const { return static_cast<unsigned>(index_of(byte) / area_bytes()); }
    bool is_mapped(const std::byte* from, std::size_t bytes) const
    {
        const std::size_t first = index_of(from);
        for (std::size_t page = first / page_bytes; page <= (first + bytes - 1) / page_bytes; ++page)
            if (!mapped_[page])
                return false;
        return true;
    }

    void map(unsigned area, unsigned first, unsigned count)
    {
        std::byte* const from = at(area) + first * page_bytes;
        ASSERT_EQ(mmap(from, count * page_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
                  from);
        std::memset(from, 0x5a, count * page_bytes);
        std::memset(expected(from), 0x5a, count * page_bytes);
        std::fill_n(mapped_.begin() + area * area_pages + first, count, true);
    }
    /// Of some usual bytes, so that keys are shared and hits occur, or of any.
    std::pair<std::byte*, std::size_t> any_bytes()
    {
        std::byte* const area = at(number(areas));
        if (number(3) != 0)
            return {area + number(4) * page_bytes / 2 + 64, 1000 + number(2) * page_bytes};
        const std::size_t from = number(static_cast<unsigned>(area_bytes()));
        return {area + from, 1 + number(static_cast<unsigned>(area_bytes() - from))};
    }

    void get()
    {
        const auto [from, bytes] = any_bytes();
        const std::array rights{access::local_write, peer_writes, peer_writes, peer_reads};
        const access right = rights[number(rights.size())];
        ++in_.gets;
        try {
            registration held = in_.cache.get(from, bytes, right);
            ASSERT_TRUE(is_mapped(from, bytes)) << "bytes that are not mapped";
            known_key* const key = right == access::local_write ? nullptr : know(held.rkey(), from, bytes, right);
            handles_.push_back({std::move(held), from, bytes, right, key});
            check(handles_.back());
        } catch (const error& refused) {
            if (refused.code() == errc::out_of_memory) {
                ++in_.full;
                while (!handles_.empty())
                    drop();
            } else {
                ASSERT_EQ(refused.code(), errc::not_reachable) << refused.what();
                ASSERT_FALSE(is_mapped(from, bytes)) << refused.what();
            }
        }
        if (handles_.size() > 12)
            drop();
    }
    /// The key is the one that the others with these bytes and rights have, or a new one.
    known_key* know(std::uint32_t rkey, std::byte* from, std::size_t bytes, access rights)
    {
        for (known_key& each : keys_) {
            const bool same = each.at == from && each.bytes == bytes && each.rights == rights && each.found;
            EXPECT_EQ(each.rkey == rkey, same) << "a key that is stale, or of other bytes";
            if (same) {
                ++each.handles;
                return &each;
            }
        }
        return &keys_.emplace_back(known_key{rkey, from, bytes, rights, 1});
    }
    void check(const known_handle& each)
    {
        const auto local = entry_of(in_.all.at, each.held.lkey());
        ASSERT_TRUE(local) << "the local key of a handle is refused";
        EXPECT_TRUE(local->holds(reinterpret_cast<std::uint64_t>(each.at), each.bytes));
        EXPECT_EQ(local->rights, access::local_write);
        if (!each.key)
            return;
        const auto remote = entry_of(in_.all.at, each.held.rkey());
        EXPECT_EQ(remote.has_value(), each.key->lives);
        if (remote) {
            EXPECT_TRUE(is_exactly(remote, each.at, each.bytes, each.rights));
        }
    }
    void check_bytes(unsigned area)
    {
        for (unsigned page = 0; page < area_pages; ++page)
            if (const std::byte* const from = at(area) + page * page_bytes; is_mapped(from, 1)) {
                ASSERT_EQ(std::memcmp(from, expected(from), page_bytes), 0) << "a byte that nobody may write";
            }
    }
    void drop()
    {
        if (handles_.empty())
            return;
        const auto which = handles_.begin() + number(static_cast<unsigned>(handles_.size()));
        if (known_key* const key = which->key; key && --key->handles == 0) {
            if (key->lives)
                remember_dead(*key);
            keys_.remove_if([&](const known_key& each) { return &each == key; });
        }
        handles_.erase(which);
    }

    known_handle* any_with_key(bool lives)
    {
        std::vector<known_handle*> some;
        for (known_handle& each : handles_)
            if (each.key && each.key->lives == lives && (each.rights & access::remote_write) != access::none)
                some.push_back(&each);
        return some.empty() ? nullptr : some[number(static_cast<unsigned>(some.size()))];
    }
    /// Writes to bytes of the handle, and returns which; the peer may not have done it yet.
    std::pair<std::byte*, std::size_t> post(const known_handle& to)
    {
        const std::size_t bytes = 1 + number(static_cast<unsigned>(std::min<std::size_t>(to.bytes, 4096)));
        std::byte* const from = to.at + number(static_cast<unsigned>(to.bytes - bytes + 1));
        peer_.write(from, to.held.rkey(), bytes);
        return {from, bytes};
    }
    void write()
    {
        const known_handle* const to = any_with_key(true);
        if (!to)
            return;
        ++in_.writes;
        const auto [from, bytes] = post(*to);
        ASSERT_TRUE(peer_.settle()) << "a key that lives is refused";
        std::memcpy(expected(from), in_.all.source.data(), bytes);
        check_bytes(area_of(from));
    }
    /// By a key that is dead, or has not the right, or one byte beyond a key.
    void write_in_vain()
    {
        std::byte* where = at(0);
        std::uint32_t rkey = 0;
        const known_handle* const lives = any_with_key(true);
        const known_handle* const revoked = any_with_key(false);
        const auto reads = std::ranges::find(handles_, peer_reads, &known_handle::rights);
        const unsigned way = number(4);
        if (way == 0 && lives) {
            where = lives->at + lives->bytes - written_bytes + 1 + number(written_bytes);
            rkey = lives->held.rkey();
        } else if (way == 1 && revoked) {
            where = revoked->at;
            rkey = revoked->held.rkey();
        } else if (way == 2 && reads != handles_.end()) {
            where = reads->at;
            rkey = reads->held.rkey();
        } else if (!dead_.empty()) {
            std::tie(where, rkey) = dead_[number(static_cast<unsigned>(dead_.size()))];
        } else {
            return;
        }
        ++in_.refused;
        peer_.write(where, rkey);
        ASSERT_FALSE(peer_.settle()) << "a peer has written by a key that does not live";
        for (unsigned area = 0; area < areas; ++area)
            check_bytes(area);
    }
    void remember_dead(const known_key& key)
    {
        dead_.emplace_back(key.at, key.rkey);
        if (dead_.size() > 4)
            dead_.pop_front();
    }
    /// Keys of these bytes die; bytes that the peer may have written meanwhile are what they are.
    std::vector<const known_key*> kill(const std::byte* from, std::size_t bytes)
    {
        std::vector<const known_key*> killed;
        for (known_key& each : keys_)
            if (each.at < from + bytes && from < each.at + each.bytes) {
                if (each.lives) {
                    remember_dead(each);
                    killed.push_back(&each);
                }
                each.lives = each.found = false;
            }
        return killed;
    }
    /// Writes that are under way when something happens to the key.
    std::optional<std::byte*> write_without_waiting()
    {
        const known_handle* const to = any_with_key(true);
        if (!to || number(2) == 0)
            return std::nullopt;
        for (unsigned each = 0; each < 4; ++each)
            post(*to);
        return to->at;
    }
    void settle(const std::optional<std::byte*>& written)
    {
        if (!written)
            return;
        (void)peer_.settle();
        const unsigned area = area_of(*written); // now its bytes are what they are
        for (unsigned page = 0; page < area_pages; ++page)
            if (const std::byte* const from = at(area) + page * page_bytes; is_mapped(from, 1))
                std::memcpy(expected(from), from, page_bytes);
    }

    void free_pages()
    {
        const unsigned area = number(areas), first = number(area_pages), count = 1 + number(area_pages - first);
        std::byte* const from = at(area) + first * page_bytes;
        const std::size_t bytes = count * page_bytes;
        ++in_.frees;
        const auto written = write_without_waiting();
        if (!in_.watched)
            in_.cache.revoke(from, bytes);
        ASSERT_EQ(munmap(from, bytes), 0);
        const auto killed = kill(from, bytes);
        std::fill_n(mapped_.begin() + area * area_pages + first, count, false);
        const bool again = number(2) == 0;
        if (again) // at once: no get() may find the old registration, no byte of the peer may come once it is handled
            map(area, first, count);
        for (const known_key* each : killed)
            ASSERT_TRUE(eventually([&] { return !entry_of(in_.all.at, each->rkey); }));
        if (in_.watched && !killed.empty())
            software_nic(in_.all.at).engines().between_all_turns([] {});
        if (again && in_.watched)
            std::memset(from, 0x5a, bytes);
        if (written && area_of(*written) != area)
            return settle(written);
        if (written)
            (void)peer_.settle();
        if (again) {
            ASSERT_TRUE(std::all_of(from, from + bytes, [](std::byte byte) { return byte == std::byte{0x5a}; }))
                << "a peer has written into what is mapped at the address of its old memory";
        }
        settle(written);
    }
    void map_what_is_missing()
    {
        const unsigned area = number(areas);
        for (unsigned page = 0; page < area_pages; ++page)
            if (!mapped_[area * area_pages + page])
                map(area, page, 1);
    }
    void revoke()
    {
        const auto [from, bytes] = any_bytes();
        const auto written = write_without_waiting();
        ++in_.revokes;
        const std::size_t count = in_.cache.revoke(from, bytes);
        EXPECT_LE(count, kill(from, bytes).size()); // a monitor may have been faster
        for (const known_handle& each : handles_)
            check(each);
        settle(written);
    }
    void invalidate()
    {
        const auto [from, bytes] = any_bytes();
        in_.cache.invalidate(from, bytes);
        for (known_key& each : keys_)
            if (each.at < from + bytes && from < each.at + each.bytes)
                each.found = false;
    }
    /// What a child unmaps is the parent's still.
    void fork_and_free()
    {
        ++in_.forks;
        const pid_t child = fork();
        if (child == 0)
            _exit(munmap(at(0), area_bytes()) == 0 ? 0 : 1);
        int status = -1;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_EQ(status, 0);
        check_all();
    }

    world& in_;
    const unsigned number_;
    std::mt19937 random_;
    writing_peer peer_;
    std::vector<std::uint8_t> bytes_; ///< what the areas contain
    std::vector<bool> mapped_ = std::vector<bool>(areas * area_pages);
    std::list<known_key> keys_; ///< that handles have
    std::vector<known_handle> handles_;
    std::deque<std::pair<std::byte*, std::uint32_t>> dead_;
};

class CacheModel : public testing::TestWithParam<registration_staleness> {};

TEST_P(CacheModel, HoldsForRandomStepsOnFourThreads)
{
    keys::key_table& table = core::undying<keys::key_table>();
    std::unique_ptr<world> in;
    try {
        in = std::make_unique<world>(GetParam());
    } catch (const error& refused) {
        GTEST_SKIP() << refused.what();
    }
    const std::uint32_t keys_before = table.in_use();
    const std::uint64_t steps = wanted_steps() / threads;
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> all;
    for (unsigned thread = 0; thread < threads; ++thread)
        all.emplace_back([&, thread] {
            walker walks(*in, thread);
            for (std::uint64_t step = 0; step < steps && !HasFailure(); ++step)
                walks.step();
            walks.check_all();
        });
    for (std::thread& each : all)
        each.join();
    in->cache.invalidate(in->base, threads * areas * area_pages * page_bytes);
    EXPECT_TRUE(eventually([&] { return table.in_use() == keys_before; })); // a monitor may be about to end some
    EXPECT_TRUE(eventually([&] { return in->cache.counters().registrations == 0; }));
    const registration_cache_counters end = in->cache.counters();
    EXPECT_EQ(end.bytes, 0u);
    EXPECT_GT(end.evictions, 0u);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::printf(
        "%lu steps in %.1f s: %lu gets (%lu refused for the budget), %lu writes, %lu refused ones, %lu frees, %lu "
        "revokes, %lu forks; %lu hits, %lu misses, %lu remote keys, %lu evictions, %lu invalidations, %lu "
        "revocations\n",
        steps * threads, took.count(), in->gets.load(), in->full.load(), in->writes.load(), in->refused.load(),
        in->frees.load(), in->revokes.load(), in->forks.load(), end.hits, end.misses, end.remote_keys, end.evictions,
        end.invalidations, end.revocations);
}
INSTANTIATE_TEST_SUITE_P(Monitors, CacheModel,
                         testing::Values(registration_staleness::close_first, registration_staleness::userfault),
                         [](const auto& info) {
                             return info.param == registration_staleness::close_first ? "CloseFirst" : "Userfault";
                         });

} // namespace
} // namespace weftio::test
