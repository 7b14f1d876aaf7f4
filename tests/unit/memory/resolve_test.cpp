// One set of rules from a key and an address to memory, and everybody who names memory keeps to it: the pieces of
// frames, both ends of a copy, the local pieces of RDMA, and what a peer names.
#include "keys/resolve.hpp"

#include <array>
#include <cstring>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "nic/soft/dma/copy_work.hpp"
#include "nic/soft/rdma/rdma_entry.hpp"
#include "nic/soft/send/ethernet_entry.hpp"
#include "roce/key_memory.hpp"

namespace weftio::test {
namespace {

using keys::key_table;
using keys::nic_keys;
using keys::queue_keys;

constexpr access all_rights = access::local_write | access::remote_write | access::remote_read | access::remote_atomic;

/// Something is named, by one of those who name memory.
struct question {
    const nic_keys& keys;
    protection_domain domain;
    std::uint32_t key;
    std::uint64_t address;
    std::uint32_t bytes;
};
struct answer {
    refusal why = refusal::none;
    std::uint64_t at = 0; ///< address that was found, of the CPU or of the device
};

answer found_at(refusal why, const void* at)
{
    return {why, reinterpret_cast<std::uint64_t>(at)};
}

weftio_wqe_data_segment pointer_to(const question& asked)
{
    return {.byte_count_be = weftio_swap32(asked.bytes),
            .lkey_be = weftio_swap32(asked.key),
            .address_be = weftio_swap64(asked.address)};
}

void put(nic::soft::entry& entry, std::size_t segment, const weftio_wqe_data_segment& data)
{
    std::memcpy(&entry.words[segment * 4], &data, sizeof data);
}

answer by_frame(const question& asked)
{
    nic::soft::entry entry;
    entry.segments = 3;
    put(entry, 2, pointer_to(asked));
    nic::soft::frame_pieces pieces;
    const refusal why = nic::soft::gather(entry, keys::queue_keys(asked.keys, asked.domain), 9000, pieces);
    return found_at(why, why == refusal::none ? pieces.pieces[0].bytes : nullptr);
}

/// The other end of a copy is the same bytes; a fill has none.
answer by_copy(const question& asked, bool source)
{
    nic::soft::entry entry;
    entry.segments = 4;
    put(entry, 2, pointer_to(asked));
    put(entry, 3, pointer_to(asked));
    if (!source)
        entry.words[2 * 4] = weftio_swap32(WEFTIO_INLINE_SEGMENT | 4u);
    const nic::soft::copy_streams none;
    nic::soft::copy_request request;
    const refusal why = nic::soft::read_copy(entry, keys::queue_keys(asked.keys, asked.domain), none, request);
    if (why != refusal::none)
        return {why};
    return found_at(why, source ? static_cast<const void*>(request.from) : request.to);
}
answer by_copy_from(const question& asked)
{
    return by_copy(asked, true);
}
answer by_fill(const question& asked)
{
    return by_copy(asked, false);
}

answer by_local_piece(const question& asked, std::uint32_t opcode)
{
    nic::soft::entry entry;
    const bool atomic = opcode == WEFTIO_OPCODE_FETCH_ADD;
    entry.words[0] = weftio_swap32(opcode);
    entry.words[1] = weftio_swap32(atomic ? 4 : 3);
    put(entry, atomic ? 3 : 2, pointer_to(asked));
    const keys::queue_keys keys(asked.keys, asked.domain);
    nic::soft::entry_control control;
    roce::message message;
    const refusal why = nic::soft::read_message({.words = entry.words.data(), .depth = 1}, 0, 1, rdma_service::reliable,
                                                keys, control, message);
    if (why != refusal::none)
        return found_at(why, nullptr);
    std::byte* at = nullptr;
    const refusal found = find(nic::soft::piece_of(pointer_to(asked)), keys, access::none, at);
    return found_at(found, at); // a message may name memory that copies reach
}
answer by_local_source(const question& asked)
{
    return by_local_piece(asked, WEFTIO_OPCODE_RDMA_WRITE);
}
answer by_local_target(const question& asked)
{
    return by_local_piece(asked, WEFTIO_OPCODE_RDMA_READ);
}

answer by_remote_write(const question& asked)
{
    roce::key_memory memory(asked.keys, {.number = 1, .domain = asked.domain});
    const roce::remote_range range{asked.key, asked.address, asked.bytes};
    const std::vector<std::uint8_t> bytes(asked.bytes, 0xee);
    const refusal why = memory.write(range, bytes);
    EXPECT_EQ(memory.check(range, access::remote_write), why);
    std::byte* at = nullptr;
    if (why == refusal::none) {
        EXPECT_EQ(resolve_for_cpu(asked.keys, {asked.key, asked.address, asked.bytes, access::none, asked.domain}, at),
                  refusal::none);
    }
    if (at) {
        EXPECT_EQ(std::to_integer<int>(at[asked.bytes - 1]), 0xee);
    }
    return found_at(why, at);
}
answer by_remote_read(const question& asked)
{
    roce::key_memory memory(asked.keys, {.number = 1, .domain = asked.domain});
    std::span<const std::uint8_t> bytes;
    const refusal why = memory.read({asked.key, asked.address, asked.bytes}, bytes);
    EXPECT_EQ(bytes.size(), why == refusal::none ? asked.bytes : 0u);
    return found_at(why, bytes.data());
}
answer by_remote_atomic(const question& asked)
{
    roce::key_memory memory(asked.keys, {.number = 1, .domain = asked.domain});
    std::uint64_t* word = nullptr;
    const refusal why = memory.word(asked.key, asked.address, word);
    return found_at(why, word);
}

/// One of those who name memory.
struct user {
    const char* name;
    answer (*ask)(const question&);
    access needs;                           ///< none: every region may be read by its own queues
    refusal lack;                           ///< of that right
    bool by_device;                         ///< memory that the CPU does not see is reached by its device
    std::uint32_t unit = 1;                 ///< bytes of the smallest question
    refusal unseen = refusal::out_of_reach; ///< of memory that the CPU does not see, unless by_device
};

const user users[]{
    {"Frame", by_frame, access::none, refusal::none, true},
    {"CopySource", by_copy_from, access::local_write, refusal::no_local_write, true},
    {"FillTarget", by_fill, access::local_write, refusal::no_local_write, true},
    {"LocalSource", by_local_source, access::none, refusal::none, false},
    {"LocalTarget", by_local_target, access::local_write, refusal::no_local_write, false},
    {"RemoteWrite", by_remote_write, access::remote_write, refusal::no_remote_write, false},
    {"RemoteRead", by_remote_read, access::remote_read, refusal::no_remote_read, false},
    {"RemoteAtomic", by_remote_atomic, access::remote_atomic, refusal::no_remote_atomic, false, 8,
     refusal::staged_atomic},
};

class Resolve : public testing::TestWithParam<user> {
 protected:
    static constexpr std::uint64_t base = 0x5000, size = 104;

