// Two queue pairs of one port count a message as by packets, whether packets are built or not.
#include <functional>

#include <fmt/format.h>

#include "two_ends.hpp"
#include "weftio/refusal.hpp"

namespace weftio::test {

namespace {

constexpr std::size_t packets = 10, bytes = packets * 1024 - 24; ///< of a message

struct message_case {
    static constexpr rdma_service rc = rdma_service::reliable, uc = rdma_service::unreliable;

    const char* name;
    std::function<void(two_ends&)> post; ///< at the first end, to the second
    rdma_service service = rdma_service::reliable;
    bool fails = true;                              ///< the first end's queue, or its entry is done
    std::function<void(two_ends&)> post_later = {}; ///< once the peer was not ready
    friend void PrintTo(const message_case& one, std::ostream* to) { *to << one.name; }
};

segment ours(two_ends& ends, std::size_t count = bytes)
{
    return ends.memory(0).local(0, count);
}
/// A key that the second end does not have.
segment wrong_key(two_ends& ends)
{
    return remote(ends.memory(1).address(), ends.memory(1).region.lkey() ^ 1);
}
void post(two_ends& ends, std::uint32_t opcode, const std::vector<segment>& body, std::uint32_t immediate = 0)
{
    ends.queue(0).post(opcode, body, immediate);
}
void receive(two_ends& ends, std::size_t count)
{
    ends.queue(1).post_receive({ends.memory(1).local(two_ends::memory_bytes / 2, count)});
}
void write_to(two_ends& ends, const segment& target)
{
    post(ends, WEFTIO_OPCODE_RDMA_WRITE, {target, ours(ends)});
}
void send_into(two_ends& ends, std::size_t room, std::size_t count = bytes)
{
    if (room != 0)
        receive(ends, room);
    post(ends, WEFTIO_OPCODE_SEND, {ours(ends, count)});
}
void write_with_immediate(two_ends& ends)
{
    post(ends, WEFTIO_OPCODE_RDMA_WRITE_IMMEDIATE, {ends.memory(1).remote_at(0), ours(ends)}, 7);
}

/// What both ends have counted, and why the second has refused.
std::string counts_of(two_ends& ends)
{
    const nic::rdma_counters asked = ends.queue(0).nic().counters(), count = ends.queue(1).nic().counters();
    std::string all = fmt::format("done {} failed {} flushed {} packets {} repeated {} rnr {}; ", asked.done,
                                  asked.failed, asked.flushed, asked.packets, asked.repeated, asked.rnr_naks);
    all += fmt::format(
        "requests {} executed {} ahead {} not ready {} refused {} ignored {}; receives {} filled {} failed {};",
        count.requests, count.executed, count.out_of_sequence, count.not_ready, count.refused, count.ignored,
        count.received, count.filled, count.receive_failed);
    for (const rdma_refused& one : ends.queue(1).nic().dump().refused_by)
        all += fmt::format(" {} {}", to_string(one.reason), one.count);
    return all;
}

std::string outcome(const message_case& tested, bool by_packet)
{
    two_ends ends(ends_at(true, by_packet), tested.service);
    for (unsigned end = 0; end < 2; ++end) {
        nic::rdma_connection to = ends.connection(end);
        to.timeout = 0;
        to.min_rnr_timer = 28; // 164 ms: the receive is posted before
        ends.queue(end).connect(to);
    }
    tested.post(ends);
    ends.queue(0).push();
    ends.run();
    if (tested.post_later)
        tested.post_later(ends);
    EXPECT_TRUE(ends.run_until([&] {
        const nic::rdma_counters count = ends.queue(0).nic().counters();
        return count.enqueued != 0 && count.enqueued == count.done + count.failed + count.flushed;
    }));
    EXPECT_EQ(ends.queue(0).nic().failed(), tested.fails);
    for (unsigned end = 0; end < 2; ++end)
        expect_conserved(ends.queue(end).nic().counters());
    return counts_of(ends);
}

class RdmaAlike : public testing::TestWithParam<message_case> {};

} // namespace

TEST_P(RdmaAlike, CountsWithAndWithoutPackets)
{
    const std::string with = outcome(GetParam(), true);
    EXPECT_EQ(outcome(GetParam(), false), with);
}

TEST(RdmaAlikeAnswers, OfAReadCountAsPackets)
{
    for (const bool by_packet : {false, true}) {
        two_ends ends(ends_at(true, by_packet));
        ends.connect();
        post(ends, WEFTIO_OPCODE_RDMA_READ, {ends.memory(1).remote_at(0), ours(ends)});
        ends.queue(0).push();
        ends.run();
        EXPECT_EQ(ends.queue(0).nic().counters().done, 1u);
        EXPECT_EQ(ends.queue(0).nic().counters().answers, packets);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Of, RdmaAlike,
    testing::Values(
        message_case{"Write", [](two_ends& ends) { write_to(ends, ends.memory(1).remote_at(0)); }, message_case::rc,
                     false},
        message_case{"WriteByAWrongKey", [](two_ends& ends) { write_to(ends, wrong_key(ends)); }},
        message_case{
            "WriteBehindTheRegion",
            [](two_ends& ends) { write_to(ends, ends.memory(1).remote_at(two_ends::memory_bytes - bytes + 1)); }},
        message_case{"TwoWritesByAWrongKey",
                     [](two_ends& ends) {
                         write_to(ends, wrong_key(ends));
                         write_to(ends, ends.memory(1).remote_at(0));
                     }},
        message_case{"SendThatIsTooLong", [](two_ends& ends) { send_into(ends, 2500); }},
        message_case{"SendOf40PacketsThatIsTooLong", [](two_ends& ends) { send_into(ends, 20'500, 40 * 1024); }},
        message_case{"UnreliableSendOf40PacketsThatIsTooLong",
                     [](two_ends& ends) { send_into(ends, 20'500, 40 * 1024); }, message_case::uc, false},
        message_case{"ReadBehindTheRegion",
                     [](two_ends& ends) {
                         post(ends, WEFTIO_OPCODE_RDMA_READ,
                              {ends.memory(1).remote_at(two_ends::memory_bytes - bytes + 1), ours(ends)});
                     }},
        message_case{"AtomicByAWrongKey",
                     [](two_ends& ends) {
                         post(ends, WEFTIO_OPCODE_FETCH_ADD, {wrong_key(ends), atomic(1), ours(ends, 8)});
                     }},
        message_case{"SendIntoNothingOfOurs",
                     [](two_ends& ends) {
                         ends.queue(1).post_receive({ends.memory(1).local(0, 3000), pointer(9000, 0x77777777, 0)});
                         post(ends, WEFTIO_OPCODE_SEND, {ours(ends)});
                     }},
        message_case{"SendThatInvalidatesNothing",
                     [](two_ends& ends) {
                         receive(ends, bytes);
                         post(ends, WEFTIO_OPCODE_SEND_INVALIDATE, {ours(ends)}, 0x1234);
                     },
                     message_case::rc, false},
        message_case{"SendBeforeItsReceive", [](two_ends& ends) { send_into(ends, 0); }, message_case::rc, false,
                     [](two_ends& ends) { receive(ends, bytes); }},
        message_case{"ImmediateBeforeItsReceive", write_with_immediate, message_case::rc, false,
                     [](two_ends& ends) { receive(ends, bytes); }},
        message_case{"UnreliableWriteByAWrongKey", [](two_ends& ends) { write_to(ends, wrong_key(ends)); },
                     message_case::uc, false},
        message_case{"UnreliableWriteOf40Packets",
                     [](two_ends& ends) {
                         post(ends, WEFTIO_OPCODE_RDMA_WRITE, {wrong_key(ends), ours(ends, 40 * 1024)});
                         write_to(ends, ends.memory(1).remote_at(0));
                     },
                     message_case::uc, false},
        message_case{"UnreliableSendWithoutReceive", [](two_ends& ends) { send_into(ends, 0); }, message_case::uc,
                     false},
        message_case{"UnreliableSendThatIsTooLong", [](two_ends& ends) { send_into(ends, 2500); }, message_case::uc,
                     false}),
    [](const testing::TestParamInfo<message_case>& tested) { return std::string(tested.param.name); });

} // namespace weftio::test
