// Keys: what is handed out is honored, by the NICs that were granted it, and nothing else.
#include "keys/key_table.hpp"

#include <array>
#include <limits>
#include <memory>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "weftio/error.hpp"

namespace weftio::keys {
namespace {

constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();

class KeyTable : public testing::Test {
 protected:
    std::uint32_t add(std::uint64_t device_base, std::uint64_t bytes)
    {
        const std::uint32_t key = table.add({.cpu = memory.data(), .base = device_base, .bytes = bytes});
        keys.grant(key, true);
        return key;
    }
    void remove(std::uint32_t key)
    {
        ASSERT_TRUE(table.withdraw(key));
        keys.forget(key);
        table.release(key);
    }
    std::byte* translate(std::uint32_t key, std::uint64_t address, std::uint64_t bytes) const
    {
        const std::optional<key_view> found = keys.find(key);
        return found && found->entry.holds(address, bytes) ? found->entry.at(address) : nullptr;
    }

    std::array<std::byte, 4096> memory{};
    key_table table{key_table::all_indices, 0}; // an index is used again at once
    nic_keys keys{"one", table};
};

TEST_F(KeyTable, FindsWhatWasAddedAndNothingElse)
{
    std::uint32_t key = add(0x10000, 4096);
    ASSERT_TRUE(keys.find(key));
    EXPECT_EQ(keys.find(key)->entry.base, 0x10000u);
    for (std::uint32_t other : {0u, 0x100u, key + 1, key + 0x100, key - 0x100, 0x00ffff00u, 0xffffffffu})
        EXPECT_FALSE(keys.find(other)) << std::hex << other;
}

TEST_F(KeyTable, NeverHandsOutTheKeyThatEndsAScatterList)
{
    for (int i = 0; i < 100; ++i)
        EXPECT_GE(add(0, 1), 0x1000u);
}

TEST_F(KeyTable, RefusesTheKeyOfARegionThatIsGone)
{
    std::uint32_t key = add(0x10000, 4096);
    remove(key);
    EXPECT_FALSE(keys.find(key));
    EXPECT_EQ(translate(key, 0x10000, 1), nullptr);
}

TEST_F(KeyTable, RefusesAKeyAsSoonAsItIsWithdrawn)
{
    std::uint32_t key = add(0x10000, 4096);
    const std::optional<key_view> before = keys.find(key);
    EXPECT_TRUE(table.withdraw(key));
    EXPECT_FALSE(keys.find(key));
    EXPECT_NE(add(0x20000, 1) >> 8, key >> 8) << "used again before it was released";
    EXPECT_EQ(before->entry.base, 0x10000u) << "who has found it may still be using it";
}

TEST_F(KeyTable, RefusesAnOldKeyWhoseIndexIsUsedAgain)
{
    std::uint32_t before = add(0x10000, 4096);
    remove(before);
    std::uint32_t after = add(0x10000, 4096);
    EXPECT_EQ(after >> 8, before >> 8);
    EXPECT_NE(after, before);
    EXPECT_EQ(translate(before, 0x10000, 1), nullptr);
    EXPECT_EQ(translate(after, 0x10000, 1), memory.data());
}

TEST_F(KeyTable, GivesAnIndexTwoHundredAndFiftySixGenerations)
{
    std::set<std::uint32_t> seen;
    for (int generation = 0; generation < 256; ++generation) {
        std::uint32_t key = add(0, 1);
        EXPECT_TRUE(seen.insert(key).second) << generation;
        remove(key);
    }
    EXPECT_FALSE(seen.insert(add(0, 1)).second) << "the variant comes round, and touches no index beside";
}

TEST_F(KeyTable, UsesTheIndexAgainLastThatWasFreedLast)
{
    std::uint32_t first = add(0, 1), second = add(0, 1);
    remove(first);
    remove(second);
    EXPECT_EQ(add(0, 1) >> 8, first >> 8);
    EXPECT_EQ(add(0, 1) >> 8, second >> 8);
}

TEST_F(KeyTable, LetsAnIndexRest)
{
    key_table resting; // as the process has it
    std::set<std::uint32_t> seen;
    for (std::uint32_t region = 0; region < 2 * key_table::rest_before_reuse; ++region) {
        const std::uint32_t key = resting.add({.cpu = memory.data(), .base = 0, .bytes = 1});
        ASSERT_TRUE(seen.insert(key).second) << region;
        ASSERT_TRUE(resting.withdraw(key));
        resting.release(key);
    }
    std::set<std::uint32_t> indices;
    for (std::uint32_t key : seen)
        indices.insert(key >> 8);
    EXPECT_EQ(indices.size(), key_table::rest_before_reuse + 1);
}

TEST_F(KeyTable, UsesWhatRestsWhenThereIsNothingElse)
{
    key_table small(key_table::first_index + 1);
    const std::uint32_t key = small.add({.cpu = memory.data(), .base = 0, .bytes = 1});
    ASSERT_TRUE(small.withdraw(key));
    small.release(key);
    EXPECT_EQ(small.add({.cpu = memory.data(), .base = 0, .bytes = 1}), key + 1);
}

TEST_F(KeyTable, IgnoresTheRemovalOfAKeyThatIsNotThere)
{
    std::uint32_t key = add(0x10000, 4096);
    for (std::uint32_t other : {key + 1, 0u, 0xffffffffu})
        EXPECT_FALSE(table.withdraw(other)) << std::hex << other;
    EXPECT_TRUE(keys.find(key));
    remove(key);
    EXPECT_FALSE(table.withdraw(key));
    EXPECT_NE(add(0, 1), add(0, 1));
}

TEST_F(KeyTable, MovesNothingAsItGrows)
{
    const std::uint32_t first = add(0x10000, 4096);
    const std::optional<key_view> before = keys.find(first);
    for (std::uint64_t base = 0; base < 5000; ++base)
        ASSERT_EQ(keys.find(add(base, 1))->entry.base, base);
    EXPECT_EQ(keys.find(first), before);
    EXPECT_EQ(before->entry.base, 0x10000u);
}

TEST_F(KeyTable, TellsWhetherWhatWasFoundIsAsItWas)
{
    const std::uint32_t key = add(0x10000, 4096), beside = add(0x20000, 4096);
    const held_key held{key, keys.find(key)->generation}, other{beside, keys.find(beside)->generation};
    EXPECT_TRUE(keys.still(held));
    EXPECT_FALSE(keys.still({key ^ 1, held.generation}));
    EXPECT_FALSE(keys.still({key, held.generation + 2}));
    EXPECT_FALSE(keys.still({}));
    EXPECT_TRUE(table.change(key, {.cpu = memory.data(), .base = 0x30000, .bytes = 100, .rights = access::none}));
    EXPECT_FALSE(keys.still(held));
    EXPECT_TRUE(keys.still(other)) << "of its own generation, and not of others";
    const held_key anew{key, keys.find(key)->generation};
    EXPECT_EQ(keys.find(key)->entry.rights, access::none);
    EXPECT_EQ(translate(key, 0x30000, 100), memory.data());
    EXPECT_EQ(translate(key, 0x10000, 1), nullptr);
    EXPECT_TRUE(keys.still(anew));
    ASSERT_TRUE(table.withdraw(key));
    EXPECT_FALSE(keys.still(anew)) << "before the NIC has forgotten it";
    keys.forget(key);
    table.release(key);
    remove(beside);
    EXPECT_FALSE(keys.still(other));
    EXPECT_FALSE(table.change(beside, {}));
    EXPECT_FALSE(table.change(0, {}));
}

TEST_F(KeyTable, TellsThatAKeyWhoseNumberComesRoundIsAnother)
{
    const std::uint32_t key = add(0x10000, 4096);
    const held_key held{key, keys.find(key)->generation};
    remove(key);
    for (int generation = 1; generation < 256; ++generation)
        remove(add(0, 1));
    ASSERT_EQ(add(0x10000, 4096), key);
    EXPECT_FALSE(keys.still(held));
}

TEST(FullKeyTable, SaysSoAndGoesOnWhenOneIsFree)
{
    constexpr std::uint32_t few = 3000;
    key_table table(key_table::first_index + few);
    std::vector<std::uint32_t> keys;
    while (keys.size() < few)
        keys.push_back(table.add({}));
    EXPECT_EQ(std::set<std::uint32_t>(keys.begin(), keys.end()).size(), few);
    EXPECT_EQ(table.in_use(), few);
    try {
        table.add({});
        ADD_FAILURE() << "one key too many";
    } catch (const error& refused) {
        EXPECT_EQ(refused.code(), errc::out_of_memory);
        EXPECT_STREQ(refused.what(),
                     "weftio: memory_region: all 3000 keys of this process are in use; free regions first");
    }
    EXPECT_EQ(table.in_use(), few);
    table.withdraw(keys[1234]);
    table.release(keys[1234]);
    EXPECT_EQ(table.add({}), keys[1234] + 1);
}

class NicsOfATable : public KeyTable {
 protected:
    nic_keys other{"other", table};
};

TEST_F(NicsOfATable, FindOnlyWhatTheyWereGranted)
{
    const std::uint32_t key = add(0x10000, 4096), shared = add(0x20000, 4096), nobodys = table.add({});
    other.grant(shared, false);
    EXPECT_FALSE(other.find(key));
    EXPECT_FALSE(keys.find(nobodys));
    ASSERT_TRUE(other.find(shared));
    EXPECT_EQ(other.find(shared)->entry, keys.find(shared)->entry);
    EXPECT_TRUE(keys.find(shared)->lends);
    EXPECT_FALSE(other.find(shared)->lends);
}

TEST_F(NicsOfATable, ForgetAKeyEachForItself)
{
    const std::uint32_t shared = add(0x20000, 4096);
    other.grant(shared, true);
    keys.forget(shared);
    EXPECT_FALSE(keys.find(shared));
    EXPECT_TRUE(other.find(shared));
    EXPECT_TRUE(table.withdraw(shared));
    EXPECT_FALSE(other.find(shared));
    other.forget(shared);
    table.release(shared);
    const std::uint32_t next = add(0, 1);
    EXPECT_EQ(next >> 8, shared >> 8);
    EXPECT_FALSE(other.find(next)) << "of the region before";
}

TEST(NicsOfAKeyTable, AreSixtyFour)
{
    key_table table;
    const std::uint32_t key = table.add({});
    std::vector<std::unique_ptr<nic_keys>> nics;
    for (unsigned each = 0; each < 64; ++each) {
        nics.push_back(std::make_unique<nic_keys>("null", table));
        EXPECT_FALSE(nics.back()->find(key)) << each;
        nics.back()->grant(key, each % 2 == 0);
    }
    for (unsigned each = 0; each < 64; ++each) {
        ASSERT_TRUE(nics[each]->find(key)) << each;
        EXPECT_EQ(nics[each]->find(key)->lends, each % 2 == 0) << each;
    }
    try {
        nic_keys("port null", table);
        ADD_FAILURE() << "one NIC too many";
    } catch (const error& refused) {
        EXPECT_EQ(refused.code(), errc::out_of_memory);
        EXPECT_STREQ(refused.what(), "weftio: port null: this process has 64 ports and DMA engines, the maximum; close "
                                     "one first");
    }
    nics[17]->forget(key);
    nics[17].reset();
    nics[17] = std::make_unique<nic_keys>("null", table);
    EXPECT_FALSE(nics[17]->find(key));
    EXPECT_TRUE(nics[63]->find(key));
}

TEST_F(KeyTable, TranslatesAddressesInsideTheRegionOnly)
{
    std::uint32_t key = add(0x10000, 4096);
    EXPECT_EQ(translate(key, 0x10000, 4096), memory.data());
    EXPECT_EQ(translate(key, 0x10fff, 1), memory.data() + 4095);
    EXPECT_EQ(translate(key, 0x11000, 0), memory.data() + 4096);
    EXPECT_EQ(translate(key, 0xffff, 1), nullptr);
    EXPECT_EQ(translate(key, 0x10000, 4097), nullptr);
    EXPECT_EQ(translate(key, 0x10001, 4096), nullptr);
    EXPECT_EQ(translate(key, 0x11000, 1), nullptr);
    EXPECT_EQ(translate(key, 0x11001, 0), nullptr);
}

TEST_F(KeyTable, IsNotFooledByLengthsThatOverflow)
{
    std::uint32_t key = add(0x10000, 4096), high = add(largest - 4095, 4096);
    EXPECT_EQ(translate(key, 0x10000, largest), nullptr);
    EXPECT_EQ(translate(key, 0x10800, largest - 0x7ff), nullptr);
    EXPECT_EQ(translate(key, largest, 2), nullptr);
    EXPECT_EQ(translate(high, largest, 1), memory.data() + 4095);
    EXPECT_EQ(translate(high, largest, 2), nullptr);
    EXPECT_EQ(translate(high, 0, 1), nullptr);
    EXPECT_EQ(translate(high, largest - 4095, 4096), memory.data());
}

} // namespace
} // namespace weftio::keys
