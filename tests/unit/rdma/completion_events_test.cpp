// Completion queues: when they tell, and of what.
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include "posted_ends.hpp"

namespace weftio::test {

namespace {

using namespace reported_as;
using testing::ElementsAre;
using testing::SizeIs;

/// Whether poll(2) says that the descriptor is readable; reads it then.
bool is_notified(const completion_queue& queue)
{
    pollfd each{.fd = queue.descriptor(), .events = POLLIN, .revents = 0};
    if (::poll(&each, 1, 0) != 1)
        return false;
    std::uint64_t count = 0;
    EXPECT_EQ(read(queue.descriptor(), &count, sizeof count), static_cast<ssize_t>(sizeof count));
    return true;
}

} // namespace

TEST(CompletionEvents, TellOnceOfACompletionThatIsThere)
{
    verbs_ends ends;
    ends.connect();
    ends.write(0, 10);
    ends.run();
    EXPECT_FALSE(is_notified(*ends.completions[0]));
    ends.completions[0]->arm();
    ends.run();
    EXPECT_TRUE(is_notified(*ends.completions[0]));
    ends.write(0, 10);
    ends.run();
    EXPECT_FALSE(is_notified(*ends.completions[0])); // it was armed once
}

TEST(CompletionEvents, TellOnceOfACompletionThatComesLater)
{
    verbs_ends ends;
    ends.connect();
    for (unsigned each = 0; each < 12; ++each) { // the sequence number has two bits
        ends.completions[0]->arm();
        ends.run();
        EXPECT_FALSE(is_notified(*ends.completions[0]));
        ends.write(0, 10);
        ends.write(0, 10);
        ends.run();
        EXPECT_TRUE(is_notified(*ends.completions[0]));
        ends.write(0, 10);
        ends.run();
        EXPECT_FALSE(is_notified(*ends.completions[0]));
        EXPECT_THAT(ends.poll(0), SizeIs(3));
    }
}

TEST(CompletionEvents, TellOnceHoweverOftenTheyAreAskedFor)
{
    for (unsigned often = 1; often < 10; ++often) {
        verbs_ends ends;
        ends.connect();
        for (unsigned round = 0; round < 3; ++round) {
            for (unsigned each = 0; each < often; ++each) {
                ends.completions[0]->arm();
                ends.run();
            }
            ends.write(0, 10);
            ends.run();
            EXPECT_TRUE(is_notified(*ends.completions[0])) << often;
            EXPECT_FALSE(is_notified(*ends.completions[0])) << often;
            EXPECT_THAT(ends.poll(0), SizeIs(1));
        }
    }
}

/// A program that reads one completion for each event, as perftest does, and arms the queue before it reads, misses
/// none when two come at once.
TEST(CompletionEvents, TellOfEachCompletionToWhoArmsForEach)
{
    verbs_ends ends;
    ends.connect();
    for (unsigned round = 0; round < 5; ++round) {
        constexpr unsigned at_once = 3;
        for (unsigned each = 0; each < at_once; ++each)
            ends.write(0, 10);
        for (unsigned each = 0; each < at_once; ++each) {
            ends.completions[0]->arm();
            ends.run();
            EXPECT_TRUE(is_notified(*ends.completions[0])) << each;
        }
        ends.completions[0]->arm();
        ends.run();
        EXPECT_FALSE(is_notified(*ends.completions[0])) << "each was told of";
        EXPECT_THAT(ends.poll(0), SizeIs(at_once));
        ends.write(0, 10); // of which the last arming tells
        ends.run();
        EXPECT_TRUE(is_notified(*ends.completions[0]));
        EXPECT_THAT(ends.poll(0), SizeIs(1));
    }
}

TEST(CompletionEvents, TellOfWhatIsSolicitedAndOfErrors)
{
    verbs_ends ends;
    ends.connect();
    for (unsigned each = 0; each < 3; ++each)
        ends.receive(1);
    ends.completions[1]->arm(true);
    ends.send(0, 10);
    ends.run();
    EXPECT_FALSE(is_notified(*ends.completions[1]));
    ends.send(0, 10, WEFTIO_CE_ALWAYS | WEFTIO_SOLICITED);
    ends.run();
    EXPECT_TRUE(is_notified(*ends.completions[1]));
    EXPECT_THAT(ends.poll(1), SizeIs(2));
    ends.completions[1]->arm(true);
    ends.run();
    EXPECT_FALSE(is_notified(*ends.completions[1]));
    ends.pair(1)->modify(rdma_state::error);
    ends.run();
    EXPECT_TRUE(is_notified(*ends.completions[1]));
}

TEST(CompletionEvents, WakeAThreadThatPolls)
{
    wired_ports ports(engine_mode::thread);
    const device cpu = device::open("cpu");
    const rdma_device at(ports.get(0), {.address = "10.0.0.1"});
    completion_queue queue(ports.get(0), cpu);
    posted_pair pair(at, cpu, queue, queue);
    pair->modify(rdma_state::init, init_attributes());
    queue.arm();
    pair.post_receive(pointer(1, 1, 1));
    pair->modify(rdma_state::error);
    pollfd each{.fd = queue.descriptor(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&each, 1, 60000), 1);
    std::array<completion, 2> some;
    EXPECT_EQ(queue.poll(some), 1u);
    EXPECT_EQ(some[0].syndrome, flushed);
}

TEST(CompletionEvents, CallAFunctionInsteadOfADescriptor)
{
    unsigned calls = 0;
    {
        verbs_ends ends({.completions = {.entries = 256, .on_event = [&] { ++calls; }}});
        ends.connect();
        EXPECT_EQ(ends.completions[0]->descriptor(), -1);
        ends.write(0, 10);
        ends.run();
        EXPECT_EQ(calls, 0u);
        ends.completions[0]->arm();
        ends.run();
        EXPECT_EQ(calls, 1u);
        ends.write(0, 10);
        ends.run();
        EXPECT_EQ(calls, 1u) << "it was armed once";
        ends.completions[0]->arm();
    }
    EXPECT_EQ(calls, 1u) << "the queue is gone";
}

TEST(CompletionEvents, AreNotThereOnRequest)
{
    unsigned calls = 0;
    verbs_ends ends({.completions = {.entries = 256, .events = false, .on_event = [&] { ++calls; }}});
    ends.connect();
    EXPECT_EQ(ends.completions[0]->descriptor(), -1);
    ends.write(0, 10);
    ends.completions[0]->arm();
    ends.run();
    EXPECT_EQ(calls, 0u);
    EXPECT_THAT(ends.poll(0), SizeIs(1));
}

TEST(CompletionEvents, TellOfAnOverrun)
{
    verbs_ends ends({.completions = {.entries = 1, .overrun = completion_overrun::fail}});
    ends.connect();
    ends.write(0, 10);
    EXPECT_THAT(ends.poll(0), SizeIs(1));
    ends.write(0, 10);
    ends.write(0, 10);
    EXPECT_THAT(ends.poll(0), SizeIs(1));
    ends.completions[0]->arm();
    ends.run();
    EXPECT_TRUE(is_notified(*ends.completions[0]));
    EXPECT_TRUE(ends.completions[0]->overrun());
}

TEST(CompletionEvents, GoToNoOtherDescriptorWhenTheQueueIsDestroyed)
{
    verbs_ends ends;
    ends.connect();
    ends.completions[0]->arm();
    ends.completions[0].reset();
    std::array<int, 8> ours{}; // one of them has the number of the old one, if that is free
    for (int& each : ours)
        each = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ends.write(0, 10);
    ends.run();
    for (const int each : ours) {
        std::uint64_t count = 0;
        EXPECT_EQ(read(each, &count, sizeof count), -1) << "of descriptor " << each;
        close(each);
    }
}

TEST(CompletionEvents, TellNothingOfWhatTheyHaveToldOf)
{
    verbs_ends ends;
    ends.connect();
    ends.completions[0]->arm();
    ends.write(0, 10);
    ends.run();
    EXPECT_TRUE(is_notified(*ends.completions[0]));
    ends.completions[0]->arm(); // the completion has not been read
    ends.run();
    EXPECT_FALSE(is_notified(*ends.completions[0]));
    ends.write(0, 10);
    ends.run();
    EXPECT_TRUE(is_notified(*ends.completions[0]));
    EXPECT_THAT(ends.poll(0), SizeIs(2));
}

TEST(CompletionEvents, TakeAFirstArmingWordOfZeros)
{
    wired_ports ports(engine_mode::inline_worker);
    const device cpu = device::open("cpu");
    const memory record = cpu.allocate(8, memory_kind::cpu_device, 64);
    auto* const words = static_cast<std::uint32_t*>(record.cpu_address());
    words[1] = 0xffffffff; // which nobody writes who arms the queue
    const rdma_device at(ports.get(0), {.address = "10.0.0.1", .application_turns = true});
    completion_queue queue(ports.get(0), cpu, {.record = {.of = &record}});
    posted_pair pair(at, cpu, queue, queue);
    pair->modify(rdma_state::init, init_attributes());
    pair.post_receive(pointer(1, 1, 1));
    pair->modify(rdma_state::error);
    ports.get(0).turn();
    EXPECT_FALSE(is_notified(queue));
    weftio_store_release_sys_u32(&words[1], 0);
    for (int each = 0; each < 3; ++each)
        ports.get(0).turn();
    EXPECT_TRUE(is_notified(queue));
}

/// The peer acknowledges a message before it answers it, and a program that waits for both relies on that order.
TEST(CompletionEvents, CompleteWhatTheAnswerOfThePeerFollows)
{
    verbs_ends ends;
    ends.connect();
    ends.receive(0);
    ends.receive(1);
    const auto turns_of = [&](unsigned end) {
        for (int each = 0; each < 8; ++each)
            ends.at(end).turn();
    };
    ends.send(0, 10);
    turns_of(0);
    turns_of(1);
    ends.send(1, 10);
    turns_of(1); // the acknowledgment and the answer are both on the wire
    EXPECT_THAT(reported_by(ends.poll(0)), ElementsAre(reported{sent, 0, 0}, reported{received, 0, 0}));
}

TEST(CompletionEvents, CompleteTheEntryThatFailsAheadOfWhatItFlushes)
{
    verbs_ends ends;
    ends.connect();
    ends.receive(0);
    ends.pair(0).post(WEFTIO_OPCODE_RDMA_WRITE, {pointer(8, 0x55555500, 0), ends.memory(0).local(0, 8)}); // a wrong key
    const std::vector<completion> all = ends.poll(0);
    ASSERT_THAT(all, SizeIs(2));
    EXPECT_EQ(all[0].opcode, send_error);
    EXPECT_NE(all[0].syndrome, flushed);
    EXPECT_EQ(all[1].opcode, receive_error);
    EXPECT_EQ(all[1].syndrome, flushed);
}

} // namespace weftio::test
