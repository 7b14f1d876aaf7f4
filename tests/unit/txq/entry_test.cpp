// Entries as the engine reads them: what is taken, what is refused, and that nothing in them is trusted.
#include "nic/soft/send/ethernet_entry.hpp"

#include <cstring>
#include <numeric>
#include <random>

#include "keys/queue_keys.hpp"
#include "sending_port.hpp"

namespace weftio::test {
namespace {

constexpr std::uint32_t depth = 64, queue = 0x123456, mtu = 1500;
constexpr std::uint64_t device_base = 0x7000'0000'0000;

class Entry : public testing::Test {
 protected:
    Entry() : memory(4096), words(depth * 16)
    {
        std::iota(memory.begin(), memory.end(), std::uint8_t{0});
        key = table.add(
            {.cpu = reinterpret_cast<std::byte*>(memory.data()), .base = device_base, .bytes = memory.size()});
        keys.grant(key, true);
    }

    void write(std::uint32_t index, entry_words entry)
    {
        entry[0][0] |= weftio_swap32((index & 0xffff) << 8);
        entry[0][1] |= weftio_swap32(queue << 8);
        for (std::size_t word = 0; word < entry.size() * 4; ++word)
            words[(index * 16 + word) % words.size()] = entry[word / 4][word % 4];
    }
    refusal fetch(std::uint32_t index, std::uint32_t available = 16)
    {
        return nic::soft::fetch({words.data(), depth, queue}, index, available, entry);
    }
    refusal gather() { return nic::soft::gather(entry, {keys, {}}, mtu, pieces); }
    refusal take(entry_words written)
    {
        write(0, std::move(written));
        refusal reason = fetch(0);
        return reason == refusal::none ? gather() : reason;
    }
    bytes gathered() const
    {
        bytes frame;
        for (std::uint32_t piece = 0; piece < pieces.count; ++piece) {
            auto* first = reinterpret_cast<const std::uint8_t*>(pieces.pieces[piece].bytes);
            frame.insert(frame.end(), first, first + pieces.pieces[piece].count);
        }
        return frame;
    }
    entry_words memory_part(std::uint64_t offset, std::uint32_t count) const
    {
        return {pointer(count, key, device_base + offset)};
    }
    bytes memory_bytes(std::size_t offset, std::size_t count) const
    {
        return {memory.begin() + static_cast<std::ptrdiff_t>(offset),
                memory.begin() + static_cast<std::ptrdiff_t>(offset + count)};
    }

