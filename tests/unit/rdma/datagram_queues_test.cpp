// Datagrams of an rdma_queue: the functions that kernels have for them, and what the host makes for these.
#include "datagram_cases.hpp"

#include <chrono>
#include <cstring>
#include <string>

namespace weftio::test {

namespace {

using testing::HasSubstr;

class DatagramKernels : public testing::TestWithParam<std::tuple<const char*, bool>> {};

/// Two queue pairs, whose device functions the test calls itself, in the place of a kernel.
class RdmaDatagrams : public testing::Test {
 protected:
    static constexpr std::uint32_t depth = 64, header = WEFTIO_DEV_DATAGRAM_HEADER_BYTES, piece = 1024 + header;
    static constexpr rdma_queue_options options{
        .service = rdma_service::datagram, .entries = depth, .receive_entries = depth, .queue_key = 77};

    RdmaDatagrams()
    {
        for (std::uint32_t each = 0; each != ends.buffer(0).bytes; ++each)
            ends.buffer(0).address[each] = connection_byte(0, 0, each);
    }
    weftio_dev_datagram_peer peer(unsigned end, unsigned of = 0)
    {
        return ends.devices[of]->datagram_peer(ends.queue(end).address().peer());
    }
    weftio_dev_rdma* sender() { return ends.queue(0).handle(); }
    weftio_dev_rdma_recv* receives() { return ends.queue(1).receives().handle(); }
    void post(std::uint32_t count = 1)
    {
        for (std::uint32_t each = 0; each != count; ++each)
            ASSERT_EQ(weftio_dev_rdma_recv_post(receives(), ends.buffer(1), each * std::uint64_t{piece}, piece),
                      WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_rdma_recv_commit(receives()), WEFTIO_DEV_OK);
    }
    weftio_dev_rdma_message receive(std::int32_t expected = WEFTIO_DEV_OK)
    {
        weftio_dev_rdma_message message{};
        std::uint32_t count = 0, first = 0;
        EXPECT_EQ(weftio_dev_rdma_recv_wait(receives(), 1, patience_ns, &count, &first), expected);
        EXPECT_EQ(weftio_dev_rdma_recv_message(receives(), first, &message), expected);
        return message;
    }
    /// Sends bytes from `offset` of the memory on, and waits until they are sent.
    void send(const weftio_dev_datagram_peer& to, std::uint32_t offset, std::uint32_t bytes)
    {
        ASSERT_EQ(weftio_dev_rdma_send_to(sender(), to, ends.buffer(0), offset, bytes, WEFTIO_DEV_SEND_NONE),
                  WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_rdma_commit_wait(sender(), patience_ns), WEFTIO_DEV_OK);
    }
    void is_there(const weftio_dev_rdma_message& message, std::uint32_t offset, std::uint32_t bytes)
    {
        ASSERT_EQ(message.bytes, header + bytes);
        EXPECT_EQ(std::memcmp(message.buffer.address + header, ends.buffer(0).address + offset, bytes), 0);
    }

