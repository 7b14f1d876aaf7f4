// Several connections as one object, with one ring of receives.
#include "connections_cases.hpp"

#include <algorithm>
#include <chrono>

namespace weftio::test {

namespace {

using testing::HasSubstr;

/// Connections whose device functions the test calls itself, in the place of a kernel.
class RdmaConnections : public testing::Test {
 protected:
    static constexpr std::uint32_t piece = connections_cases::most_bytes;

    weftio_dev_rdma_recv* receives(unsigned end) { return ends.side(end).receives().handle(); }
    weftio_dev_rdma* queue(unsigned end, std::uint32_t index)
    {
        return weftio_dev_rdma_connection(ends.side(end).handle(), index);
    }
    /// Posts receives of `piece` bytes until the ring is full. Returns how many.
    std::uint32_t post_all(std::uint32_t most = connections_cases::depth)
    {
        std::uint32_t posted = 0;
        for (; posted != most && weftio_dev_rdma_recv_post(receives(0), slot(posted), 0, piece) == WEFTIO_DEV_OK;)
            ++posted;
        EXPECT_EQ(weftio_dev_rdma_recv_commit(receives(0)), WEFTIO_DEV_OK);
        return posted;
    }
    weftio_dev_buf slot(std::uint32_t index) { return weftio_dev_buf_get(ends.at_server.handle(), index); }
    void send(std::uint32_t connection, std::uint32_t bytes, std::uint32_t immediate)
    {
        weftio_dev_rdma* const by = queue(1, connection);
        EXPECT_EQ(weftio_dev_rdma_send_imm(by, ends.buffer(1), 0, bytes, immediate, WEFTIO_DEV_SEND_NONE),
                  WEFTIO_DEV_OK);
        EXPECT_EQ(weftio_dev_rdma_commit(by), WEFTIO_DEV_OK);
    }
    /// The next message, which comes within `patience`.
    weftio_dev_rdma_message receive(std::int32_t expected = WEFTIO_DEV_OK)
    {
        weftio_dev_rdma_message message{};
        std::uint32_t count = 0, first = 0;
        EXPECT_EQ(weftio_dev_rdma_recv_wait(receives(0), 1, patience_ns, &count, &first), WEFTIO_DEV_OK);
        EXPECT_EQ(weftio_dev_rdma_recv_message(receives(0), first, &message), expected);
        return message;
    }
    std::uint32_t waiting() { return ends.side(0).standing().waiting; }