    std::uint32_t add(const keys::key_entry& entry)
    {
        const std::uint32_t key = table.add(entry);
        nic.grant(key, true);
        return key;
    }
    keys::key_entry region()
    {
        return {.cpu = bytes.data(), .base = base, .bytes = size, .domain = ours, .rights = all_rights};
    }
    answer ask(std::uint32_t key, std::uint64_t address, std::uint64_t count)
    {
        return GetParam().ask({nic, ours, key, address, static_cast<std::uint32_t>(count)});
    }
    refusal why(std::uint32_t key, std::uint64_t address, std::uint64_t count) { return ask(key, address, count).why; }
    /// What the user names where a test names no range.
    refusal why(std::uint32_t key) { return why(key, base, GetParam().unit); }
    std::uint64_t at(std::uint64_t offset) const { return reinterpret_cast<std::uint64_t>(bytes.data()) + offset; }

    alignas(64) std::array<std::byte, 256> bytes{};
    key_table table;
    nic_keys nic{"a test's", table}, other{"another", table};
    const protection_domain ours = protection_domain::make(), theirs = protection_domain::make();
};

TEST_P(Resolve, FindsTheFirstByteTheLastAndAll)
{
    const std::uint32_t key = add(region()), unit = GetParam().unit;
    for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{8}, size - unit}) {
        const answer found = ask(key, base + offset, unit);
        EXPECT_EQ(found.why, refusal::none) << offset;
        EXPECT_EQ(found.at, at(offset)) << offset;
    }
    if (unit == 1) {
        EXPECT_EQ(ask(key, base, size).at, at(0));
    }
}