    const std::uint64_t patience_ns = std::uint64_t(std::chrono::nanoseconds(patience).count());
    public_pair ends{{false, engine_mode::thread}, options};
};

std::string words_of(const std::function<void()>& act)
{
    try {
        act();
    } catch (const error& told) {
        return told.what();
    }
    return "nothing was refused";
}

} // namespace

TEST_P(DatagramKernels, AnswerTheQueuePairThatAsked)
{
    datagram_cases({std::get<1>(GetParam()), engine_mode::thread}, std::get<0>(GetParam())).answer_all();
}

INSTANTIATE_TEST_SUITE_P(On, DatagramKernels, testing::Combine(testing::Values("cpu", "opencl"), testing::Bool()),
                         [](const auto& info) {
                             return std::string(std::get<0>(info.param)) +
                                    (std::get<1>(info.param) ? "OnePort" : "TwoPorts");
                         });

TEST(InlineDatagramKernels, DriveTheEngineOfTheirPort)
{
    datagram_cases({true, engine_mode::inline_worker}, "cpu").answer_all();
}

/// Messages without bytes take one position, others two: entries begin everywhere in the ring, and wrap.
TEST_F(RdmaDatagrams, ArriveFromEveryPositionOfTheRing)
{
    const weftio_dev_datagram_peer to = peer(1);
    std::uint32_t position = 0;
    for (std::uint32_t round = 0; round != 5 * depth; ++round) {
        const std::uint32_t bytes = round % 7 == 0 ? 0 : round % 3 == 0 ? 1024 : round, before = position;
        ASSERT_NO_FATAL_FAILURE(post());
        ASSERT_EQ(weftio_dev_rdma_enqueue_position(sender(),
                                                   weftio_dev_rdma_send_to_request(to, ends.buffer(0), round, bytes),
                                                   WEFTIO_DEV_SEND_NONE, &position),
                  WEFTIO_DEV_OK);
        EXPECT_EQ(position, before);
        position += bytes == 0 ? 1 : 2;
        ASSERT_EQ(weftio_dev_rdma_commit_wait(sender(), patience_ns), WEFTIO_DEV_OK) << round;
        const weftio_dev_rdma_message message = receive();
        ASSERT_NO_FATAL_FAILURE(is_there(message, round, bytes)) << round;
        EXPECT_EQ(message.source_queue, ends.queue(0).number());
        EXPECT_EQ(message.kind, std::uint32_t{WEFTIO_DEV_RDMA_SEND});
        EXPECT_EQ(message.is_ipv4, 1u);
        EXPECT_EQ(weftio_dev_datagram_is_from(message, peer(0, 1)), 1u);
        EXPECT_EQ(weftio_dev_datagram_is_from(message, to), 0u) << "that is the receiver";
    }
}

TEST_F(RdmaDatagrams, FillTheRingAndNoMore)
{
    std::uint32_t sent = 0;
    ASSERT_NO_FATAL_FAILURE(post(depth / 2));
    while (weftio_dev_rdma_send_to_imm(sender(), peer(1), ends.buffer(0), sent, 100 + sent, sent,
                                       WEFTIO_DEV_SEND_NONE) == WEFTIO_DEV_OK)
        ++sent;
    EXPECT_EQ(sent, depth / 2);
    ASSERT_EQ(weftio_dev_rdma_commit_wait(sender(), patience_ns), WEFTIO_DEV_OK);
    for (std::uint32_t each = 0; each != sent; ++each) {
        const weftio_dev_rdma_message message = receive();
        EXPECT_EQ(message.immediate, each);
        ASSERT_NO_FATAL_FAILURE(is_there(message, each, 100 + each));
    }
}

TEST_F(RdmaDatagrams, GoOutInWeakMode)
{
    std::uint32_t position = 0, mask = 0;
    for (std::uint32_t round = 0; round != depth; ++round) {
        ASSERT_NO_FATAL_FAILURE(post(2));
        weftio_dev_rdma_get_info(sender(), &position, &mask);
        ASSERT_EQ(weftio_dev_rdma_wait_room(sender(), 3, patience_ns), WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_rdma_enqueue_weak(
                      sender(), weftio_dev_rdma_send_to_request(peer(1), ends.buffer(0), round, 300), position, 0),
                  WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_rdma_enqueue_weak(sender(), weftio_dev_rdma_send_to_request(peer(1), ends.buffer(0), 0, 0),
                                               position + 2, 0),
                  WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_rdma_commit_weak(sender(), 3), WEFTIO_DEV_OK);
        ASSERT_NO_FATAL_FAILURE(is_there(receive(), round, 300));
        ASSERT_NO_FATAL_FAILURE(is_there(receive(), 0, 0));
    }
}

/// Who has another Q_Key, or comes without a receive, gets nothing; those beside lose nothing.
TEST_F(RdmaDatagrams, AreLostWithAWrongKeyOrWithoutAReceive)
{
    const weftio_dev_datagram_peer right = peer(1);
    send(right, 0, 10);
    eventually([&] { return ends.queue(1).counters().not_ready == 1; });
    ASSERT_NO_FATAL_FAILURE(post(2));
    send(weftio_dev_datagram_peer_at(right, ends.queue(1).number(), 78), 0, 20);
    eventually([&] { return ends.queue(1).counters().refused == 1; });
    send(weftio_dev_datagram_peer_at(right, ends.queue(1).number() + 100, 77), 0, 20);
    send(right, 5, 30);
    ASSERT_NO_FATAL_FAILURE(is_there(receive(), 5, 30));
    EXPECT_FALSE(ends.queue(0).failed() || ends.queue(1).failed());
}

TEST_F(RdmaDatagrams, FailTheirQueueWhenTheyAreTooLongAndGoOnAfterAReset)
{
    const std::string before = ends.queue(0).address().text();
    ASSERT_EQ(weftio_dev_rdma_send_to(sender(), peer(1), ends.buffer(0), 0, 1025, WEFTIO_DEV_SEND_NONE), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_commit_wait(sender(), patience_ns), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_TRUE(ends.queue(0).failed());
    ends.queue(0).reset();
    EXPECT_EQ(ends.queue(0).state(), rdma_state::ready_to_send);
    EXPECT_NE(ends.queue(0).address().text(), before);
    ASSERT_NO_FATAL_FAILURE(post());
    send(peer(1), 0, 1024);
    ASSERT_NO_FATAL_FAILURE(is_there(receive(), 0, 1024));
}

TEST_F(RdmaDatagrams, ReachTheMembersOfAGroup)
{
    const weftio_dev_datagram_peer group = ends.devices[0]->datagram_peer(
        {.address = "239.1.2.3", .queue = rdma_peer::group_queue, .service = rdma_service::datagram, .queue_key = 77});
    ASSERT_NO_FATAL_FAILURE(post(2));
    ends.queue(1).attach("239.1.2.3");
    send(group, 3, 200);
    ASSERT_NO_FATAL_FAILURE(is_there(receive(), 3, 200));
    ends.queue(1).reset();
    ASSERT_NO_FATAL_FAILURE(post(2));
    send(group, 4, 201);
    ASSERT_NO_FATAL_FAILURE(is_there(receive(), 4, 201)) << "a reset leaves the group";
    ends.queue(1).detach("239.1.2.3");
    send(group, 0, 10);
    send(peer(1), 9, 40);
    ASSERT_NO_FATAL_FAILURE(is_there(receive(), 9, 40)) << "the one to the group is for nobody";
    EXPECT_THAT(words_of([&] { ends.queue(1).detach("239.1.2.3"); }), HasSubstr("it is not attached to the group"));
    EXPECT_THAT(words_of([&] { ends.queue(1).attach("10.0.0.9"); }),
                HasSubstr("is not the address of a multicast group"));
}

TEST_F(RdmaDatagrams, CarryTheHeaderOfIpv6)
{
    const rdma_device at_0(ends.ports.get(0), {.address = "fd00::1"}), at_1(ends.ports.get(1), {.address = "fd00::2"});
    rdma_queue from(at_0, ends.where, options), to(at_1, ends.where, options);
    weftio_dev_rdma_recv* const ring = to.receives().handle();
    ASSERT_EQ(weftio_dev_rdma_recv_post(ring, ends.buffer(1), 0, piece), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_recv_commit(ring), WEFTIO_DEV_OK);
    const weftio_dev_datagram_peer receiver = at_0.datagram_peer(to.address().peer());
    ASSERT_EQ(weftio_dev_rdma_send_to(from.handle(), receiver, ends.buffer(0), 1, 99, WEFTIO_DEV_SEND_NONE),
              WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_commit_wait(from.handle(), patience_ns), WEFTIO_DEV_OK);
    weftio_dev_rdma_message message{};
    std::uint32_t count = 0, first = 0;
    ASSERT_EQ(weftio_dev_rdma_recv_wait(ring, 1, patience_ns, &count, &first), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_recv_message(ring, first, &message), WEFTIO_DEV_OK);
    is_there(message, 1, 99);
    EXPECT_EQ(message.is_ipv4, 0u);
    EXPECT_EQ(weftio_dev_datagram_is_from(message, at_1.datagram_peer(from.address().peer())), 1u);
    EXPECT_EQ(weftio_dev_datagram_is_from(message, receiver), 0u);
    EXPECT_EQ(weftio_dev_datagram_is_from(message, peer(0, 1)), 0u) << "that is an IPv4 address";
}

TEST_F(RdmaDatagrams, SayWhatIsWrong)
{
    EXPECT_EQ(weftio_dev_rdma_send_to(sender(), peer(1), ends.buffer(0), ends.buffer(0).bytes, 1, 0),
              WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_THAT(words_of([&] { ends.queue(0).connect(ends.queue(1).address()); }),
                HasSubstr("it is datagram (UD), which has no connection; entries name their peers"));
    const rdma_peer right = ends.queue(1).address().peer();
    EXPECT_EQ(right.queue_key, 77u);
    EXPECT_EQ(right.service, rdma_service::datagram);
    const auto refused = [&](auto change, datagram_path path = {}) {
        rdma_peer wrong = right;
        change(wrong);
        return words_of([&] { static_cast<void>(ends.devices[0]->datagram_peer(wrong, path)); });
    };
    EXPECT_THAT(refused([](rdma_peer& peer) { peer.service = rdma_service::reliable; }),
                HasSubstr("has rdma_peer::service datagram"));
    EXPECT_THAT(refused([](rdma_peer& peer) { peer.queue_key = 0x80000001; }),
                HasSubstr("queue_key is 0x80000001, whose highest bit is set"));
    EXPECT_THAT(refused([](rdma_peer& peer) {
                    peer.address = "nobody";
                    peer.mac.reset();
                }),
                HasSubstr("\"nobody\" is the address of no host and no multicast group"));
    EXPECT_THAT(refused([](rdma_peer& peer) { peer.address = "nobody"; }),
                HasSubstr("\"nobody\" is the address of no host and no multicast group"));
    EXPECT_THAT(refused([](rdma_peer& peer) { peer.address = "fd00::7"; }), HasSubstr("our address 10.0.0.1 is IPv4"));
    EXPECT_THAT(refused([](rdma_peer& peer) { peer.queue = 1u << 24; }), HasSubstr("queue is 16777216"));
    EXPECT_THAT(refused([](rdma_peer& peer) { peer.address = "239.1.1.1"; }), HasSubstr("set 16777215 to 16777215"));
    EXPECT_THAT(refused([](rdma_peer&) {}, {.gid_index = 9}), HasSubstr("gid_index is 9"));
    EXPECT_THAT(refused([](rdma_peer&) {}, {.hop_limit = 0}), HasSubstr("hop_limit is 0; set 1 to 255"));
    EXPECT_THAT(words_of([&] {
                    rdma_queue(*ends.devices[0], ends.where,
                               {.service = rdma_service::datagram, .queue_key = 0x80000000});
                }),
                HasSubstr("rdma_queue: queue_key is 0x80000000"));
}

} // namespace weftio::test
