// Requests that the peer executes without packets, between others that it executes by packet.
#include <gtest/gtest.h>

#include "ends.hpp"

namespace {

using namespace roce_ends;
using namespace roce_ends::alone;

message of_peer(message of, std::uint32_t psn, std::uint32_t bytes)
{
    of.first_psn = psn & psn_mask;
    of.bytes = bytes;
    of.packets = packets_of(bytes, mtu);
    of.remote_key = fake_memory::key;
    return of;
}

TEST(RoceSkip, ASendGoesOnByPacketInTheSameReceive)
{
    responding::at_responder end;
    end.receives.post(1000);
    const message send = of_peer(a_send(), first, 2 * mtu + 1);
    ASSERT_TRUE(end.ours.expects(send, first));
    ASSERT_EQ(end.receives.take(), taken::entry);
    EXPECT_EQ(end.receives.deliver(0, bytes(2 * mtu, 0xee)), refusal::none);
    end.ours.skip(send, 2, 2 * mtu);
    EXPECT_TRUE(end.ours.expects(send, psn_add(first, 2)));
    EXPECT_FALSE(end.ours.expects(of_peer(a_send(), first + 2, 1), psn_add(first, 2))) << "a message is under way";
    end.ask(rc_send_last, first + 2, 1);
    EXPECT_EQ(end.answered(), (responding::answers{responding::ack(first + 2, 1)}));
    ASSERT_EQ(end.receives.messages.size(), 1u);
    EXPECT_EQ(end.receives.messages[0], bytes(2 * mtu + 1, 0xee));
    EXPECT_EQ(end.ours.received.value(), 3u);
    EXPECT_EQ(end.ours.executed.value(), 3u);
}

TEST(RoceSkip, AReceiveUnderWayIsFlushed)
{
    responding::at_responder end;
    end.receives.post(1000);
    ASSERT_EQ(end.receives.take(), taken::entry);
    end.ours.skip(of_peer(a_send(), first, 2 * mtu), 1, mtu);
    end.ours.stop();
    ASSERT_EQ(end.receives.completions.size(), 1u);
    EXPECT_EQ(end.receives.completions[0].result, refusal::flushed);
}

TEST(RoceSkip, AWriteEndsWhereItsFirstPacketsHaveSaid)
{
    for (const std::uint32_t last : {9u, 8u, 10u}) {
        responding::at_responder end;
        end.ours.skip(of_peer(write_to(16), first, mtu + 9), 1, mtu);
        end.ask(rc_write_last, first + 1, last);
        EXPECT_EQ(end.ours.failed(), last != 9) << last;
        EXPECT_EQ(end.bytes_written(), last == 9 ? 9u : 0u);
        EXPECT_EQ(end.memory.data()[16 + mtu], last == 9 ? 0xee : 0);
    }
}

TEST(RoceSkip, AReadInPartsIsOneRequest)
{
    responding::at_responder end;
    const message read = of_peer(read_from(0), first, 3 * mtu);
    end.ours.skip(read, 2, 2 * mtu);
    EXPECT_EQ(end.ours.msn(), 0u);
    end.ours.skip(read, 1, 3 * mtu);
    EXPECT_EQ(end.ours.msn(), 1u);
    EXPECT_EQ(end.ours.executed.value(), 1u);
    EXPECT_TRUE(end.ours.expects(of_peer(write_to(0), first + 3, 1), psn_add(first, 3)));
}

TEST(RoceSkip, NoPacketIsExpectedOutOfTurnOrBeforeAnAnswer)
{
    responding::at_responder end;
    const message next = of_peer(write_to(0), first + 1, 1);
    EXPECT_FALSE(end.ours.expects(next, next.first_psn));
    end.ask(rc_write_only, first, 8);
    EXPECT_FALSE(end.ours.expects(next, next.first_psn));
    end.answered();
    EXPECT_TRUE(end.ours.expects(next, next.first_psn));
    end.ours.stop();
    EXPECT_FALSE(end.ours.expects(next, next.first_psn));
}

TEST(RoceSkip, ARequesterSendsWhatIsLeftOfAMessage)
{
    asking::at_requester end;
    end.post_write(3);
    allowance most(1000);
    const message* const next = end.ours.next_request(most, end.now);
    ASSERT_NE(next, nullptr);
    EXPECT_EQ(next->packets, 3u);
    EXPECT_EQ(end.ours.cursor_psn(), first);
    end.ours.skip(2, end.now);
    EXPECT_EQ(end.ours.in_flight(), 0u);
    EXPECT_EQ(end.ours.deadline_ns(), 0u);
    EXPECT_EQ(end.sent_packets(), (asking::packets{{rc_write_last, psn_add(first, 2), true}}));
    EXPECT_EQ(end.ours.in_flight(), 1u);
    EXPECT_FALSE(end.ours.end_unasked(end.now)) << "its ACK is to come";
    end.ack(first + 2);
    EXPECT_EQ(end.sends.ends, (asking::ends{{0, refusal::none}}));
    EXPECT_EQ(end.ours.packets.value(), 3u);
}

TEST(RoceSkip, ARequesterEndsWhatAsksForNoAck)
{
    asking::at_requester end;
    end.post_write(2, true);
    end.sent_packets();
    EXPECT_EQ(end.ours.in_flight(), 2u);
    EXPECT_TRUE(end.ours.end_unasked(end.now));
    EXPECT_EQ(end.sends.ends, (asking::ends{{0, refusal::none}}));
    EXPECT_EQ(end.ours.in_flight(), 0u);
}

} // namespace
