// Queue pairs of datagrams (UD): what arrives, and what fails.
#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <numeric>

#include <gmock/gmock.h>

#include "datagram_ends.hpp"
#include "software_nic.hpp"
#include "weftio/error.hpp"

namespace weftio::test {

namespace {

using testing::ElementsAre;
using testing::Field;

/// Receives are at this offset of the memory.
constexpr std::size_t room_at = 1 << 17;

class Datagrams : public testing::TestWithParam<bool> {
 protected:
    void receive(unsigned end, std::uint32_t bytes = 4096)
    {
        ends.pair(end).post_receive(ends.memory(end).local(room_at, bytes));
    }
    std::vector<std::uint8_t> payload(unsigned from, std::size_t bytes) { return ends.bytes_at(from, 0, bytes); }

    datagram_ends ends{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(At, Datagrams, testing::Bool(),
                         [](const auto& one_port) { return one_port.param ? "OnePort" : "TwoPorts"; });

bool has_right_checksum(const std::vector<std::uint8_t>& ipv4)
{
    std::uint32_t sum = 0;
    for (std::size_t at = 0; at != 20; at += 2)
        sum += static_cast<std::uint32_t>(ipv4[at] << 8 | ipv4[at + 1]);
    return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

} // namespace

TEST_P(Datagrams, ArriveBehindTheIpHeaderOfTheirPacket)
{
    ends.start();
    receive(1);
    ends.send_to(ends.peer(1), 101);
    const std::vector<completion> came = ends.poll(1), sent = ends.poll(0);
    ASSERT_EQ(came.size(), 1u);
    EXPECT_EQ(came[0].opcode, reported_as::received);
    EXPECT_EQ(came[0].bytes, 141u);
    EXPECT_EQ(came[0].source_queue, ends.pair(0)->number());
    EXPECT_THAT(reported_by(sent), ElementsAre(reported{reported_as::sent, 0, 0}));
    const std::vector<std::uint8_t> zeros = ends.bytes_at(1, room_at, 20), ip = ends.bytes_at(1, room_at + 20, 20);
    EXPECT_EQ(zeros, std::vector<std::uint8_t>(20));
    EXPECT_EQ(ip[0], 0x45);
    EXPECT_EQ(ip[1], 8) << "traffic class";
    EXPECT_EQ(ip[8], 3) << "hop limit";
    EXPECT_TRUE(has_right_checksum(ip));
    EXPECT_EQ(std::vector(ip.begin() + 12, ip.end()), (std::vector<std::uint8_t>{10, 0, 0, 1, 10, 0, 0, 2}));
    EXPECT_EQ(ends.bytes_at(1, room_at + 40, 101), payload(0, 101));
}

TEST_P(Datagrams, TellTheKindOfTheirHeaderInTheCompletion)
{
    ends.start();
    receive(1);
    ends.send_to(ends.peer(1), 8);
    ends.run();
    const auto* const ring = static_cast<const weftio_cqe*>(ends.completions[1]->ring());
    EXPECT_EQ(weftio_swap32(ring[0].flags_rqpn_be), WEFTIO_CQE_DATAGRAM_IPV4 | ends.pair(0)->number());
}

TEST_P(Datagrams, MayHaveNoPayloadAndAnImmediate)
{
    ends.start();
    receive(1);
    ends.send_to(ends.peer(1), 0, 0, WEFTIO_OPCODE_SEND_IMMEDIATE, 0x12345678);
    EXPECT_THAT(ends.poll(1), ElementsAre(testing::AllOf(
                                  Field(&completion::opcode, WEFTIO_CQE_OPCODE_RESPONDER_SEND_IMMEDIATE),
                                  Field(&completion::immediate, 0x12345678u), Field(&completion::bytes, 40u))));
}

TEST_P(Datagrams, GoToTheirSender)
{
    ends.start();
    receive(0);
    ends.send_to(ends.peer(0), 64);
    EXPECT_EQ(ends.poll(0).size(), 2u);
    EXPECT_EQ(ends.bytes_at(0, room_at + 40, 64), payload(0, 64));
}

TEST_P(Datagrams, AreAnsweredFromWhereTheyCame)
{
    ends.start();
    for (std::uint32_t round = 0; round != 300; ++round) {
        const unsigned from = round % 2;
        receive(1 - from);
        ends.send_to(ends.peer(1 - from), round, from);
        ASSERT_EQ(ends.poll(1 - from).size(), round == 0 ? 1u : 2u) << round; // and its own SEND before
        ASSERT_EQ(ends.bytes_at(1 - from, room_at + 40, round), payload(from, round));
    }
    EXPECT_EQ(ends.pair(0)->counters().packets, 150u);
    EXPECT_EQ(ends.pair(0)->counters().executed, 150u);
}

TEST_P(Datagrams, WithoutAReceiveAreDroppedAndCounted)
{
    ends.start();
    ends.send_to(ends.peer(1), 8);
    EXPECT_TRUE(ends.poll(1).empty());
    EXPECT_EQ(ends.poll(0).size(), 1u) << "nobody waits for an answer";
    EXPECT_EQ(ends.pair(1)->counters().not_ready, 1u);
    receive(1);
    ends.send_to(ends.peer(1), 8);
    EXPECT_EQ(ends.poll(1).size(), 1u);
}

TEST_P(Datagrams, WithAnotherKeyAreDroppedAndCounted)
{
    ends.start();
    receive(1);
    datagram_peer to = ends.peer(1);
    to.queue_key = 0x22222222;
    ends.send_to(to, 8);
    EXPECT_TRUE(ends.poll(1).empty());
    const rdma_dump dump = ends.pair(1)->dump();
    ASSERT_EQ(dump.refused_by.size(), 1u);
    EXPECT_EQ(dump.refused_by[0].reason, refusal::wrong_queue_key);
    EXPECT_EQ(ends.pair(1)->counters().refused, 1u);
    EXPECT_EQ(dump.receives_posted, 1u);
    ends.pair(1)->modify(rdma_state::ready_to_send, {.queue_key = 0x22222222});
    ends.send_to(to, 8);
    EXPECT_EQ(ends.poll(1).size(), 1u);
}

TEST_P(Datagrams, HaveTheKeyOfTheirQueuePairIfTheHighestBitIsSet)
{
    ends.start();
    receive(1);
    datagram_peer to = ends.peer(1);
    to.queue_key = 0x80000000 | 0x22222222;
    ends.send_to(to, 8);
    EXPECT_EQ(ends.poll(1).size(), 1u);
}

TEST_P(Datagrams, ThatAreLongerThanTheirReceiveFailTheQueuePair)
{
    ends.start();
    receive(1, 40 + 63);
    receive(1);
    ends.send_to(ends.peer(1), 64);
    EXPECT_THAT(reported_by(ends.poll(1)),
                ElementsAre(reported{reported_as::receive_error, 0, WEFTIO_SYNDROME_LOCAL_LENGTH},
                            reported{reported_as::receive_error, 1, reported_as::flushed}));
    EXPECT_EQ(ends.pair(1)->state(), rdma_state::error);
    EXPECT_EQ(ends.pair(0)->state(), rdma_state::ready_to_send);
}

TEST_P(Datagrams, ThatAreLongerThanThePathMtuFailTheirEntry)
{
    ends.start();
    const std::uint32_t most = ends.devices[0]->most_path_mtu();
    receive(1);
    receive(1);
    ends.send_to(ends.peer(1), most);
    EXPECT_EQ(ends.poll(1).size(), 1u);
    ends.send_to(ends.peer(1), most + 1);
    ends.send_to(ends.peer(1), 1);
    EXPECT_THAT(reported_by(ends.poll(0)),
                ElementsAre(reported{reported_as::sent, 0, 0},
                            reported{reported_as::send_error, 2, WEFTIO_SYNDROME_LOCAL_LENGTH},
                            reported{reported_as::send_error, 4, reported_as::flushed}));
    EXPECT_EQ(ends.pair(0)->state(), rdma_state::send_queue_error);
}

TEST_P(Datagrams, ArriveInSqeAndAreSentAgainInRts)
{
    ends.start();
    receive(0);
    receive(1);
    ends.post_bad(0);
    ends.run();
    ASSERT_EQ(ends.pair(0)->state(), rdma_state::send_queue_error);
    ends.send_to(ends.peer(0), 8, 1);
    EXPECT_EQ(ends.poll(0).size(), 2u) << "the bad entry, and the datagram";
    ends.pair(0)->modify(rdma_state::ready_to_send);
    ends.send_to(ends.peer(1), 8);
    EXPECT_EQ(ends.poll(1).size(), 2u);
}

TEST_P(Datagrams, OfOtherOperationsAreRefused)
{
    ends.start();
    ends.pair(0).post(WEFTIO_OPCODE_RDMA_WRITE, {ends.memory(1).remote_at(0), ends.memory(0).local(0, 8)});
    const std::vector<completion> all = ends.poll(0);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].syndrome, WEFTIO_SYNDROME_LOCAL_QP_OPERATION);
    EXPECT_EQ(all[0].reason, static_cast<std::uint8_t>(refusal::unreliable));
}

TEST_P(Datagrams, HaveFlushesBetweenThem)
{
    ends.start();
    receive(1);
    receive(1);
    const segment good = ends.memory(0).local(0, 8);
    ends.send_to(ends.peer(1), 8);
    ends.pair(0).post(WEFTIO_OPCODE_DUMP, {good});
    ends.send_to(ends.peer(1), 8);
    EXPECT_EQ(ends.poll(1).size(), 2u);
    EXPECT_THAT(reported_by(ends.poll(0)),
                ElementsAre(reported{reported_as::sent, 0, 0}, reported{reported_as::sent, 2, 0},
                            reported{reported_as::sent, 3, 0}));
    EXPECT_EQ(ends.pair(0)->counters().packets, 2u);
    ends.pair(0).post(WEFTIO_OPCODE_DUMP, {pointer(8, ends.memory(0).region.lkey() ^ 1, ends.memory(0).address())});
    EXPECT_THAT(reported_by(ends.poll(0)),
                ElementsAre(reported{reported_as::send_error, 5, WEFTIO_SYNDROME_LOCAL_PROTECTION}));
    EXPECT_EQ(ends.pair(0)->state(), rdma_state::send_queue_error);
}

TEST_P(Datagrams, NameAnAddressOfTheirDevice)
{
    ends.start();
    datagram_peer to = ends.peer(1);
    to.gid_index = 1;
    ends.send_to(to, 8);
    const std::vector<completion> all = ends.poll(0);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].reason, static_cast<std::uint8_t>(refusal::wrong_source));
}

