// A queue pair that only waits sleeps: it has no turn before its timer, an entry or a packet.
#include <array>

#include <gtest/gtest.h>

#include "nic/soft/rdma/rdma_unit.hpp"
#include "two_ends.hpp"

namespace weftio::test {

namespace {

class RdmaWaiting : public testing::Test {
 protected:
    static constexpr unsigned some_turns = 1000;
    /// A sleeping queue has a turn in 1,024 looks: what its record does not tell waits for that.
    static constexpr std::uint64_t turns_of_a_sleeper = 1;

    void connect(std::uint8_t timeout, std::uint8_t rnr_timer)
    {
        for (unsigned end = 0; end < 2; ++end) {
            nic::rdma_connection to = ends.connection(end);
            to.timeout = timeout;
            to.min_rnr_timer = rnr_timer;
            ends.queue(end).connect(to);
        }
    }
    void post(std::uint32_t opcode)
    {
        std::vector<segment> body{ends.memory(0).local(0, 8)};
        if (opcode != WEFTIO_OPCODE_SEND)
            body.insert(body.begin(), ends.memory(1).remote_at(0));
        ends.queue(0).post(opcode, body);
        ends.queue(0).push();
    }
    nic::rdma_counters counters() { return ends.queue(0).nic().counters(); }
    std::uint64_t turns() { return ends.unit(0).find(ends.queue(0).number())->turns.value(); }
    void let_pass(unsigned count)
    {
        for (; count != 0; --count)
            ends.at(0).turn();
    }
    /// The fewest turns that the queue pair had in some turns of its port, of tries in which it has sent nothing.
    std::uint64_t turns_while_it_waits()
    {
        std::uint64_t fewest = UINT64_MAX;
        for (unsigned tried = 0; tried < 5; ++tried) {
            const std::uint64_t packets = counters().packets, before = turns();
            let_pass(some_turns);
            if (counters().packets == packets)
                fewest = std::min(fewest, turns() - before);
        }
        return fewest;
    }

    two_ends ends{false};
};

constexpr std::uint8_t four_seconds = 20, half_a_second = 0, tens_of_microseconds = 2;

TEST_F(RdmaWaiting, ForAReceiveSleepsUntilItsTimer)
{
    connect(four_seconds, half_a_second);
    post(WEFTIO_OPCODE_SEND);
    ends.run();
    ASSERT_EQ(counters().rnr_naks, 1u);
    let_pass(2 * nic::soft::queue_pair::turns_waiting);
    EXPECT_LE(turns_while_it_waits(), turns_of_a_sleeper);
    ends.queue(1).post_receive({ends.memory(1).local(0, 8)});
    EXPECT_TRUE(ends.run_until([&] { return counters().done == 1; })) << "its timer wakes it";
}

TEST(RdmaFailed, PairsOfOnePortLetEachOtherSleep)
{
    two_ends ends{true};
    ends.connect();
    ends.queue(0).post(WEFTIO_OPCODE_RDMA_WRITE,
                       {ends.memory(1).remote_at(2 * two_ends::memory_bytes), ends.memory(0).local(0, 8)});
    ends.queue(0).push();
    auto turns = [&](unsigned end) { return ends.unit(0).find(ends.queue(end).number())->turns.value(); };
    auto let_pass = [&](unsigned count) {
        for (; count != 0; --count)
            ends.at(0).turn();
    };
    let_pass(1000);
    const std::array before{turns(0), turns(1)};
    let_pass(500);
    EXPECT_LE(turns(0) - before[0], 1u);
    EXPECT_LE(turns(1) - before[1], 1u);
}

TEST_F(RdmaWaiting, ForASilentPeerSleepsUntilAnEntry)
{
    connect(four_seconds, half_a_second);
    post(WEFTIO_OPCODE_RDMA_WRITE);
    let_pass(2 * nic::soft::queue_pair::turns_waiting);
    ends.ports.take(1);
    ASSERT_EQ(counters().packets, 1u);
    EXPECT_LE(turns_while_it_waits(), turns_of_a_sleeper);
    post(WEFTIO_OPCODE_RDMA_WRITE);
    let_pass(2);
    EXPECT_EQ(counters().packets, 2u) << "its record wakes it";
    ends.queue(0).nic().stop_sending();
}

TEST_F(RdmaWaiting, ForASilentPeerIsWokenByItsAnswer)
{
    connect(four_seconds, half_a_second);
    post(WEFTIO_OPCODE_RDMA_WRITE);
    let_pass(4 * nic::soft::queue_pair::turns_waiting);
    const std::uint64_t asleep = turns();
    ends.at(1).turn();
    ends.at(1).turn();
    let_pass(2);
    EXPECT_EQ(counters().done, 1u);
    EXPECT_GT(turns(), asleep);
}

/// What it asks with is one packet, however much waits behind it.
TEST_F(RdmaWaiting, ForAReceiveAsksWithOnePacket)
{
    connect(four_seconds, tens_of_microseconds);
    for (unsigned sends = 0; sends < 8; ++sends)
        post(WEFTIO_OPCODE_SEND);
    EXPECT_TRUE(ends.run_until([&] { return counters().rnr_naks >= 5; }));
    EXPECT_LE(counters().repeated, counters().rnr_naks);
    ends.queue(0).nic().stop_sending();
}

} // namespace

} // namespace weftio::test
