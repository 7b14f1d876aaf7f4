// Queue pairs that have much to move, by copies or by packets, wait while another one is in a hurry: they have their
// turns one after the other.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "nic/soft/rdma/rdma_unit.hpp"
#include "two_ends.hpp"

namespace weftio::test {

namespace {

constexpr std::size_t long_bytes = 48 * 1024;
constexpr unsigned turns_to_a_deferred = nic::soft::turn_shares::turns_to_a_deferred;

/// Two queue pairs of one port that are connected to each other.
struct pair_of_one_port {
    explicit pair_of_one_port(two_ends& at) : near(at.at(0)), end(at.at(1))
    {
        nic::rdma_connection to = at.connection(0), back = at.connection(1);
        back.peer_queue = near.number();
        to.peer_queue = end.number();
        near.connect(to);
        end.connect(back);
    }
    fake_pair near, end;
};

struct deferred_case {
    std::uint32_t opcode;
    bool packets; ///< port_options::rdma_by_packet
};

/// Movers, which have many long messages to move, and one in a hurry, which writes 8 bytes, waits, and writes again.
class RdmaDeferred : public testing::TestWithParam<deferred_case> {
 protected:
    static constexpr unsigned count = 6, messages = 40;

    RdmaDeferred()
    {
        for (unsigned each = 0; each < count; ++each)
            movers.push_back(std::make_unique<pair_of_one_port>(ends));
    }
    ~RdmaDeferred() override
    {
        for (const auto& each : movers)
            each->near.nic().stop_sending();
    }
    void move(pair_of_one_port& of)
    {
        for (unsigned message = 0; message < messages; ++message)
            of.near.post(GetParam().opcode, {ends.memory(1).remote_at(0), ends.memory(0).local(0, long_bytes)});
        of.near.push();
    }
    /// One trip of the pair in a hurry.
    void trip()
    {
        const std::uint32_t position = hurried.near.post(
            WEFTIO_OPCODE_RDMA_WRITE, {ends.memory(1).remote_at(60'000), ends.memory(0).local(60'000, 8)});
        hurried.near.push();
        for (unsigned turns = 0; hurried.near.sent().position != (position & 0xffff); ++turns, ++port_turns) {
            ASSERT_LT(turns, 8u);
            ends.at(0).turn();
        }
    }
    void trips(unsigned many)
    {
        for (; many != 0; --many)
            ASSERT_NO_FATAL_FAILURE(trip());
    }
    /// Of the end that asks, which is the one that moves them.
    std::uint64_t turns_of(const pair_of_one_port& pair)
    {
        return ends.unit(0).find(pair.near.number())->turns.value();
    }
    std::vector<std::uint64_t> turns_of_all()
    {
        std::vector<std::uint64_t> all;
        for (const auto& each : movers)
            all.push_back(turns_of(*each));
        return all;
    }
    static std::uint64_t packets_of(const pair_of_one_port& pair)
    {
        const nic::rdma_counters counted = pair.near.nic().counters();
        return std::max(counted.packets, counted.answers);
    }