TEST_P(Datagrams, ToAGroupArriveAtAllThatAreAttached)
{
    const char* const group = "239.1.2.3";
    ends.start();
    for (unsigned end = 0; end < 2; ++end) {
        ends.pair(end)->attach(group);
        ends.pair(end)->attach(group); // is once
        receive(end);
        receive(end);
    }
    const datagram_peer all{.address = group, .queue = WEFTIO_MULTICAST_QUEUE, .mac = ends.devices[0]->mac_of(group)};
    EXPECT_EQ(all.mac, (std::array<std::uint8_t, 6>{1, 0, 0x5e, 1, 2, 3}));
    ends.send_to(all, 77);
    EXPECT_EQ(ends.poll(0).size(), 2u) << "its own copy, and the SEND";
    EXPECT_EQ(ends.poll(1).size(), 1u);
    for (unsigned end = 0; end < 2; ++end)
        EXPECT_EQ(ends.bytes_at(end, room_at + 40, 77), payload(0, 77));
    ends.pair(1)->detach(group);
    ends.send_to(all, 77);
    EXPECT_EQ(ends.poll(0).size(), 2u);
    EXPECT_TRUE(ends.poll(1).empty());
    EXPECT_THROW(ends.pair(1)->detach(group), error);
    EXPECT_THROW(ends.pair(1)->attach("10.0.0.9"), error);
}

