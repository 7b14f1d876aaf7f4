// What a queue pair that hangs, or has failed, tells of itself.
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/refusal.hpp"
#include "public_pair.hpp"
#include "two_ends.hpp"
#include "weftio/rdma_dump.hpp"

namespace weftio::test {

namespace {

using testing::HasSubstr;

class RdmaDump : public testing::Test {
 protected:
    void connect()
    {
        for (unsigned end = 0; end < 2; ++end) {
            nic::rdma_connection to = ends.connection(end);
            to.timeout = 20; // 4.3 s
            to.min_rnr_timer = 0;
            to.retry_count = 5;
            to.rnr_retry = 6;
            to.path.traffic_class = 26 << 2;
            ends.queue(end).connect(to);
        }
    }
    std::uint32_t post_write(std::uint32_t bytes)
    {
        return a.post(WEFTIO_OPCODE_RDMA_WRITE, {ends.memory(1).remote_at(0), ends.memory(0).local(0, bytes)});
    }

    two_ends ends{false};
    fake_pair &a = ends.queue(0), &b = ends.queue(1);
};

} // namespace

TEST_F(RdmaDump, OfAQueuePairThatIsNotConnectedIsEmpty)
{
    const rdma_dump dump = a.nic().dump();
    EXPECT_EQ(dump.number, a.number());
    EXPECT_EQ(dump.state, rdma_state::init);
    EXPECT_FALSE(dump.connected);
    EXPECT_EQ(dump.last_error, "");
    EXPECT_THAT(to_string(dump), HasSubstr(": INIT, not connected\n"));
    EXPECT_THAT(to_string(dump), HasSubstr(" turns of engine 0; last error: none"));
}

TEST_F(RdmaDump, SaysWhoThePeerIs)
{
    connect();
    const rdma_dump dump = a.nic().dump();
    EXPECT_TRUE(dump.connected && dump.service == rdma_service::reliable && !dump.same_port);
    EXPECT_EQ(dump.state, rdma_state::ready_to_send);
    EXPECT_EQ(dump.address, "10.0.0.1");
    EXPECT_EQ(dump.peer_address, "10.0.0.2");
    EXPECT_EQ(dump.peer_mac, ends.mac_of(1));
    EXPECT_EQ(dump.peer_queue, b.number());
    EXPECT_EQ(dump.path_mtu, 1024u);
    EXPECT_EQ(dump.dscp, 26u);
    EXPECT_EQ(dump.hop_limit, 64u);
    EXPECT_EQ(dump.awaits, rdma_awaits::nothing);
    EXPECT_EQ(dump.retries_left, 5u);
    EXPECT_EQ(dump.rnr_retries_left, 6u);
    EXPECT_EQ(dump.expected_psn, ends.first_psn_of(1));
    EXPECT_THAT(to_string(dump), HasSubstr(fmt::format(
                                     "RTS, RC, 10.0.0.1 to 10.0.0.2 queue {} at 02:00:00:00:00:01, path MTU 1024, DSCP "
                                     "26, hop limit 64\n",
                                     b.number())));
}

TEST_F(RdmaDump, SaysWhatASilentPeerHasNotAnswered)
{
    connect();
    const std::uint32_t first = ends.first_psn_of(0);
    post_write(8);
    post_write(2500);
    a.post(WEFTIO_OPCODE_DUMP, {ends.memory(0).local(0, 8)});
    a.push();
    ends.at(0).turn();
    const rdma_dump dump = a.nic().dump();
    EXPECT_EQ(dump.acknowledged_psn, first);
    EXPECT_EQ(dump.next_psn, first + 4);
    EXPECT_EQ(dump.sent_psn, first + 4);
    EXPECT_EQ(dump.packets_in_flight, 4u);
    EXPECT_EQ(dump.window, 128u);
    EXPECT_EQ(dump.awaits, rdma_awaits::answer);
    EXPECT_GT(dump.ends_in_ns, 1'000'000u);
    EXPECT_LE(dump.ends_in_ns, 4'400'000'000u);
    EXPECT_EQ(dump.committed, 3u);
    EXPECT_EQ(dump.begun, 3u);
    EXPECT_EQ(dump.completed, 0u);
    ASSERT_EQ(dump.entries.size(), 3u);
    EXPECT_EQ(dump.entries_in_flight, 3u);
    EXPECT_EQ(dump.entries[1].position, 1u);
    EXPECT_EQ(dump.entries[1].opcode, WEFTIO_OPCODE_RDMA_WRITE);
    EXPECT_EQ(dump.entries[1].bytes, 2500u);
    EXPECT_EQ(dump.entries[1].first_psn, first + 1);
    EXPECT_EQ(dump.entries[1].packets, 3u);
    const std::string text = to_string(dump);
    EXPECT_THAT(text, HasSubstr("PSN 0xfffff0 acknowledged, 0xfffff4 next, 0xfffff4 sent; 4 packets in flight, window "
                                "128; awaits an answer for "));
    EXPECT_THAT(text, HasSubstr("  packets: 4 sent, 0 of them repeats, after 0 NAKs, "));
    EXPECT_THAT(text, HasSubstr("  packets of the peer: 0 received, 0 executed, 0 repeats, "));
    EXPECT_THAT(text, HasSubstr("position 1: WRITE, 2500 bytes, 3 packets from PSN 0xfffff1\n"));
    EXPECT_THAT(text, HasSubstr("position 2: DUMP, 0 bytes, 0 packets from PSN 0xfffff4\n"));
    a.nic().stop_sending();
}

TEST_F(RdmaDump, ShowsTheOldestEntriesAndCountsTheOthers)
{
    connect();
    for (unsigned entry = 0; entry < 11; ++entry)
        post_write(8);
    a.push();
    ends.at(0).turn();
    const rdma_dump dump = a.nic().dump();
    ASSERT_EQ(dump.entries.size(), rdma_dump::most_entries);
    EXPECT_EQ(dump.entries[0].position, 0u);
    EXPECT_EQ(dump.entries_in_flight, 11u);
    EXPECT_THAT(to_string(dump), HasSubstr("\n    and 3 more\n"));
    a.nic().stop_sending();
}

TEST_F(RdmaDump, SaysThatThePeerHasNoReceive)
{
    connect();
    a.post(WEFTIO_OPCODE_SEND, {ends.memory(0).local(0, 8)});
    a.push();
    ASSERT_TRUE(ends.run_until([&] { return a.nic().counters().rnr_naks != 0; }));
    const rdma_dump dump = a.nic().dump();
    EXPECT_EQ(dump.awaits, rdma_awaits::receiver);
    EXPECT_LE(dump.ends_in_ns, 656'000'000u);
    EXPECT_EQ(dump.rnr_retries_left, 6u - a.nic().counters().rnr_naks);
    EXPECT_THAT(to_string(dump), HasSubstr("awaits a receive of the peer for "));
    const rdma_dump peer = b.nic().dump();
    EXPECT_EQ(peer.receives_posted, 0u);
    b.post_receive({ends.memory(1).local(0, 8)});
    EXPECT_EQ(b.nic().dump().receives_posted, 1u);
    EXPECT_TRUE(ends.run_until([&] { return a.nic().counters().done == 1; }));
    EXPECT_EQ(b.nic().dump().msn, 1u);
    EXPECT_EQ(b.nic().dump().expected_psn, ends.first_psn_of(0) + 1);
}

TEST_F(RdmaDump, SaysWhyItFailedAndWhatWasRefused)
{
    connect();
    a.post(WEFTIO_OPCODE_RDMA_WRITE, {remote(ends.memory(1).address(), 7), ends.memory(0).local(0, 8)});
    a.push();
    ASSERT_TRUE(ends.run_until([&] { return a.nic().failed(); }));
    const rdma_dump asker = a.nic().dump(), refuser = b.nic().dump();
    EXPECT_EQ(asker.state, rdma_state::error);
    EXPECT_THAT(asker.last_error, HasSubstr("entry at position 0 failed: 8 bytes at "));
    EXPECT_THAT(asker.last_error, HasSubstr(" with key 0x7: the peer refused access to its memory"));
    EXPECT_NE(asker.last_error_ns, 0u);
    EXPECT_TRUE(asker.refused_by.empty());
    EXPECT_EQ(refuser.state, rdma_state::error);
    EXPECT_THAT(refuser.last_error, HasSubstr("the peer's WRITE was refused: 8 bytes at "));
    ASSERT_EQ(refuser.refused_by.size(), 1u);
    EXPECT_EQ(refuser.refused_by[0].reason, refusal::unknown_key);
    EXPECT_EQ(refuser.refused_by[0].count, b.nic().counters().refused);
    EXPECT_THAT(to_string(refuser), HasSubstr("\n    1 refused: no memory region has that key"));
    EXPECT_THAT(to_string(refuser), HasSubstr("last error: the peer's WRITE was refused"));
}

/// One of UC goes on, so its reasons add up.
TEST(UnreliableRdmaDump, CountsRefusedRequestsByReason)
{
    two_ends ends(false, rdma_service::unreliable);
    fake_pair &a = ends.queue(0), &b = ends.queue(1);
    EXPECT_EQ(b.nic().dump().service, rdma_service::unreliable);
    for (unsigned end = 0; end < 2; ++end) {
        nic::rdma_connection to = ends.connection(end);
        to.rights = access::remote_write;
        ends.queue(end).connect(to);
    }
    b.post_receive({ends.memory(1).local(0, 4)});
    for (unsigned bad = 0; bad < 3; ++bad)
        a.post(WEFTIO_OPCODE_RDMA_WRITE, {remote(ends.memory(1).address(), 7), ends.memory(0).local(0, 8)});
    a.post(WEFTIO_OPCODE_RDMA_WRITE,
           {ends.memory(1).remote_at(two_ends::memory_bytes - 7), ends.memory(0).local(0, 8)});
    a.push();
    ends.run();
    const rdma_dump dump = b.nic().dump();
    ASSERT_EQ(dump.refused_by.size(), 2u);
    EXPECT_EQ(dump.refused_by[0].reason, refusal::unknown_key);
    EXPECT_EQ(dump.refused_by[0].count, 3u);
    EXPECT_EQ(dump.refused_by[1].reason, refusal::outside_region);
    EXPECT_EQ(dump.refused_by[1].count, 1u);
    EXPECT_EQ(b.nic().counters().refused, 4u);
}

TEST(RdmaDumpOfAKernel, IsTakenWhileTheKernelWaits)
{
    for (const place_of_ends& place : {places_of_ends[1], places_of_ends[2]}) {
        public_pair ends(place);
        ends.connect();
        weftio_dev_rdma* const rdma = ends.queue(0).handle();
        weftio_s32 status = WEFTIO_DEV_QUEUE_ERROR;
        std::thread kernel([&] {
            weftio_dev_rdma_send(rdma, ends.buffer(0), 0, 8, 0);
            status = weftio_dev_rdma_commit_wait(rdma, 0);
        });
        EXPECT_TRUE(eventually([&] { return ends.queue(0).dump().awaits == rdma_awaits::receiver; }));
        const rdma_dump dump = ends.queue(0).dump();
        EXPECT_EQ(dump.number, ends.queue(0).number());
        EXPECT_EQ(dump.same_port, place.one_port);
        EXPECT_THAT(to_string(dump), HasSubstr("position 0: SEND, 8 bytes, 1 packets from PSN "));
        weftio_dev_rdma_recv* const receives = ends.queue(1).receives().handle();
        weftio_dev_rdma_recv_post(receives, ends.buffer(1), 0, 64);
        weftio_dev_rdma_recv_commit(receives);
        kernel.join();
        EXPECT_EQ(status, WEFTIO_DEV_OK);
    }
}

TEST(Reasons, HaveTheirNames)
{
    EXPECT_STREQ(to_string(refusal::none), "none");
    EXPECT_STREQ(to_string(refusal::unknown_key), "unknown_key");
    EXPECT_STREQ(to_string(refusal::not_invalidated), "not_invalidated");
    EXPECT_STREQ(to_string(static_cast<refusal>(core::all_refusals - 1)), "staged_atomic");
    EXPECT_STREQ(to_string(static_cast<refusal>(255)), "unknown");
}

} // namespace weftio::test
