// Completion queues: what a program reads there, and what happens when they are full.
#include <algorithm>

#include <memory>

#include <gmock/gmock.h>

#include "posted_ends.hpp"

namespace weftio::test {

namespace {

using namespace reported_as;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// A completion as its bytes lie in the ring.
class raw_completion {
 public:
    raw_completion(const completion_queue& queue, std::uint32_t entry_bytes, std::uint32_t index)
        : bytes_(static_cast<const std::uint8_t*>(queue.ring()) +
                 std::size_t{index % queue.entries() + 1} * entry_bytes - 64)
    {}
    std::uint64_t number(unsigned at, unsigned count) const
    {
        std::uint64_t all = 0;
        for (unsigned each = 0; each < count; ++each)
            all = all << 8 | bytes_[at + each];
        return all;
    }

 private:
    const std::uint8_t* bytes_;
};

struct ring_shape {
    std::uint32_t entries, entry_bytes;
};

class CompletionRings : public testing::TestWithParam<ring_shape> {
 protected:
    verbs_ends ends{{.completions = {.entries = GetParam().entries, .entry_bytes = GetParam().entry_bytes}}};
};

} // namespace

TEST_P(CompletionRings, HoldWhatComesUntilItIsConsumed)
{
    constexpr unsigned messages = 60;
    ends.connect();
    for (unsigned each = 0; each < messages; ++each) {
        ends.receive(1);
        ends.send(0, each + 1);
    }
    std::vector<completion> sends, receives;
    ends.run_until([&] {
        const auto more = ends.poll(0), theirs = ends.poll(1);
        EXPECT_LE(theirs.size(), GetParam().entries);
        sends.insert(sends.end(), more.begin(), more.end());
        receives.insert(receives.end(), theirs.begin(), theirs.end());
        return receives.size() + sends.size() == 2 * messages;
    });
    ASSERT_THAT(sends, SizeIs(messages));
    ASSERT_THAT(receives, SizeIs(messages));
    for (unsigned each = 0; each < messages; ++each) {
        EXPECT_EQ(sends[each].index, each);
        EXPECT_EQ(receives[each].index, each);
        EXPECT_EQ(receives[each].bytes, each + 1);
    }
    EXPECT_EQ(ends.pair(0)->state(), rdma_state::ready_to_send);
}

TEST_P(CompletionRings, SayEverythingInTheBytesOfMlx5)
{
    ends.connect();
    ends.receive(1);
    ends.pair(0).post(WEFTIO_OPCODE_SEND_IMMEDIATE, {ends.memory(0).local(0, 300)}, WEFTIO_CE_ALWAYS | WEFTIO_SOLICITED,
                      0x12345678);
    ends.run();
    const raw_completion send(*ends.completions[0], GetParam().entry_bytes, 0),
        receive(*ends.completions[1], GetParam().entry_bytes, 0);
    EXPECT_EQ(send.number(56, 1), WEFTIO_OPCODE_SEND_IMMEDIATE);
    EXPECT_EQ(send.number(57, 3), ends.pair(0)->number());
    EXPECT_EQ(send.number(60, 2), 0u);
    EXPECT_EQ(send.number(63, 1), 0x00u);
    EXPECT_EQ(receive.number(36, 4), 0x12345678u);
    EXPECT_EQ(receive.number(44, 4), 300u);
    EXPECT_EQ(receive.number(57, 3), ends.pair(1)->number());
    EXPECT_EQ(receive.number(60, 2), 0u);
    EXPECT_EQ(receive.number(63, 1), 0x32u); // opcode 3, solicited, owner 0
    const completion read = ends.poll(1).at(0);
    EXPECT_EQ(read.immediate, 0x12345678u);
    EXPECT_TRUE(read.solicited);
    EXPECT_GT(read.time_ns, std::uint64_t{1} << 60); // later than 2006
}

TEST_P(CompletionRings, TurnTheOwnerBitWithEachPass)
{
    ends.connect();
    for (unsigned each = 0; each < 5 * GetParam().entries; ++each) {
        ends.write(0, 8);
        ends.run();
        const raw_completion next(*ends.completions[0], GetParam().entry_bytes, each);
        EXPECT_EQ(next.number(63, 1), each / GetParam().entries % 2);
        EXPECT_EQ(next.number(60, 2), each);
        EXPECT_THAT(ends.poll(0), SizeIs(1));
    }
}

INSTANTIATE_TEST_SUITE_P(Of, CompletionRings,
                         testing::Values(ring_shape{1, 64}, ring_shape{1, 128}, ring_shape{2, 64}, ring_shape{4, 128}),
                         [](const auto& info) {
                             return "Of" + std::to_string(info.param.entries) + "Entries" +
                                    std::to_string(info.param.entry_bytes) + "Bytes";
                         });

TEST(CompletionQueue, MarksItsOwnEntriesAsNeverWritten)
{
    verbs_ends ends({.completions = {.entries = 4, .entry_bytes = 128}});
    for (std::uint32_t entry = 0; entry < 4; ++entry)
        EXPECT_EQ(raw_completion(*ends.completions[0], 128, entry).number(63, 1), 0xf1u);
    EXPECT_THAT(ends.poll(0), IsEmpty());
}

TEST(CompletionQueue, SaysSyndromeReasonAndUserIndexOfAnError)
{
    verbs_ends ends({.pair = {.user_index = 0xabcdef}});
    ends.connect();
    ends.post_bad(0);
    ends.run();
    const raw_completion error(*ends.completions[0], 64, 0);
    EXPECT_EQ(error.number(32, 4), 0xabcdefu);
    EXPECT_EQ(error.number(54, 1), static_cast<std::uint64_t>(refusal::unknown_opcode));
    EXPECT_EQ(error.number(55, 1), malformed);
    EXPECT_EQ(error.number(56, 1), 0x55u);
    EXPECT_EQ(error.number(57, 3), ends.pair(0)->number());
    EXPECT_EQ(error.number(63, 1), 0xd0u);
    const completion read = ends.poll(0).at(0);
    EXPECT_TRUE(read.failed());
    EXPECT_EQ(read.user_index, 0xabcdefu);
    EXPECT_EQ(read.reason, static_cast<std::uint8_t>(refusal::unknown_opcode));
    EXPECT_EQ(read.time_ns, 0u);
}

TEST(CompletionQueue, NamesTheFirstBlockOfAnEntryOfSeveral)
{
    verbs_ends ends;
    ends.connect();
    for (unsigned each = 0; each < 50; ++each) { // around the ring of 64 blocks, also in the midst of an entry
        std::vector<segment> body{ends.memory(1).remote_at(0)};
        for (unsigned piece = 0; piece < 8; ++piece)
            body.push_back(ends.memory(0).local(piece * 10, 10));
        const std::uint32_t index = ends.pair(0).post(WEFTIO_OPCODE_RDMA_WRITE, body);
        EXPECT_EQ(index, 3 * each);
        EXPECT_THAT(reported_by(ends.poll(0)), ElementsAre(reported{sent, index, 0}));
    }
}

TEST(CompletionQueue, ServesManyQueuePairs)
{
    constexpr unsigned count = 8, rounds = 40;
    verbs_ends ends({.one_port = true});
    ends.completions[0].emplace(ends.at(0), ends.cpu, completion_queue_options{.entries = 4});
    std::vector<std::unique_ptr<posted_pair>> pairs;
    for (unsigned each = 0; each < count; ++each)
        pairs.push_back(std::make_unique<posted_pair>(*ends.devices[each % 2], ends.cpu, *ends.completions[0],
                                                      *ends.completions[0], queue_pair_options{.user_index = each}));
    for (unsigned each = 0; each < count; ++each)
        (*pairs[each])->connect((*pairs[each ^ 1])->address());
    for (unsigned round = 0; round < rounds; ++round)
        for (unsigned each = 0; each < count; ++each) {
            pairs[each]->post_receive(ends.memory(0).local(0, 100));
            pairs[each]->post(WEFTIO_OPCODE_SEND, {ends.memory(0).local(0, each + 1)});
        }
    std::array<unsigned, count> sends{}, receives{};
    unsigned all = 0;
    ends.run_until([&] {
        for (const completion& each : ends.poll(0)) {
            ++all;
            EXPECT_EQ(each.queue, (*pairs.at(each.user_index))->number());
            EXPECT_EQ(each.index, (each.opcode == sent ? sends : receives).at(each.user_index)++);
        }
        return all == 2 * count * rounds;
    });
    EXPECT_THAT(sends, Each(rounds));
    EXPECT_THAT(receives, Each(rounds));
}

TEST(CompletionQueue, CompletesWhatAsksAndWhatFails)
{
    verbs_ends ends;
    ends.connect();
    for (unsigned each = 0; each < 9; ++each)
        ends.write(0, 10, each % 3 == 2 ? WEFTIO_CE_ALWAYS : 0);
    EXPECT_THAT(reported_by(ends.poll(0)),
                ElementsAre(reported{sent, 2, 0}, reported{sent, 5, 0}, reported{sent, 8, 0}));
    ends.write(0, 10, 0);
    ends.write(0, 10, 0);
    ends.post_bad(0);
    ends.write(0, 10, 0);
    EXPECT_THAT(reported_by(ends.poll(0)),
                ElementsAre(reported{send_error, 11, malformed}, reported{send_error, 12, flushed}));
}

TEST(CompletionQueue, CompletesEachEntryOfAPairThatSignalsAll)
{
    verbs_ends ends({.pair = {.signal_all = true}});
    ends.connect();
    for (unsigned each = 0; each < 3; ++each)
        ends.write(0, 10, 0);
    EXPECT_THAT(reported_by(ends.poll(0)),
                ElementsAre(reported{sent, 0, 0}, reported{sent, 1, 0}, reported{sent, 2, 0}));
}

TEST(CompletionQueue, MakesThePeerWaitWhileItIsFullAndLosesNothing)
{
    verbs_ends ends({.completions = {.entries = 2}});
    ends.connect();
    for (unsigned each = 0; each < 5; ++each)
        ends.receive(1);
    ends.completions[0].reset(); // the peer's are not looked at
    for (unsigned each = 0; each < 5; ++each)
        ends.send(0, 10 + each, 0);
    for (unsigned turn = 0; turn < 100; ++turn)
        ends.run();
    EXPECT_EQ(ends.pair(1)->counters().filled, 2u);
    EXPECT_GT(ends.pair(0)->counters().rnr_naks, 0u);
    std::vector<completion> all;
    ends.run_until([&] {
        const auto more = ends.poll(1);
        all.insert(all.end(), more.begin(), more.end());
        return all.size() == 5;
    });
    for (std::uint32_t each = 0; each < all.size(); ++each)
        EXPECT_EQ(all[each].bytes, 10 + each);
}

TEST(CompletionQueue, OverwritesWhenOverrunsAreIgnored)
{
    verbs_ends ends({.completions = {.entries = 4, .overrun = completion_overrun::ignore}});
    ends.connect();
    *static_cast<std::uint32_t*>(ends.completions[0]->record()) = 0xffffffff; // nobody reads it
    for (unsigned each = 0; each < 10; ++each)
        ends.write(0, 10);
    ends.run();
    EXPECT_EQ(ends.pair(0)->counters().done, 10u);
    for (std::uint32_t each = 6; each < 10; ++each) {
        EXPECT_EQ(raw_completion(*ends.completions[0], 64, each).number(60, 2), each);
        EXPECT_EQ(raw_completion(*ends.completions[0], 64, each).number(63, 1), each / 4 % 2);
    }
    EXPECT_FALSE(ends.completions[0]->overrun());
}

namespace {

/// Queue pairs at one port whose completion queue fails when it is full, and two that have another one.
class Overruns : public testing::Test {
 protected:
    Overruns()
    {
        for (unsigned end = 0; end < 2; ++end)
            others[end].emplace(*ends.devices[end], ends.cpu, other, other);
        for (unsigned end = 0; end < 2; ++end)
            (*others[end])->connect((*others[1 - end])->address());
        ends.connect();
    }
    void expect_others_work()
    {
        others[1]->post_receive(ends.memory(1).local(0, 100));
        others[0]->post(WEFTIO_OPCODE_SEND, {ends.memory(0).local(0, 10)});
        ends.run();
        std::array<completion, 4> some;
        EXPECT_EQ(other.poll(some), 2u);
        EXPECT_FALSE(other.overrun());
    }