TEST(DatagramsOfEngines, ArriveThoughAnotherEngineReceivesThem)
{
    const char* const group = "239.1.2.3";
    datagram_ends ends(false, 2); // what arrives does so at the second engine, and the queue pairs are at the first
    ends.start();
    ends.pair(1)->attach(group);
    for (unsigned each = 0; each < 2; ++each)
        ends.receive(1);
    ends.send_to(ends.peer(1), 8);
    ends.send_to({.address = group, .queue = WEFTIO_MULTICAST_QUEUE, .mac = ends.devices[0]->mac_of(group)}, 8);
    EXPECT_EQ(ends.poll(1).size(), 2u);
    EXPECT_EQ(software_nic(ends.at(1)).rdma(0).arrivals().delivered.value(), 2u);
}

TEST_P(Datagrams, WaitInSqd)
{
    ends.start();
    receive(1);
    ends.pair(0)->modify(rdma_state::send_queue_drained);
    ends.send_to(ends.peer(1), 8);
    EXPECT_TRUE(ends.poll(1).empty());
    EXPECT_FALSE(ends.pair(0)->draining());
    ends.pair(0)->modify(rdma_state::ready_to_send);
    EXPECT_EQ(ends.poll(1).size(), 1u);
}

TEST_P(Datagrams, FlushWhatIsPostedWhenTheQueuePairEnds)
{
    ends.start();
    receive(0);
    ends.pair(0)->modify(rdma_state::error);
    ends.send_to(ends.peer(1), 8);
    EXPECT_THAT(reported_by(ends.poll(0)),
                testing::UnorderedElementsAre(reported{reported_as::receive_error, 0, reported_as::flushed},
                                              reported{reported_as::send_error, 0, reported_as::flushed}));
    ends.pair(0).reset();
    ends.start(0);
    receive(1);
    ends.send_to(ends.peer(1), 8);
    EXPECT_EQ(ends.poll(1).size(), 1u);
}