TEST_P(Resolve, RefusesWhatDoesNotLieInside)
{
    const std::uint32_t key = add(region()), unit = GetParam().unit;
    for (const std::uint64_t offset : {std::uint64_t(-1), std::uint64_t(-8), size - unit + 1, size, size + 1})
        EXPECT_EQ(why(key, base + offset, unit), refusal::outside_region) << offset;
    EXPECT_EQ(why(key, 0, unit), refusal::outside_region);
    EXPECT_EQ(why(key, std::uint64_t(-8), unit), refusal::outside_region);
    if (unit != 1)
        return;
    for (const auto& [offset, count] : {std::pair{std::uint64_t{0}, size + 1}, {1, size}, {size - 1, 2}, {size, 1}})
        EXPECT_EQ(why(key, base + offset, count), refusal::outside_region) << offset << " " << count;
    EXPECT_EQ(why(key, std::uint64_t(-2), 4), refusal::outside_region) << "around the end of all addresses";
}

TEST_P(Resolve, FindsARegionAtEitherEndOfAllAddresses)
{
    keys::key_entry low = region(), high = region();
    low.base = 0;
    high.base = 0 - size;
    const std::uint32_t first = add(low), last = add(high), unit = GetParam().unit;
    EXPECT_EQ(ask(first, 0, unit).at, at(0));
    EXPECT_EQ(why(first, std::uint64_t(-8), unit), refusal::outside_region);
    EXPECT_EQ(ask(last, std::uint64_t(0) - unit, unit).at, at(size - unit));
    EXPECT_EQ(why(last, std::uint64_t(0) - unit, 2 * unit), unit == 8 ? refusal::none : refusal::outside_region);
    EXPECT_EQ(why(last, 0, unit), refusal::outside_region);
}

TEST_P(Resolve, RefusesAKeyThatIsNone)
{
    const std::uint32_t key = add(region());
    for (const std::uint32_t no_key : {0u, 0x100u, key ^ 1, key + 0x100, key - 0x100, 0xffffffffu})
        EXPECT_EQ(why(no_key), refusal::unknown_key) << std::hex << no_key;
    const std::uint32_t of_another_nic = table.add(region());
    other.grant(of_another_nic, true);
    EXPECT_EQ(why(of_another_nic), refusal::unknown_key);
    ASSERT_TRUE(table.withdraw(key));
    EXPECT_EQ(why(key), refusal::unknown_key);
}

TEST_P(Resolve, RefusesAnotherDomain)
{
    keys::key_entry of_theirs = region(), of_all = region();
    of_theirs.domain = theirs;
    of_all.domain = {};
    EXPECT_EQ(why(add(of_theirs)), refusal::other_domain);
    EXPECT_EQ(why(add(of_all)), refusal::other_domain) << "that of the process is one like others";
}

TEST_P(Resolve, WantsItsOwnRightAndNoOther)
{
    const access each[]{access::none, access::local_write, access::remote_write, access::remote_read,
                        access::remote_atomic};
    for (const access right : each) {
        keys::key_entry only = region(), without = region();
        only.rights = right;
        without.rights = static_cast<access>(static_cast<unsigned>(all_rights) & ~static_cast<unsigned>(right));
        const bool enough = GetParam().needs == access::none || right == GetParam().needs;
        EXPECT_EQ(why(add(only)), enough ? refusal::none : GetParam().lack) << int(right);
        const bool lacks = right != access::none && right == GetParam().needs;
        EXPECT_EQ(why(add(without)), lacks ? GetParam().lack : refusal::none) << int(right);
    }
}