    const std::uint64_t patience_ns = std::uint64_t(std::chrono::nanoseconds(patience).count());
    connections_cases ends{{false, engine_mode::thread}, "cpu"};
};

class ConnectionKernels : public testing::TestWithParam<std::tuple<const char*, bool>> {
 protected:
    connections_cases ends{{std::get<1>(GetParam()), engine_mode::thread}, std::get<0>(GetParam())};
};

} // namespace

TEST_P(ConnectionKernels, AnswerAllByTheConnectionThatAsked)
{
    ends.answer_all();
}

INSTANTIATE_TEST_SUITE_P(On, ConnectionKernels, testing::Combine(testing::Values("cpu", "opencl"), testing::Bool()),
                         [](const auto& info) {
                             return std::string(std::get<0>(info.param)) +
                                    (std::get<1>(info.param) ? "OnePort" : "TwoPorts");
                         });

TEST(InlineConnectionKernels, DriveTheEngineOfTheirPort)
{
    connections_cases ends({true, engine_mode::inline_worker}, "cpu");
    ends.answer_all();
}

/// In an order that no ring of one queue pair has: each message is in the buffer that it names, each buffer is in use
/// once, and receives are posted again in the order in which messages end.
TEST_F(RdmaConnections, GiveEachMessageABufferOfItsOwn)
{
    std::mt19937 random(7);
    std::map<std::uint8_t*, bool> in_use;
    for (std::uint32_t each = 0, all = post_all(); each != all; ++each)
        in_use[slot(each).address] = false;
    ASSERT_EQ(in_use.size(), connections_cases::depth - 1);
    std::deque<weftio_dev_buf> held;
    std::map<std::uint32_t, std::deque<std::uint32_t>> sent;
    std::uint32_t next = 0, on_their_way = 0, overtakings = 0, newest = 0;
    for (int step = 0; step != 20'000; ++step) {
        const auto connection = static_cast<std::uint32_t>(random() % connections_cases::count);
        switch (random() % 3) {
            case 0: // fewer than are posted, so that none waits
                if (on_their_way + held.size() < connections_cases::depth - 1) {
                    send(connection, static_cast<std::uint32_t>(1 + random() % (random() % 4 == 0 ? piece : 64)), next);
                    sent[connection].push_back(next++);
                    ++on_their_way;
                }
                break;
            case 1:
                if (on_their_way != 0) {
                    const weftio_dev_rdma_message message = receive();
                    --on_their_way;
                    ASSERT_FALSE(sent[message.connection].empty());
                    ASSERT_EQ(message.immediate, sent[message.connection].front());
                    sent[message.connection].pop_front();
                    overtakings += message.immediate < newest;
                    newest = std::max(newest, message.immediate);
                    ASSERT_EQ(in_use.count(message.buffer.address), 1u);
                    ASSERT_FALSE(std::exchange(in_use[message.buffer.address], true));
                    ASSERT_EQ(message.buffer.bytes, piece);
                    ASSERT_EQ(std::memcmp(message.buffer.address, ends.buffer(1).address, message.bytes), 0);
                    held.push_back(message.buffer);
                }
                break;
            default:
                if (!held.empty()) {
                    const std::size_t which = random() % held.size();
                    in_use[held[which].address] = false;
                    ASSERT_EQ(weftio_dev_rdma_recv_post(receives(0), held[which], 0, piece), WEFTIO_DEV_OK);
                    ASSERT_EQ(weftio_dev_rdma_recv_commit(receives(0)), WEFTIO_DEV_OK);
                    held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
                }
        }
    }
    EXPECT_GT(next, 3000u) << "the ring went round many times";
    EXPECT_GT(overtakings, 100u) << "messages end in another order than they begin";
    for (; on_their_way != 0; --on_their_way)
        held.push_back(receive().buffer);
    EXPECT_EQ(waiting() + held.size(), connections_cases::depth - 1);
}

TEST_F(RdmaConnections, MakeMessagesWaitForAReceive)
{
    send(2, 100, 5);
    std::uint32_t count = 0, first = 0;
    EXPECT_EQ(weftio_dev_rdma_recv_wait(receives(0), 1, 1'000'000, &count, &first), WEFTIO_DEV_TIMEOUT);
    EXPECT_EQ(count, 0u);
    EXPECT_EQ(post_all(1), 1u);
    const weftio_dev_rdma_message message = receive();
    EXPECT_EQ(message.connection, 2u);
    EXPECT_EQ(message.immediate, 5u);
}

/// A message that is too long fails its connection, which completes the receive that it had taken; the others go on.
TEST_F(RdmaConnections, FailAlone)
{
    ASSERT_EQ(post_all(), connections_cases::depth - 1);
    send(1, piece + 1, 7);
    const weftio_dev_rdma_message failed = receive(WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_EQ(failed.connection, 1u);
    EXPECT_NE(failed.syndrome, 0u);
    EXPECT_TRUE(ends.side(0)[1].failed());
    EXPECT_EQ(weftio_dev_rdma_status(queue(0, 1)), WEFTIO_DEV_QUEUE_ERROR);
    for (const std::uint32_t other : {0u, 2u, 3u, 4u}) {
        send(other, piece, other);
        EXPECT_EQ(receive().connection, other);
        EXPECT_FALSE(ends.side(0)[other].failed());
    }
    EXPECT_EQ(waiting(), connections_cases::depth - 1 - 5);
}

/// A connection begins again with another handle, while receives stay posted.
TEST_F(RdmaConnections, BeginAgainAlone)
{
    ASSERT_EQ(post_all(), connections_cases::depth - 1);
    const weftio_dev_rdma* const before = queue(0, 3);
    const weftio_dev_rdma* const neighbor = queue(0, 2);
    send(3, piece + 1, 0);
    receive(WEFTIO_DEV_QUEUE_ERROR);
    for (unsigned end = 0; end < 2; ++end)
        ends.side(end)[3].reset();
    ends.connect(3);
    EXPECT_NE(queue(0, 3), before);
    EXPECT_EQ(queue(0, 2), neighbor);
    send(3, 10, 77);
    EXPECT_EQ(receive().immediate, 77u);
    send(2, 10, 78);
    EXPECT_EQ(receive().immediate, 78u);
    EXPECT_EQ(waiting(), connections_cases::depth - 1 - 3);
}

TEST_F(RdmaConnections, TellWhenReceivesBecomeFew)
{
    ASSERT_EQ(post_all(4), 4u);
    ends.side(0).set_limit(3);
    EXPECT_EQ(ends.side(0).standing().limits_reached, 0u);
    for (std::uint32_t each = 0; each != 2; ++each) {
        send(each, 8, each);
        receive();
    }
    EXPECT_EQ(ends.side(0).standing().limits_reached, 1u);
    EXPECT_EQ(ends.side(0).standing().limit, 0u);
    EXPECT_THAT([&] { ends.side(0).set_limit(connections_cases::depth); },
                testing::ThrowsMessage<error>(HasSubstr("the limit is 64, but at most 63 receives can be posted")));
}

TEST_F(RdmaConnections, RefuseWrongIndicesAndOptions)
{
    EXPECT_EQ(queue(0, connections_cases::count), nullptr);
    EXPECT_THAT([&] { ends.side(0)[9]; },
                testing::ThrowsMessage<error>(HasSubstr("there is no connection 9; there are 5, from 0 on")));
    const auto make = [&](std::uint32_t count, rdma_queue_options options) {
        return [&, count, options] { rdma_connections(*ends.devices[0], ends.where, count, options); };
    };
    EXPECT_THAT(make(0, {}), testing::ThrowsMessage<error>(HasSubstr("rdma_connections: count is 0")));
    EXPECT_THAT(make(4097, {}), testing::ThrowsMessage<error>(HasSubstr("count is 4097")));
    EXPECT_THAT(make(2, {.receive_entries = 100}),
                testing::ThrowsMessage<error>(HasSubstr("rdma_connections: receive_entries is 100")));
    EXPECT_THAT(make(2, {.receive_segments = 32}),
                testing::ThrowsMessage<error>(HasSubstr("rdma_connections: receive_segments is 32")));
}

/// Two pieces are wanted, and the ring has room for three.
TEST_F(RdmaConnections, ReceiveInPieces)
{
    rdma_connections pieces(*ends.devices[0], ends.where, 1,
                            {.entries = 64, .receive_entries = 64, .receive_segments = 2, .timeout = 18});
    rdma_queue sender(*ends.devices[1], ends.where, {.entries = 64, .receive_entries = 64, .timeout = 18});
    pieces[0].connect(sender.address());
    sender.connect(pieces[0].address());
    weftio_dev_rdma_recv* const ring = pieces.receives().handle();
    for (std::uint32_t round = 0; round != 70; ++round) {
        std::uint32_t position = 0, mask = 0, count = 0, first = 0;
        weftio_dev_rdma_recv_get_info(ring, &position, &mask);
        ASSERT_EQ(weftio_dev_rdma_recv_post_weak(ring, slot(0), 0, 10, position), WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_rdma_recv_add_piece_weak(ring, slot(1), 0, 20, position, 1), WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_rdma_recv_add_piece_weak(ring, slot(2), 0, 30, position, 2), WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_rdma_recv_commit_weak(ring, 1), WEFTIO_DEV_OK);
        weftio_dev_rdma_send(sender.handle(), ends.buffer(1), 0, 60, WEFTIO_DEV_SEND_NONE);
        ASSERT_EQ(weftio_dev_rdma_commit_wait(sender.handle(), patience_ns), WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_rdma_recv_wait(ring, 1, patience_ns, &count, &first), WEFTIO_DEV_OK);
    }
    const std::uint8_t* const sent = ends.buffer(1).address;
    EXPECT_EQ(std::memcmp(slot(0).address, sent, 10), 0);
    EXPECT_EQ(std::memcmp(slot(1).address, sent + 10, 20), 0);
    EXPECT_EQ(std::memcmp(slot(2).address, sent + 30, 30), 0);
}

/// A weak commit publishes no receive whose entry is still another one's.
TEST_F(RdmaConnections, RefuseMoreWeakReceivesThanAreFree)
{
    std::uint32_t position = 0, mask = 0;
    weftio_dev_rdma_recv_get_info(receives(0), &position, &mask);
    for (std::uint32_t each = 0; each != connections_cases::depth - 1; ++each)
        ASSERT_EQ(weftio_dev_rdma_recv_post_weak(receives(0), slot(each), 0, piece, position + each), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_recv_commit_weak(receives(0), connections_cases::depth), WEFTIO_DEV_INVALID_ARGUMENT);
    ASSERT_EQ(weftio_dev_rdma_recv_commit_weak(receives(0), connections_cases::depth - 1), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_recv_commit_weak(receives(0), 1), WEFTIO_DEV_INVALID_ARGUMENT);
    send(0, 8, 1);
    receive();
    ASSERT_EQ(weftio_dev_rdma_recv_post_weak(receives(0), slot(0), 0, piece, position + mask), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_rdma_recv_commit_weak(receives(0), 1), WEFTIO_DEV_OK);
    EXPECT_EQ(waiting(), connections_cases::depth - 1);
}

/// The first message finds no receive, and is not repeated.
TEST_F(RdmaConnections, OfUcLoseMessagesWithoutAReceive)
{
    const rdma_queue_options options{.service = rdma_service::unreliable, .entries = 64, .receive_entries = 64};
    rdma_connections server(*ends.devices[0], ends.where, 2, options);
    rdma_queue client(*ends.devices[1], ends.where, options);
    server[1].connect(client.address());
    client.connect(server[1].address());
    const auto send_one = [&](std::uint32_t immediate) {
        weftio_dev_rdma_send_imm(client.handle(), ends.buffer(1), 0, 8, immediate, WEFTIO_DEV_SEND_NONE);
        return weftio_dev_rdma_commit_wait(client.handle(), patience_ns);
    };
    weftio_dev_rdma_recv* const ring = server.receives().handle();
    ASSERT_EQ(send_one(1), WEFTIO_DEV_OK);
    ASSERT_TRUE(eventually([&] { return server[1].counters().not_ready == 1; }));
    ASSERT_EQ(weftio_dev_rdma_recv_post(ring, slot(0), 0, piece), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_recv_commit(ring), WEFTIO_DEV_OK);
    ASSERT_EQ(send_one(2), WEFTIO_DEV_OK);
    std::uint32_t count = 0, first = 0;
    weftio_dev_rdma_message message{};
    ASSERT_EQ(weftio_dev_rdma_recv_wait(ring, 1, patience_ns, &count, &first), WEFTIO_DEV_OK);
    ASSERT_EQ(weftio_dev_rdma_recv_message(ring, first, &message), WEFTIO_DEV_OK);
    EXPECT_EQ(message.immediate, 2u);
    EXPECT_EQ(message.connection, 1u);
}

/// The kernel that waits for messages, and its description, end with the host's wish.
TEST_F(RdmaConnections, EndWhenTheHostWants)
{
    const shared_words told(ends.where, 8 * CONNECTION_REPORT + 1);
    running_kernel kernel = ends.where.launch(connections_answer_kernel, {}, ends.side(0), ends.side(0).receives(),
                                              ends.at_server, 8u, told.on_device());
    EXPECT_FALSE(kernel.wait_for(std::chrono::milliseconds(10)));
    EXPECT_THAT(kernel.dump(), testing::AllOf(HasSubstr("rdma_connections: 5"), HasSubstr("shared receive queue")));
    kernel.stop();
    EXPECT_TRUE(kernel.wait_for(patience));
}

/// A watchdog takes the ring from a kernel that hangs: its connections stop.
TEST_F(RdmaConnections, AreStoppedWithTheirRing)
{
    ASSERT_EQ(post_all(), connections_cases::depth - 1);
    detail::internals::line(ends.side(0).receives())->quiesce();
    for (std::uint32_t each = 0; each != connections_cases::count; ++each)
        EXPECT_TRUE(ends.side(0)[each].failed());
}

TEST_F(RdmaConnections, FindBuffersOfAPeer)
{
    const weftio_dev_remote array{1000, 100, 0, 0};
    EXPECT_EQ(weftio_dev_remote_get(array, 2, 30).address, 1060u);
    EXPECT_EQ(weftio_dev_remote_get(array, 2, 30).bytes, 30u);
    EXPECT_EQ(weftio_dev_remote_get(array, 3, 30).bytes, 0u);
    EXPECT_EQ(weftio_dev_remote_get(array, 0, 0).bytes, 0u);
    EXPECT_EQ(weftio_dev_remote_get(array, 0xffffffff, 0x100000001).bytes, 0u);
}

} // namespace weftio::test
