// Keys that come and go while NICs look them up.
#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "keys/key_table.hpp"

namespace weftio::keys {
namespace {

constexpr unsigned places = 32; ///< of keys that come and go

/// A NIC whose turns, and what is done between them, exclude each other.
struct locked_nic {
    explicit locked_nic(key_table& table) : keys("played", table) {}

    nic_keys keys;
    std::mutex turns;
};

/// What an address says of the key's number; every field can be told from it.
key_entry entry_of(std::uint64_t number)
{
    return {.cpu = nullptr, .base = number << 16, .to_device = ~number, .bytes = number + 1};
}

class BusyKeyTable : public testing::Test {
 protected:
    /// Looks for keys that are or have been in use, until the end.
    void look(locked_nic& nic, unsigned seed)
    {
        std::minstd_rand random(seed);
        while (!done.load()) {
            const std::scoped_lock turn(nic.turns);
            for (unsigned at = 0; at < 8; ++at) {
                const std::uint32_t key = known[random() % places].load(std::memory_order_relaxed);
                const std::optional<key_view> found = nic.keys.find(key);
                if (!found)
                    continue;
                found_some.fetch_add(1, std::memory_order_relaxed);
                if (found->entry != entry_of(found->entry.base >> 16))
                    torn.store(true);
            }
        }
    }
    /// Adds keys for some of the NICs, and removes those that it added before.
    void change(unsigned first_place, unsigned rounds)
    {
        std::minstd_rand random(first_place + 1);
        std::array<std::uint32_t, places / 4> mine{};
        for (unsigned round = 0; round < rounds; ++round) {
            const std::size_t at = random() % mine.size();
            if (mine[at] != 0)
                remove(mine[at]);
            mine[at] = table.add(entry_of(round));
            nics[round % nics.size()].keys.grant(mine[at], round % 2 == 0);
            if (round % 3 == 0)
                nics[(round + 1) % nics.size()].keys.grant(mine[at], true);
            known[first_place + at].store(mine[at], std::memory_order_relaxed);
        }
        for (const std::uint32_t key : mine)
            if (key != 0)
                remove(key);
    }
    /// Changes the entry of a key in place, as an engine does in its turn.
    void change_in_place(std::uint32_t key, unsigned rounds)
    {
        for (unsigned round = 0; round < rounds; ++round)
            if (!table.change(key, entry_of(round)))
                torn.store(true);
    }
    void remove(std::uint32_t key)
    {
        if (!table.withdraw(key))
            torn.store(true);
        for (locked_nic& nic : nics) {
            const std::scoped_lock between_turns(nic.turns);
            nic.keys.forget(key);
        }
        table.release(key);
    }

    key_table table{key_table::all_indices, 0}; // an index is used again at once
    std::deque<locked_nic> nics;
    std::array<std::atomic<std::uint32_t>, places> known{};
    std::atomic<std::uint64_t> found_some{0};
    std::atomic<bool> done{false}, torn{false};
};

TEST_F(BusyKeyTable, NeverShowsHalfAnEntry)
{
    for (unsigned each = 0; each < 3; ++each)
        nics.emplace_back(table);
    const std::uint32_t lasting = table.add(entry_of(7));
    nics.front().keys.grant(lasting, true);
    known[places - 1].store(lasting);
    std::vector<std::thread> readers, changers;
    for (unsigned each = 0; each < 3; ++each)
        readers.emplace_back([this, each] { look(nics[each], each); });
    for (unsigned each = 0; each < 3; ++each)
        changers.emplace_back([this, each] { change(each * places / 4, 1000); });
    for (unsigned each = 0; each < 2; ++each)
        changers.emplace_back([this, lasting] { change_in_place(lasting, 20000); });
    for (std::thread& changer : changers)
        changer.join();
    while (found_some.load() == 0) // the lasting one, at least
        std::this_thread::yield();
    done.store(true);
    for (std::thread& reader : readers)
        reader.join();
    EXPECT_FALSE(torn.load());
    EXPECT_EQ(table.in_use(), 1u);
    EXPECT_EQ(nics.front().keys.find(lasting)->entry, entry_of(19999));
}

} // namespace
} // namespace weftio::keys
