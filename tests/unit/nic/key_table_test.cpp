// Keys: what is handed out is honored, and nothing else.
#include "nic/soft/key_table.hpp"

#include <array>
#include <limits>
#include <set>

#include <gtest/gtest.h>

namespace weftio::nic {
namespace {

constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();

class KeyTable : public testing::Test {
 protected:
    std::uint32_t add(std::uint64_t device_base, std::uint64_t bytes)
    {
        return keys.add({.cpu = memory.data(), .device_base = device_base, .bytes = bytes, .rights = {}, .owner = 0});
    }

    std::array<std::byte, 4096> memory{};
    key_table keys;
};

TEST_F(KeyTable, FindsWhatWasAddedAndNothingElse)
{
    std::uint32_t key = add(0x10000, 4096);
    ASSERT_NE(keys.find(key), nullptr);
    EXPECT_EQ(keys.find(key)->device_base, 0x10000u);
    for (std::uint32_t other : {0u, 0x100u, key + 1, key + 0x100, key - 0x100, 0xffffffffu})
        EXPECT_EQ(keys.find(other), nullptr) << std::hex << other;
}

TEST_F(KeyTable, NeverHandsOutTheKeyThatEndsAScatterList)
{
    for (int i = 0; i < 100; ++i)
        EXPECT_GE(add(0, 1), 0x1000u);
}

TEST_F(KeyTable, RefusesTheKeyOfARegionThatIsGone)
{
    std::uint32_t key = add(0x10000, 4096);
    keys.remove(key);
    EXPECT_EQ(keys.find(key), nullptr);
    EXPECT_EQ(keys.translate(key, 0x10000, 1), nullptr);
}

TEST_F(KeyTable, RefusesAnOldKeyWhoseIndexIsUsedAgain)
{
    std::uint32_t before = add(0x10000, 4096);
    keys.remove(before);
    std::uint32_t after = add(0x10000, 4096);
    EXPECT_EQ(after >> 8, before >> 8);
    EXPECT_NE(after, before);
    EXPECT_EQ(keys.translate(before, 0x10000, 1), nullptr);
    EXPECT_EQ(keys.translate(after, 0x10000, 1), memory.data());
}

TEST_F(KeyTable, GivesAnIndexTwoHundredAndFiftySixGenerations)
{
    std::set<std::uint32_t> seen;
    for (int generation = 0; generation < 256; ++generation) {
        std::uint32_t key = add(0, 1);
        EXPECT_TRUE(seen.insert(key).second) << generation;
        keys.remove(key);
    }
}

TEST_F(KeyTable, UsesTheIndexAgainLastThatWasFreedLast)
{
    std::uint32_t first = add(0, 1), second = add(0, 1);
    keys.remove(first);
    keys.remove(second);
    EXPECT_EQ(add(0, 1) >> 8, first >> 8);
    EXPECT_EQ(add(0, 1) >> 8, second >> 8);
}

TEST_F(KeyTable, IgnoresTheRemovalOfAKeyThatIsNotThere)
{
    std::uint32_t key = add(0x10000, 4096);
    keys.remove(key + 1);
    keys.remove(0);
    keys.remove(0xffffffffu);
    EXPECT_NE(keys.find(key), nullptr);
    keys.remove(key);
    keys.remove(key);
    EXPECT_NE(add(0, 1), add(0, 1));
}

TEST_F(KeyTable, TranslatesAddressesInsideTheRegionOnly)
{
    std::uint32_t key = add(0x10000, 4096);
    EXPECT_EQ(keys.translate(key, 0x10000, 4096), memory.data());
    EXPECT_EQ(keys.translate(key, 0x10fff, 1), memory.data() + 4095);
    EXPECT_EQ(keys.translate(key, 0x11000, 0), memory.data() + 4096);
    EXPECT_EQ(keys.translate(key, 0xffff, 1), nullptr);
    EXPECT_EQ(keys.translate(key, 0x10000, 4097), nullptr);
    EXPECT_EQ(keys.translate(key, 0x10001, 4096), nullptr);
    EXPECT_EQ(keys.translate(key, 0x11000, 1), nullptr);
    EXPECT_EQ(keys.translate(key, 0x11001, 0), nullptr);
}

TEST_F(KeyTable, IsNotFooledByLengthsThatOverflow)
{
    std::uint32_t key = add(0x10000, 4096), high = add(largest - 4095, 4096);
    EXPECT_EQ(keys.translate(key, 0x10000, largest), nullptr);
    EXPECT_EQ(keys.translate(key, 0x10800, largest - 0x7ff), nullptr);
    EXPECT_EQ(keys.translate(key, largest, 2), nullptr);
    EXPECT_EQ(keys.translate(high, largest, 1), memory.data() + 4095);
    EXPECT_EQ(keys.translate(high, largest, 2), nullptr);
    EXPECT_EQ(keys.translate(high, 0, 1), nullptr);
    EXPECT_EQ(keys.translate(high, largest - 4095, 4096), memory.data());
}

} // namespace
} // namespace weftio::nic