TEST_P(Datagrams, HaveNoConnection)
{
    EXPECT_THROW(ends.pair(0)->connect(ends.pair(1)->address()), error);
    EXPECT_THROW(ends.pair(0)->modify(rdma_state::init, init_attributes()), error) << "no Q_Key, but rights";
}

/// More datagrams come than there are receives: no sender's take them all.
TEST(SeveralSenders, OfDatagramsShareFewReceives)
{
    constexpr std::uint32_t senders = 4, few = 4, rounds = 400;
    datagram_ends ends{true};
    ends.start();
    completion_queue done(ends.at(0), ends.cpu, {.entries = 256});
    std::deque<posted_pair> from;
    for (std::uint32_t each = 0; each != senders; ++each) {
        posted_pair& made = from.emplace_back(*ends.devices[0], ends.cpu, done, done,
                                              queue_pair_options{.service = rdma_service::datagram});
        made->modify(rdma_state::init, {.partition_key = std::uint16_t{0xffff}, .queue_key = usual_key});
        made->modify(rdma_state::ready_to_receive);
        made->modify(rdma_state::ready_to_send, {.send_psn = 0});
    }
    std::map<std::uint32_t, unsigned> taken;
    std::array<completion, 256> some;
    for (std::uint32_t round = 0; round != rounds; ++round) {
        for (std::uint32_t each = 0; each != few; ++each) {
            ends.receive(1);
            for (posted_pair& sender : from)
                sender.post(WEFTIO_OPCODE_SEND, named(ends.peer(1)));
        }
        ends.at(0).turn();
        for (std::size_t count = ends.completions[1]->poll(some), at = 0; at != count; ++at)
            ++taken[some[at].source_queue];
        done.poll(some);
    }
    for (posted_pair& sender : from)
        EXPECT_GE(taken[sender->number()], rounds * few / senders / 2);
}

} // namespace weftio::test