    bytes memory;
    std::vector<std::uint32_t> words;
    keys::key_table table;
    keys::nic_keys keys{"a test's", table};
    std::uint32_t key = 0;
    nic::soft::entry entry;
    nic::soft::frame_pieces pieces;
};

TEST_F(Entry, TakesAFrameOfOnePointerSegment)
{
    ASSERT_EQ(take(send_entry({ethernet_segments(), memory_part(100, 1000)})), refusal::none);
    EXPECT_EQ(entry.blocks(), 1u);
    EXPECT_FALSE(entry.event);
    EXPECT_FALSE(pieces.must_be_copied);
    EXPECT_EQ(pieces.bytes, 1000u);
    EXPECT_EQ(gathered(), memory_bytes(100, 1000));
}

TEST_F(Entry, TellsThatTheHostWantsToKnow)
{
    ASSERT_EQ(take(send_entry({ethernet_segments(), memory_part(0, 64)}, WEFTIO_CE_ALWAYS_AND_EVENT)), refusal::none);
    EXPECT_TRUE(entry.event);
}

TEST_F(Entry, TakesInlineHeadersOfAnySize)
{
    for (std::uint32_t size = 1; size <= 900; ++size) {
        bytes header = memory_bytes(7, size), expected = header;
        frames::append(expected, memory_bytes(3000, 20));
        ASSERT_EQ(take(send_entry({ethernet_segments(header), memory_part(3000, 20)})), refusal::none) << size;
        ASSERT_EQ(gathered(), expected) << size;
        ASSERT_EQ(take(send_entry({ethernet_segments(header)})), refusal::none) << size;
        ASSERT_EQ(gathered(), header) << size;
    }
}

TEST_F(Entry, TakesInlineSegmentsOfAnySize)
{
    for (std::uint32_t size = 1; size <= 900; ++size) {
        ASSERT_EQ(take(send_entry({ethernet_segments(), inline_data(memory_bytes(1, size))})), refusal::none) << size;
        ASSERT_EQ(gathered(), memory_bytes(1, size)) << size;
        ASSERT_TRUE(pieces.must_be_copied);
    }
}

TEST_F(Entry, TakesPiecesOfAllKindsInTheirOrder)
{
    bytes header = memory_bytes(50, 18), middle = memory_bytes(2000, 33), expected = header;
    for (const bytes& part : {memory_bytes(0, 700), middle, memory_bytes(4095, 1), memory_bytes(9, 5)})
        frames::append(expected, part);
    ASSERT_EQ(take(send_entry({ethernet_segments(header), memory_part(0, 700), inline_data(middle),
                               memory_part(4095, 1), memory_part(9, 5)})),
              refusal::none);
    EXPECT_EQ(gathered(), expected);
    EXPECT_EQ(pieces.count, 5u);
}

TEST_F(Entry, TakesTheMostSegmentsThereAre)
{
    entry_words many(61, memory_part(0, 1)[0]);
    ASSERT_EQ(take(send_entry({ethernet_segments(), many})), refusal::none);
    EXPECT_EQ(entry.blocks(), 16u);
    EXPECT_EQ(pieces.bytes, 61u);
    many.push_back(many[0]);
    EXPECT_EQ(take(send_entry({ethernet_segments(), many})), refusal::wrong_size);
}

TEST_F(Entry, ContinuesRoundTheEndOfTheRing)
{
    bytes header = memory_bytes(0, 300);
    for (std::uint32_t index : {63u, 60u, 0xffffu, 0xfffffffeu}) {
        write(index, send_entry({ethernet_segments(header), memory_part(17, 400)}));
        ASSERT_EQ(fetch(index), refusal::none) << index;
        ASSERT_EQ(gather(), refusal::none) << index;
        bytes expected = header;
        frames::append(expected, memory_bytes(17, 400));
        EXPECT_EQ(gathered(), expected) << index;
    }
}

TEST_F(Entry, TakesNoOperationsOfOneAndMoreSegments)
{
    for (std::uint32_t segments : {1u, 2u, 4u, 5u}) {
        entry_words nop(segments);
        nop[0] = control(WEFTIO_OPCODE_NOP, segments);
        write(0, nop);
        ASSERT_EQ(fetch(0), refusal::none);
        EXPECT_EQ(entry.opcode, WEFTIO_OPCODE_NOP);
        EXPECT_EQ(entry.blocks(), segments > 4 ? 2u : 1u);
    }
}

TEST_F(Entry, ReadsAWait)
{
    write(0, wait_entry(weftio_real_time_from_ns(1'700'000'000'999'999'999)));
    ASSERT_EQ(fetch(0), refusal::none);
    std::uint64_t deadline_ns = 0;
    EXPECT_EQ(nic::soft::read_wait(entry, deadline_ns), refusal::none);
    EXPECT_EQ(deadline_ns, 1'700'000'000'999'999'999u);
}

TEST_F(Entry, RefusesAWaitThatCannotBe)
{
    std::uint64_t deadline_ns = 0;
    for (std::uint32_t condition : {0u, 1u, 2u, 3u, 4u, 6u, 0x15u}) {
        write(0, wait_entry(weftio_real_time_from_ns(5), condition));
        ASSERT_EQ(fetch(0), refusal::none);
        EXPECT_EQ(nic::soft::read_wait(entry, deadline_ns), refusal::wrong_wait) << condition;
    }
    for (std::uint32_t ns : {1'000'000'000u, 0xffffffffu}) {
        write(0, wait_entry(std::uint64_t{7} << 32 | ns));
        ASSERT_EQ(fetch(0), refusal::none);
        EXPECT_EQ(nic::soft::read_wait(entry, deadline_ns), refusal::wrong_wait) << ns;
    }
}

TEST_F(Entry, TakesTwoToThe31BytesForACountOfZero)
{
    EXPECT_EQ(take(send_entry({ethernet_segments(), memory_part(0, 0)})), refusal::outside_region);
    // A region larger than its memory, which is never touched.
    std::uint32_t huge = table.add(
        {.cpu = reinterpret_cast<std::byte*>(memory.data()), .base = 0x1000, .bytes = std::uint64_t{1} << 32});
    keys.grant(huge, true);
    EXPECT_EQ(take(send_entry({ethernet_segments(), {pointer(0, huge, 0x1000)}})), refusal::frame_too_long);
    EXPECT_EQ(take(send_entry({ethernet_segments(), {pointer(0x7fffffff, huge, 0x1000)}})), refusal::frame_too_long);
}

TEST_F(Entry, KnowsHowLongATaggedFrameMayBe)
{
    auto longest = [&](std::uint16_t first, std::uint16_t second, std::uint32_t size) {
        frames::set(memory, 12, first);
        frames::set(memory, 16, second);
        bytes head = memory_bytes(0, 15); // the type lies in two pieces
        return take(send_entry({ethernet_segments(head), memory_part(15, 10), memory_part(25, size - 25)}));
    };
    EXPECT_EQ(longest(0x0800, 0x8100, 1514), refusal::none);
    EXPECT_EQ(longest(0x0800, 0x8100, 1515), refusal::frame_too_long);
    EXPECT_EQ(longest(0x8100, 0x0800, 1518), refusal::none);
    EXPECT_EQ(longest(0x8100, 0x0800, 1519), refusal::frame_too_long);
    EXPECT_EQ(longest(0x88a8, 0x8100, 1522), refusal::none);
    EXPECT_EQ(longest(0x88a8, 0x8100, 1523), refusal::frame_too_long);
    EXPECT_EQ(longest(0x9100, 0x0800, 1518), refusal::none);
    EXPECT_EQ(longest(0x9100, 0x9100, 1522), refusal::none);
    EXPECT_EQ(longest(0x9100, 0x9100, 1523), refusal::frame_too_long);
}

TEST_F(Entry, IsRefusedWhenItsSegmentsDoNotAddUp)
{
    entry_words inline_too_long = send_entry({ethernet_segments(), inline_data(memory_bytes(0, 28))});
    inline_too_long[2][0] = weftio_swap32(WEFTIO_INLINE_SEGMENT | 29);
    EXPECT_EQ(take(inline_too_long), refusal::wrong_size);
    entry_words header_too_long = send_entry({ethernet_segments(memory_bytes(0, 18))});
    header_too_long[1][3] = weftio_swap32(19 << 16);
    EXPECT_EQ(take(header_too_long), refusal::wrong_size);
    entry_words inserts_vlan = send_entry({ethernet_segments(), memory_part(0, 64)});
    inserts_vlan[1][3] = weftio_swap32(0x80000005);
    EXPECT_EQ(take(inserts_vlan), refusal::wrong_segment);
    EXPECT_EQ(take({control(WEFTIO_OPCODE_SEND, 1)}), refusal::wrong_size);
    EXPECT_EQ(take({control(WEFTIO_OPCODE_SEND, 0)}), refusal::wrong_size);
    EXPECT_EQ(take(send_entry({ethernet_segments()})), refusal::no_payload);
    EXPECT_EQ(take(send_entry({ethernet_segments(), inline_data({})})), refusal::no_payload);
}

TEST_F(Entry, OfAnyBitsIsReadWithinItsBoundsAndCopiedOnce)
{
    std::mt19937 generator(11);
    auto random = [&] { return static_cast<std::uint32_t>(generator()); };
    std::array<std::uint32_t, 6> opcodes{0x0a, 0x0a, 0x0a, 0x0200000f, 0, 0x0e};
    std::uint32_t accepted = 0;
    for (int round = 0; round < 20000; ++round) {
        for (std::size_t at = 0; at < words.size(); ++at)
            words[at] = random() % 4 == 0 ? weftio_swap32(WEFTIO_INLINE_SEGMENT | random() % 200) : random();
        std::uint32_t index = random();
        std::uint32_t* head = &words[index % depth * 16];
        head[0] = weftio_swap32(opcodes[random() % opcodes.size()] | (index & 0xffff) << 8);
        head[1] = weftio_swap32(queue << 8 | random() % 64);
        head[4 + 3] = weftio_swap32(random() % 100 << 16);
        if (fetch(index, 1 + random() % 16) != refusal::none || entry.opcode != WEFTIO_OPCODE_SEND ||
            gather() != refusal::none)
            continue;
        ++accepted;
        ASSERT_LE(pieces.bytes, mtu + 22);
        bytes before = gathered();
        std::fill(words.begin(), words.end(), 0xffffffff);
        ASSERT_EQ(gathered(), before);
    }
    EXPECT_GT(accepted, 100u);
}

} // namespace
} // namespace weftio::test