    two_ends ends{ends_at(true, GetParam().packets)};
    pair_of_one_port hurried{ends};
    std::vector<std::unique_ptr<pair_of_one_port>> movers;
    unsigned port_turns = 0;
};

TEST_P(RdmaDeferred, HaveATurnOneAfterTheOtherAndAsManyBytesAsAPacketATurn)
{
    for (const auto& each : movers)
        move(*each);
    trips(20); // some have to be seen first
    const std::vector<std::uint64_t> turns = turns_of_all();
    std::vector<std::uint64_t> packets;
    for (const auto& each : movers)
        packets.push_back(packets_of(*each));
    port_turns = 0;
    trips(600);
    std::uint64_t all_turns = 0, most = 0, least = UINT64_MAX;
    for (unsigned each = 0; each < count; ++each) {
        all_turns += turns_of(*movers[each]) - turns[each];
        const std::uint64_t moved = packets_of(*movers[each]) - packets[each];
        most = std::max(most, moved);
        least = std::min(least, moved);
    }
    EXPECT_LE(all_turns, port_turns / turns_to_a_deferred + 8);
    EXPECT_GE(least, port_turns / 2) << "of " << port_turns << " turns";
    EXPECT_LE(most, port_turns * 5 / 2);
    EXPECT_LE(most - least, most / 4) << "all have the same share";
}

/// Its peer writes 8 bytes at a time, which it has to acknowledge.
TEST_P(RdmaDeferred, AnswerInEveryTurn)
{
    for (const auto& each : movers)
        move(*each);
    trips(20);
    fake_pair& peer = movers[3]->end;
    for (unsigned write = 0; write < 20; ++write) {
        const std::uint32_t position =
            peer.post(WEFTIO_OPCODE_RDMA_WRITE, {ends.memory(0).remote_at(60'000), ends.memory(1).local(60'000, 8)});
        peer.push();
        unsigned waited = 0;
        for (; peer.sent().position != (position & 0xffff); ++waited) {
            ASSERT_LT(waited, 100u);
            trips(1);
        }
        EXPECT_LE(waited, 4u) << "trips of another queue pair";
    }
}

TEST_P(RdmaDeferred, HaveEveryTurnAgainWhenNobodyIsInAHurry)
{
    for (const auto& each : movers)
        move(*each);
    trips(40);
    for (unsigned turns = 0; turns < nic::soft::turn_shares::turns_until_calm + 1; ++turns)
        ends.at(0).turn();
    const std::vector<std::uint64_t> before = turns_of_all();
    for (unsigned turns = 0; turns < 5; ++turns)
        ends.at(0).turn();
    for (unsigned each = 0; each < count; ++each)
        EXPECT_GE(turns_of_all()[each] - before[each], 5u) << each;
    EXPECT_TRUE(ends.run_until([&] {
        return std::all_of(movers.begin(), movers.end(),
                           [](const auto& each) { return each->near.nic().counters().done == messages; });
    }));
    if (GetParam().opcode == WEFTIO_OPCODE_RDMA_WRITE) {
        EXPECT_EQ(std::memcmp(ends.memory(0).data(), ends.memory(1).data(), long_bytes), 0);
    }
    for (const auto& each : movers)
        expect_conserved(each->near.nic().counters());
}

TEST_P(RdmaDeferred, MayEndAndBeginAgainMeanwhile)
{
    for (unsigned round = 0; round < 20; ++round) {
        for (const auto& each : movers)
            move(*each);
        trips(10 + round % 7);
        const unsigned one = round % count, other = (round + 1) % count;
        movers[one]->near.close();
        movers[one] = std::make_unique<pair_of_one_port>(ends);
        movers[other]->near.restart();
        movers[other]->end.restart();
        trips(3);
        for (auto& each : movers) {
            each->near.nic().stop_sending();
            each = std::make_unique<pair_of_one_port>(ends);
        }
    }
    EXPECT_FALSE(hurried.near.nic().failed());
}

/// As collective operations do: each sends a piece and a number behind it, and all wait for all.
TEST(RdmaExchange, OfManyQueuePairsTakesFewTurns)
{
    constexpr unsigned count = 64;
    two_ends ends{true};
    std::vector<std::unique_ptr<pair_of_one_port>> pairs;
    for (unsigned each = 0; each < count; ++each)
        pairs.push_back(std::make_unique<pair_of_one_port>(ends));
    unsigned turns = 0;
    for (unsigned exchange = 1; exchange <= 8; ++exchange) {
        for (const auto& each : pairs) {
            for (const std::uint32_t bytes : {64u, 8u})
                each->near.post(WEFTIO_OPCODE_RDMA_WRITE,
                                {ends.memory(1).remote_at(0), ends.memory(0).local(0, bytes)});
            each->near.push();
        }
        turns = 0; // of the last one: before the first, queue pairs sleep
        while (std::ranges::any_of(pairs,
                                   [&](const auto& each) { return each->near.sent().position != exchange * 2 - 1; })) {
            ASSERT_LT(++turns, 10 * count);
            ends.at(0).turn();
        }
    }
    EXPECT_LT(turns, count / 4) << "none is deferred, because none has much to move";
}

constexpr deferred_case cases[] = {{WEFTIO_OPCODE_RDMA_WRITE, false},
                                   {WEFTIO_OPCODE_RDMA_READ, false},
                                   {WEFTIO_OPCODE_RDMA_WRITE, true}}; // answers to READs are packets that never wait

INSTANTIATE_TEST_SUITE_P(Of, RdmaDeferred, testing::ValuesIn(cases),
                         [](const testing::TestParamInfo<deferred_case>& tested) {
                             return std::string(tested.param.packets ? "PacketsOf" : "CopiesOf") +
                                    (tested.param.opcode == WEFTIO_OPCODE_RDMA_WRITE ? "Writes" : "Reads");
                         });

} // namespace

} // namespace weftio::test