    verbs_ends ends{{.one_port = true, .completions = {.entries = 4, .overrun = completion_overrun::fail}}};
    completion_queue other{ends.at(0), ends.cpu, {.entries = 4, .overrun = completion_overrun::fail}};
    std::array<std::optional<posted_pair>, 2> others;
};

} // namespace

TEST_F(Overruns, FailTheQueuesOfTheCompletionQueue)
{
    for (unsigned each = 0; each < 4; ++each)
        ends.write(0, 10);
    ends.run();
    EXPECT_FALSE(ends.completions[0]->overrun());
    ends.write(0, 10);
    ends.run();
    EXPECT_TRUE(ends.completions[0]->overrun());
    EXPECT_EQ(ends.pair(0)->state(), rdma_state::error);
    EXPECT_EQ(ends.pair(1)->state(), rdma_state::ready_to_send); // it has another
    EXPECT_THAT(ends.poll(0), SizeIs(4));
    expect_others_work();
}

TEST_F(Overruns, FailAQueueThatReceives)
{
    for (unsigned each = 0; each < 6; ++each) {
        ends.receive(1);
        ends.send(0, 10, 0);
    }
    ends.run();
    EXPECT_TRUE(ends.completions[1]->overrun());
    EXPECT_EQ(ends.pair(1)->state(), rdma_state::error);
    EXPECT_THAT(ends.poll(1), SizeIs(4));
    expect_others_work();
}

TEST_F(Overruns, FailAQueueThatHasNothingToComplete)
{
    posted_pair pair(*ends.devices[0], ends.cpu, other, *ends.completions[0]);
    pair->modify(rdma_state::init, init_attributes());
    for (unsigned each = 0; each < 5; ++each)
        ends.write(0, 10);
    ends.run();
    EXPECT_TRUE(ends.run_until([&] { return pair->state() == rdma_state::error; }));
}

TEST_F(Overruns, ComeFromWhatIsThereAndNotFromWhatIsUnderWay)
{
    for (unsigned each = 0; each < 3; ++each)
        ends.write(1, 10);
    ends.run();
    ends.receive(1, 250000);
    ends.send(0, 250000, 0);
    ends.write(1, 10);
    const raw_completion fourth(*ends.completions[1], 64, 3);
    for (unsigned turn = 0; turn < 20 && fourth.number(63, 1) == WEFTIO_CQE_NEVER_WRITTEN; ++turn)
        ends.ports.get(0).turn();
    EXPECT_GT(ends.pair(1)->counters().executed, 1u);
    EXPECT_EQ(ends.pair(1)->counters().received, 0u); // the message is under way
    EXPECT_FALSE(ends.completions[1]->overrun());
    std::array<completion, 4> some;
    EXPECT_EQ(ends.completions[1]->poll(some), 4u);
    ends.run();
    EXPECT_THAT(reported_by(ends.poll(1)), ElementsAre(reported{received, 0, 0}));
}

TEST(CompletionQueue, MayBeDestroyedBeforeItsQueuePairs)
{
    verbs_ends ends;
    ends.connect();
    for (unsigned end = 0; end < 2; ++end)
        ends.completions[end].reset();
    ends.receive(1);
    ends.send(0, 100);
    ends.run();
    EXPECT_EQ(ends.pair(1)->counters().filled, 1u);
    ends.pair(0)->modify(rdma_state::error);
    ends.run();
}

TEST(CompletionQueue, OutlivesItsQueuePairsAndItsPort)
{
    std::optional<port> at(port::open("loopback", {.mode = engine_mode::inline_worker}));
    const device cpu = device::open("cpu");
    std::optional<rdma_device> rdma(std::in_place, *at,
                                    rdma_device_options{.address = "10.0.0.1", .application_turns = true});
    completion_queue queue(*at, cpu);
    std::optional<posted_pair> pair(std::in_place, *rdma, cpu, queue, queue);
    (*pair)->modify(rdma_state::init, init_attributes());
    pair->post_receive(pointer(1, 1, 1));
    (*pair)->modify(rdma_state::error);
    at.reset();
    rdma.reset();
    pair.reset();
    std::array<completion, 2> some;
    EXPECT_EQ(queue.poll(some), 1u);
}

TEST(CompletionQueue, GivesBackThePlaceOfAMessageWhoseQueuePairIsReset)
{
    verbs_ends ends({.completions = {.entries = 1}});
    for (unsigned each = 0; each < 4; ++each) {
        ends.connect();
        ends.receive(1, 200000);
        ends.send(0, 200000, 0);
        ends.ports.get(0).turn();
        ends.ports.get(1).turn();
        for (unsigned end = 0; end < 2; ++end)
            ends.pair(end).reset();
        ends.run();
    }
    ends.connect();
    ends.receive(1);
    ends.send(0, 10, 0);
    EXPECT_THAT(reported_by(ends.poll(1)), ElementsAre(reported{received, 0, 0}));
}

TEST(CompletionQueue, IsRefusedByQueuePairsOfAnotherPort)
{
    verbs_ends ends;
    const auto make = [&](unsigned sends, unsigned receives) {
        return error_of(
            [&] { queue_pair(*ends.devices[0], ends.cpu, *ends.completions[sends], *ends.completions[receives]); });
    };
    EXPECT_THAT(make(1, 0).what(), HasSubstr("another port"));
    EXPECT_THAT(make(0, 1).what(), HasSubstr("another port"));
    EXPECT_EQ(make(1, 1).code(), errc::invalid_argument);
}

namespace {

template <class Options>
struct wrong_option {
    const char* name;
    Options options;
};

} // namespace

TEST(CompletionQueue, RefusesOptionsWithASentence)
{
    const verbs_ends ends;
    const memory bytes = ends.cpu.allocate(1024, memory_kind::cpu_device);
    const std::vector<wrong_option<completion_queue_options>> all{
        {"entries", {.entries = 0}},
        {"entries", {.entries = 3}},
        {"entries", {.entries = 1 << 23}},
        {"entry_bytes", {.entry_bytes = 0}},
        {"entry_bytes", {.entry_bytes = 256}},
        {"overrun", {.overrun = static_cast<completion_overrun>(3)}},
        {"ring", {.entries = 32, .ring = {&bytes, 0}}},
        {"ring", {.entries = 16, .ring = {&bytes, 64}}},
        {"ring", {.entries = 1, .ring = {&bytes, 1 << 20}}},
        {"ring", {.entries = 1, .ring = {&bytes, SIZE_MAX}}},
        {"ring", {.entries = 1, .ring = {&bytes, 32}}},
        {"record", {.record = {&bytes, 1020}}},
        {"record", {.record = {&bytes, 2}}},
    };
    for (const auto& each : all) {
        const error thrown = error_of([&] { completion_queue(ends.ports.get(0), ends.cpu, each.options); });
        EXPECT_EQ(thrown.code(), errc::invalid_argument);
        EXPECT_THAT(thrown.what(), AllOf(HasSubstr("weftio: completion_queue: "), HasSubstr(each.name)));
    }
}

TEST(CompletionQueue, HasQueuePairsThatRefuseOptionsWithASentence)
{
    const verbs_ends ends;
    const memory bytes = ends.cpu.allocate(1024, memory_kind::cpu_device);
    const std::vector<wrong_option<queue_pair_options>> all{
        {"service", {.service = static_cast<rdma_service>(3)}},
        {"send_blocks", {.send_blocks = 0}},
        {"send_blocks", {.send_blocks = 65536}},
        {"send_blocks", {.send_blocks = 24}},
        {"receive_entries", {.receive_entries = 3}},
        {"receive_entries", {.receive_entries = 65536}},
        {"receive_stride", {.receive_stride = 8}},
        {"receive_stride", {.receive_stride = 48}},
        {"receive_stride", {.receive_stride = 1024}},
        {"user_index", {.user_index = 1 << 24}},
        {"send_ring", {.send_blocks = 32, .send_ring = {&bytes, 0}}},
        {"send_ring", {.send_blocks = 1, .send_ring = {&bytes, 8}}},
        {"receive_ring", {.receive_entries = 64, .receive_ring = {&bytes, 16}}},
        {"receive_ring", {.receive_entries = 1, .receive_ring = {&bytes, 4}}},
        {"record", {.record = {&bytes, 1020}}},
        {"record", {.record = {&bytes, 1}}},
    };
    for (const auto& each : all) {
        const error thrown = error_of(
            [&] { queue_pair(*ends.devices[0], ends.cpu, *ends.completions[0], *ends.completions[0], each.options); });
        EXPECT_EQ(thrown.code(), errc::invalid_argument);
        EXPECT_THAT(thrown.what(), AllOf(HasSubstr("weftio: queue_pair: "), HasSubstr(each.name)));
    }
}

} // namespace weftio::test
