// An entry that cannot be executed ends its queue, says why, and disturbs nobody else.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "sending_port.hpp"

namespace weftio::test {
namespace {

using testing::HasSubstr;

/// A port with two queues on it, the second of which is only a neighbor.
struct two_queues {
    device cpu = device::open("cpu");
    sending_port port;
    eth_txq queue{port.get(), cpu, {.entries = 64}}, neighbor{port.get(), cpu, {.entries = 64}};
    numbered_buffers frames{port.get(), cpu, 64};
    memory long_memory = cpu.allocate(8192, memory_kind::cpu_device);
    memory_region long_region{port.get(), long_memory};
    memory_region foreign_region{port.get(), long_memory, {.domain = protection_domain::make()}};
    raw_queue raw{queue}, beside{neighbor};
    std::vector<send_failure> failures;
    progress_engine progress;

    two_queues()
    {
        progress.attach(
            queue, {.on_sent = {}, .on_error = [this](const send_failure& failure) { failures.push_back(failure); }});
    }
    entry_words good(std::uint32_t number) const
    {
        weftio_dev_buf buffer = frames[number];
        return send_entry(
            {ethernet_segments(),
             {pointer(60, weftio_swap32(buffer.lkey_be), reinterpret_cast<std::uint64_t>(buffer.address))}});
    }
    entry_words from_region(std::uint64_t offset, std::uint32_t count, std::uint32_t other_key = 0) const
    {
        auto base = reinterpret_cast<std::uint64_t>(long_region.device_address());
        return send_entry(
            {ethernet_segments(), {pointer(count, other_key ? other_key : long_region.lkey(), base + offset)}});
    }
};

struct refusal_case {
    const char* name;
    entry_words (*entry)(const two_queues&);
    std::uint8_t syndrome;
    const char* words;
    std::optional<std::uint32_t> index = {}; ///< that the entry carries
};

entry_words resized(entry_words entry, std::uint32_t segments)
{
    entry[0][1] = weftio_swap32(segments);
    return entry;
}

const refusal_case refusals[] = {
    {"LongerThanTheMtu", [](const two_queues& at) { return at.from_region(0, 1515); }, 0x01,
     "longer than the port's MTU"},
    {"LongerThanTheMtuInPieces",
     [](const two_queues& at) {
         entry_words entry = at.from_region(0, 1000);
         entry.push_back(entry[2]);
         return resized(entry, 4);
     },
     0x01, "longer than the port's MTU"},
    {"UnknownKey", [](const two_queues& at) { return at.from_region(0, 60, 0x00ffff00); }, 0x04,
     "no memory region has that key"},
    {"EndOfListKey", [](const two_queues& at) { return at.from_region(0, 60, WEFTIO_LKEY_INVALID); }, 0x04,
     "no memory region has that key"},
    {"KeyOfARegionThatIsGone",
     [](const two_queues& at) {
         std::uint32_t key = memory_region(at.port.get(), at.long_memory).lkey();
         return at.from_region(0, 60, key);
     },
     0x04, "no memory region has that key"},
    {"KeyOfAnEarlierGeneration", [](const two_queues& at) { return at.from_region(0, 60, at.long_region.lkey() ^ 1); },
     0x04, "no memory region has that key"},
    {"KeyOfAnotherDomain", [](const two_queues& at) { return at.from_region(0, 60, at.foreign_region.lkey()); }, 0x04,
     "the key's memory region and the queue are in different protection domains"},
    {"KeyOfAnotherDomainInPieces",
     [](const two_queues& at) {
         entry_words entry = at.from_region(0, 60);
         entry.push_back(at.from_region(60, 60, at.foreign_region.lkey())[2]);
         return resized(entry, 4);
     },
     0x04, "the key's memory region and the queue are in different protection domains"},
    {"InFrontOfTheRegion", [](const two_queues& at) { return at.from_region(~std::uint64_t{0}, 60); }, 0x04,
     "the address range exceeds the key's memory region"},
    {"AcrossTheEndOfTheRegion", [](const two_queues& at) { return at.from_region(8192 - 59, 60); }, 0x04,
     "the address range exceeds the key's memory region"},
    {"AddressThatWrapsRound", [](const two_queues& at) { return at.from_region(0x8000'0000'0000'0000u, 60); }, 0x04,
     "the address range exceeds the key's memory region"},
    {"CountOfZeroIsTwoToThe31", [](const two_queues& at) { return at.from_region(0, 0); }, 0x04,
     "the address range exceeds the key's memory region"},
    {"NoSegments", [](const two_queues&) { return send_entry({ethernet_segments()}); }, 0x02, "the frame has 0 bytes"},
    {"InlineOfNoBytes",
     [](const two_queues&) {
         return send_entry({ethernet_segments(), inline_data({})});
     },
     0x02, "the frame has 0 bytes"},
    {"UnknownOpcode", [](const two_queues&) { return entry_words{control(0x2d, 1)}; }, 0x02, "unknown opcode"},
    {"RdmaWrite", [](const two_queues&) { return entry_words{control(0x08, 1)}; }, 0x02, "unknown opcode"},
    {"WaitOnData", [](const two_queues&) { return entry_words{control(WEFTIO_OPCODE_WAIT | 1 << 8, 1)}; }, 0x02,
     "unknown opcode"},
    {"WrongIndex", [](const two_queues& at) { return at.good(1); }, 0x02, "the entry has a wrong index", 2},
    {"IndexOfTheLastTimeRound", [](const two_queues& at) { return at.good(1); }, 0x02, "the entry has a wrong index",
     1 - 64},
    {"WrongQueue",
     [](const two_queues& at) {
         entry_words entry = at.good(1);
         entry[0][1] |= weftio_swap32(0x800000u << 8);
         return entry;
     },
     0x02, "the entry has the number of another queue"},
    {"SizeOfZero", [](const two_queues& at) { return resized(at.good(1), 0); }, 0x02, "size does not match"},
    {"SizeOf61", [](const two_queues& at) { return resized(at.good(1), 61); }, 0x02, "size does not match"},
    {"SizeBeyondWhatWasCommitted", [](const two_queues& at) { return resized(at.good(1), 16); }, 0x02,
     "size does not match"},
    {"SendOfOneSegment", [](const two_queues&) { return entry_words{control(WEFTIO_OPCODE_SEND, 1)}; }, 0x02,
     "size does not match"},
    {"InlineBeyondTheEntry",
     [](const two_queues&) {
         entry_words entry = send_entry({ethernet_segments(), inline_data(bytes(28))});
         entry[2][0] = weftio_swap32(WEFTIO_INLINE_SEGMENT | 29);
         return entry;
     },
     0x02, "size does not match"},
    {"InsertedVlan",
     [](const two_queues& at) {
         entry_words entry = at.good(1);
         entry[1][3] = weftio_swap32(0x80000001);
         return entry;
     },
     0x02, "a segment that its opcode does not accept"},
    {"WaitOfTheWrongSize", [](const two_queues&) { return resized(wait_entry(1), 2); }, 0x02, "size does not match"},
    {"WaitForAnotherCondition", [](const two_queues&) { return wait_entry(eth_txq::timestamp(utc_now_ns()), 4); }, 0x02,
     "the wait has an unknown condition or an invalid value"},
    {"WaitForSecondsThatAreNone", [](const two_queues&) { return wait_entry(std::uint64_t{1} << 32 | 1'000'000'000); },
     0x02, "the wait has an unknown condition or an invalid value"},
    {"WaitBeyondTheHorizon",
     [](const two_queues&) { return wait_entry(eth_txq::timestamp(utc_now_ns() + 3600'000'000'000)); }, 0x02,
     "beyond the queue's horizon"},
};

void PrintTo(const refusal_case& tried, std::ostream* out)
{
    *out << tried.name;
}

class Refusal : public testing::TestWithParam<refusal_case>, protected two_queues {};

TEST_P(Refusal, EndsTheQueueAndSaysWhy)
{
    raw.append(good(0));
    raw.append(GetParam().entry(*this), GetParam().index);
    raw.append(good(2));
    raw.append(good(3));
    raw.push();
    EXPECT_EQ(port.send_all(), numbered_run(0, 1));

    EXPECT_EQ(progress.progress(), 1u);
    ASSERT_EQ(failures.size(), 1u);
    EXPECT_EQ(failures[0].queue, queue.number());
    EXPECT_EQ(failures[0].position, 1u);
    EXPECT_EQ(failures[0].syndrome, GetParam().syndrome);
    EXPECT_THAT(failures[0].text,
                HasSubstr(fmt::format("weftio: eth_txq {}: entry at position 1 failed: ", queue.number())));
    EXPECT_THAT(failures[0].text, HasSubstr(GetParam().words));

    eth_txq_counters counters = queue.counters();
    EXPECT_EQ(counters.sent, 1u);
    EXPECT_EQ(counters.failed, 1u);
    EXPECT_EQ(counters.flushed,
              raw.next() - 2); // a failed entry is one block, and what it says of others is not believed
    EXPECT_TRUE(conserves(counters));
    EXPECT_TRUE(queue.failed());
    EXPECT_EQ(weftio_dev_eth_txq_status(raw.handle()), WEFTIO_DEV_QUEUE_ERROR);
}

TEST_P(Refusal, DisturbsNoOtherQueueAndIsOverAfterAReset)
{
    beside.append(good(10));
    raw.append(good(0));
    raw.append(GetParam().entry(*this), GetParam().index);
    raw.push();
    beside.append(good(11));
    beside.push();
    raw.append(good(12)); // into the queue that is in error
    raw.push();
    std::vector<bytes> sent = port.send_all();
    EXPECT_THAT(sent, testing::UnorderedElementsAre(numbered(0), numbered(10), numbered(11)));
    EXPECT_EQ(neighbor.counters().sent, 2u);
    EXPECT_FALSE(neighbor.failed());
    EXPECT_TRUE(conserves(queue.counters()));

    queue.reset();
    EXPECT_FALSE(queue.failed());
    raw_queue again(queue);
    for (std::uint32_t number = 0; number < 5; ++number)
        EXPECT_EQ(again.append(good(20 + number)), number);
    again.push();
    EXPECT_EQ(port.send_all(), numbered_run(20, 5));
    EXPECT_EQ(queue.counters().sent, 6u);
    EXPECT_TRUE(conserves(queue.counters()));
}

INSTANTIATE_TEST_SUITE_P(Of, Refusal, testing::ValuesIn(refusals), [](const auto& tried) { return tried.param.name; });

class WrongRecord : public testing::Test, protected two_queues {
 protected:
    void expect_refused(std::uint32_t position)
    {
        EXPECT_EQ(progress.progress(), 1u);
        ASSERT_EQ(failures.size(), 1u);
        EXPECT_EQ(failures[0].position, position);
        EXPECT_EQ(failures[0].syndrome, 0x02);
        EXPECT_THAT(failures[0].text, HasSubstr("the doorbell record claims more entries than the ring holds"));
        EXPECT_EQ(weftio_dev_eth_txq_status(raw.handle()), WEFTIO_DEV_QUEUE_ERROR);
        EXPECT_EQ(queue.counters().failed, 1u);
        EXPECT_TRUE(conserves(queue.counters()));
    }
};

TEST_F(WrongRecord, ClaimsMoreThanTheRingHolds)
{
    raw.append(good(0));
    raw.claim(65);
    EXPECT_TRUE(port.send_all().empty());
    expect_refused(0);
}

TEST_F(WrongRecord, GoesBack)
{
    raw.append(good(0));
    raw.append(good(1));
    raw.push();
    EXPECT_EQ(port.send_all(), numbered_run(0, 2));
    raw.claim(1);
    EXPECT_TRUE(port.send_all().empty());
    expect_refused(2);
}

TEST_F(WrongRecord, DoesNotTouchFramesThatTheDriverHolds)
{
    for (std::uint32_t number = 0; number < 64; ++number)
        raw.append(good(number));
    raw.push();
    port.run_dry();
    ASSERT_EQ(port.on_the_wire(), 64u);
    raw.claim(65); // the ring is full: every slot belongs to a frame
    port.run_dry();
    EXPECT_NE(weftio_dev_eth_txq_status(raw.handle()), WEFTIO_DEV_QUEUE_ERROR); // what is in front has not completed
    EXPECT_EQ(queue.counters().sent, 0u);
    EXPECT_EQ(port.send_all(), numbered_run(0, 64));
    EXPECT_EQ(queue.counters().sent, 64u);
    expect_refused(64);
}

TEST_F(WrongRecord, FlushesWhatAWaitHolds)
{
    raw.append(wait_entry(eth_txq::timestamp(utc_now_ns() + 3'000'000'000)));
    raw.append(good(1));
    raw.append(good(2));
    raw.push();
    raw.claim(1000);
    EXPECT_TRUE(port.send_all().empty());
    expect_refused(3);
    EXPECT_EQ(queue.counters().waited, 0u);
    EXPECT_EQ(queue.counters().flushed, 3u);
    queue.reset();
    raw_queue again(queue);
    again.append(good(7));
    again.push();
    EXPECT_EQ(port.send_all(), numbered_run(7, 1));
}

TEST_F(WrongRecord, OrAnyOtherNonsenseIsSurvived)
{
    std::uint32_t random = 1;
    for (int round = 0; round < 2000; ++round) {
        random = random * 1664525 + 1013904223;
        weftio_store_release_sys_u32(raw.handle()->queue.ring.dbrec, random);
        weftio_dev_eth_txq_push(raw.handle());
        weftio_store_release_sys_u64(raw.handle()->queue.ring.doorbell, random);
        beside.append(good(static_cast<std::uint32_t>(round) % 64));
        beside.push();
        ASSERT_EQ(port.send_all().size(), 1u);
        ASSERT_TRUE(conserves(queue.counters()));
    }
    EXPECT_TRUE(queue.failed());
    EXPECT_EQ(neighbor.counters().sent, 2000u);
}

} // namespace
} // namespace weftio::test
