// Regions of the key table as a peer may use them. They end at a page that nobody may touch.
#include <cstring>

#include <gtest/gtest.h>

#include "fuzz/guarded.hpp"
#include "roce/key_memory.hpp"

namespace {

using namespace weftio::roce;
using weftio::protection_domain;
using weftio::refusal;
using weftio::fuzz::guarded;
using weftio::keys::key_entry;

constexpr auto all_rights = weftio::access::remote_write | weftio::access::remote_read | weftio::access::remote_atomic;

class RoceKeyMemory : public testing::Test {
 protected:
    /// A region of 100 bytes. @return its key
    std::uint32_t add(weftio::access rights, protection_domain of = {}, bool reachable = true)
    {
        key_entry entry;
        entry.cpu = reachable ? pages.kernel() + guarded::page - 100 : nullptr;
        entry.base = base;
        entry.bytes = 100;
        entry.domain = of;
        entry.rights = rights;
        const std::uint32_t key = table.add(entry);
        keys.grant(key, false);
        return key;
    }

    static constexpr std::uint64_t base = 0x5000;
    guarded pages{guarded::page};
    weftio::keys::key_table table;
    weftio::keys::nic_keys keys{"a test's", table};
    key_memory memory{keys, {}};
    const std::uint8_t* const region = reinterpret_cast<const std::uint8_t*>(pages.kernel()) + guarded::page - 100;
};

TEST_F(RoceKeyMemory, WritesAndReadsToTheLastByte)
{
    const std::uint32_t key = add(all_rights);
    const std::uint8_t bytes[]{1, 2, 3};
    ASSERT_EQ(memory.write({key, base + 97, 3}, bytes), refusal::none);
    EXPECT_EQ(region[97], 1);
    EXPECT_EQ(region[99], 3);
    std::span<const std::uint8_t> found;
    ASSERT_EQ(memory.read({key, base, 100}, found), refusal::none);
    EXPECT_EQ(found.data(), region);
    EXPECT_EQ(found.size(), 100u);
}

TEST_F(RoceKeyMemory, WritesNothingOutside)
{
    const std::uint32_t key = add(all_rights);
    const std::uint8_t bytes[]{1, 2, 3};
    for (const std::uint64_t address : {base - 1, base + 98, base + 100, std::uint64_t(-2), std::uint64_t{0}})
        EXPECT_EQ(memory.write({key, address, 3}, bytes), refusal::outside_region) << address;
    EXPECT_EQ(memory.check({key, base, 101}, weftio::access::remote_write), refusal::outside_region);
    for (std::size_t at = 0; at < 100; ++at)
        EXPECT_EQ(region[at], 0);
}

TEST_F(RoceKeyMemory, GivesEachRightForItself)
{
    const std::uint8_t byte[]{1};
    std::span<const std::uint8_t> found;
    std::uint64_t* word = nullptr;
    for (const weftio::access right :
         {weftio::access::remote_write, weftio::access::remote_read, weftio::access::remote_atomic}) {
        const std::uint32_t key = add(right | weftio::access::local_write);
        const auto expected = [right](weftio::access needed, refusal why) {
            return right == needed ? refusal::none : why;
        };
        EXPECT_EQ(memory.write({key, base, 1}, byte), expected(weftio::access::remote_write, refusal::no_remote_write));
        EXPECT_EQ(memory.read({key, base, 1}, found), expected(weftio::access::remote_read, refusal::no_remote_read));
        EXPECT_EQ(memory.word(key, base + 4, word), expected(weftio::access::remote_atomic, refusal::no_remote_atomic));
    }
}

TEST_F(RoceKeyMemory, FindsWordsWhereTheCpuHasThemAligned)
{
    const std::uint32_t key = add(all_rights); // it begins 4 bytes behind a multiple of 8
    std::uint64_t* word = nullptr;
    EXPECT_EQ(memory.word(key, base + 8, word), refusal::misaligned_word);
    EXPECT_EQ(word, nullptr);
    EXPECT_EQ(memory.word(key, base + 92, word), refusal::none);
    EXPECT_EQ(reinterpret_cast<const std::uint8_t*>(word), region + 92);
    EXPECT_EQ(memory.word(key, base + 96, word), refusal::outside_region);
}

TEST_F(RoceKeyMemory, RefusesOtherDomainsAndRemovedKeys)
{
    const std::uint32_t other = add(all_rights, protection_domain::make());
    EXPECT_EQ(memory.check({other, base, 1}, weftio::access::remote_read), refusal::other_domain);
    const std::uint32_t gone = add(all_rights);
    EXPECT_EQ(memory.check({gone, base, 1}, weftio::access::remote_read), refusal::none);
    table.withdraw(gone);
    EXPECT_EQ(memory.check({gone, base, 1}, weftio::access::remote_read), refusal::unknown_key);
    EXPECT_EQ(memory.may_invalidate(gone), refusal::not_a_window);
    EXPECT_EQ(memory.may_invalidate(other), refusal::not_invalidated);
}

TEST_F(RoceKeyMemory, CannotReachWhatTheCpuCannot)
{
    const std::uint32_t key = add(all_rights, {}, false);
    EXPECT_EQ(memory.check({key, base, 1}, weftio::access::remote_read), refusal::out_of_reach);
}

} // namespace