TEST_P(Resolve, ReachesWhatTheCpuDoesNotSeeByItsDevice)
{
    keys::key_entry unmapped = region();
    unmapped.cpu = nullptr;
    unmapped.to_device = 0x7000'0000;
    const std::uint32_t key = add(unmapped), unit = GetParam().unit;
    const answer found = ask(key, base + 8, unit);
    EXPECT_EQ(found.why, GetParam().by_device ? refusal::none : GetParam().unseen);
    if (GetParam().by_device) {
        EXPECT_EQ(found.at, 0x7000'0000 + base + 8);
    }
}

/// Each entry is wrong in everything that comes behind what it is refused for.
TEST_P(Resolve, TellsTheFirstThingThatIsWrong)
{
    const std::uint64_t outside = base + size;
    const std::uint32_t unit = GetParam().unit;
    keys::key_entry wrong = region();
    wrong.cpu = nullptr;
    EXPECT_EQ(why(add(wrong), outside, unit), refusal::outside_region);
    wrong.rights = access::none;
    if (GetParam().needs != access::none) {
        EXPECT_EQ(why(add(wrong), outside, unit), GetParam().lack);
    }
    wrong.domain = theirs;
    EXPECT_EQ(why(add(wrong), outside, unit), refusal::other_domain);
    EXPECT_EQ(why(table.add(wrong), outside, unit), refusal::unknown_key);
}

INSTANTIATE_TEST_SUITE_P(By, Resolve, testing::ValuesIn(users), [](const auto& tested) { return tested.param.name; });

TEST(Located, TellsWhatTheNicsDeviceReadsItself)
{
    key_table table;
    nic_keys nic("a test's", table);
    std::array<std::byte, 16> bytes{};
    for (const bool lent : {false, true}) {
        const std::uint32_t key = table.add({.cpu = bytes.data(), .base = 0, .bytes = bytes.size()});
        nic.grant(key, lent);
        keys::located found;
        EXPECT_EQ(resolve(nic, {.key = key, .address = 0, .bytes = 16}, found), refusal::none);
        EXPECT_EQ(found.lends, lent);
        keys::key_view region;
        EXPECT_EQ(keys::queue_keys(nic, {}).read_lent(key, region), lent);
        EXPECT_FALSE(keys::queue_keys(nic, protection_domain::make()).read_lent(key, region));
    }
}

/// A queue that remembers the region which it found last.
class QueueThatRemembers : public testing::Test {
 protected:
    QueueThatRemembers() { nic.grant(key, true); }
    refusal name(std::uint64_t offset = 0, access needed = access::none)
    {
        return queue.resolve(key, offset, 16, needed, found);
    }
    keys::key_entry region(access rights = access::local_write)
    {
        return {.cpu = bytes.data(), .bytes = bytes.size(), .domain = ours, .rights = rights};
    }

    std::array<std::byte, 64> bytes{}, others{};
    key_table table;
    nic_keys nic{"a test's", table};
    const protection_domain ours = protection_domain::make();
    std::uint32_t key = table.add(region());
    const queue_keys queue{nic, ours};
    keys::located found;
};

TEST_F(QueueThatRemembers, AsksForRangeAndRightsEachTime)
{
    for (int again = 0; again < 2; ++again) {
        EXPECT_EQ(name(16, access::local_write), refusal::none);
        EXPECT_EQ(found.cpu, &bytes[16]);
        EXPECT_EQ(name(49), refusal::outside_region);
        EXPECT_EQ(name(0, access::remote_read), refusal::no_remote_read);
    }
}

TEST_F(QueueThatRemembers, SeesThatTheRegionIsAnotherOne)
{
    ASSERT_EQ(name(), refusal::none);
    keys::key_entry moved = region(access::none);
    moved.cpu = others.data();
    ASSERT_TRUE(table.change(key, moved));
    EXPECT_EQ(name(0, access::local_write), refusal::no_local_write);
    ASSERT_EQ(name(), refusal::none);
    EXPECT_EQ(found.cpu, others.data());
    moved.domain = protection_domain::make();
    ASSERT_TRUE(table.change(key, moved));
    EXPECT_EQ(name(), refusal::other_domain);
}

TEST_F(QueueThatRemembers, SeesThatTheKeyHasGone)
{
    ASSERT_EQ(name(), refusal::none);
    ASSERT_TRUE(table.withdraw(key));
    EXPECT_EQ(name(), refusal::unknown_key);
    nic.forget(key);
    const std::uint32_t before = key;
    key = table.renew(key, region());
    EXPECT_EQ(name(), refusal::unknown_key) << "it was not granted yet";
    nic.grant(key, true);
    EXPECT_EQ(name(), refusal::none);
    key = before;
    EXPECT_EQ(name(), refusal::unknown_key);
}

TEST(Located, ChangesOnSuccessOnly)
{
    key_table table;
    nic_keys nic("a test's", table);
    keys::located found{.device_address = 7, .lends = true};
    EXPECT_EQ(resolve(nic, {.key = 1}, found), refusal::unknown_key);
    EXPECT_EQ(found.device_address, 7u);
    EXPECT_TRUE(found.lends);
}

} // namespace
} // namespace weftio::test
