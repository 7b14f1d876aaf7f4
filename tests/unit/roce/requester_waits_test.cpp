// What a requester does while no answer comes, or the peer is not ready: repeats, probes, retries.
#include <gtest/gtest.h>

#include "ends.hpp"

namespace {

using namespace roce_ends;
using namespace weftio::net;
using namespace roce_ends::asking;

/// A requester that has measured how long answers take, in 0.2 ms: 0.6 ms later they are overdue.
class RoceOverdue : public testing::Test {
 protected:
    void SetUp() override
    {
        end.post_write(1);
        end.sent_packets();
        end.now += 200'000;
        end.ack(first);
    }
    /// What it sends once the answer is overdue, which is in `ns`.
    packets sent_in(std::uint64_t ns)
    {
        EXPECT_EQ(end.ours.deadline_ns(), end.now + ns);
        end.now += ns - 1;
        EXPECT_EQ(end.sent_packets(), packets{});
        end.now += 1;
        return end.sent_packets();
    }

    at_requester end{{.timeout = 14, .retry_count = 0}};
};

TEST_F(RoceOverdue, RepeatsTheLastPacketAndThenTheFirst)
{
    end.post_write(4);
    EXPECT_EQ(end.sent_packets().size(), 4u);
    EXPECT_EQ(sent_in(600'000), (packets{{rc_write_last, 3, true}}));
    EXPECT_EQ(sent_in(600'000), (packets{{rc_write_first, 0, true}})); // the NAK was lost, too
    EXPECT_EQ(sent_in(1'200'000), (packets{{rc_write_first, 0, true}}));
    end.ack(0); // perhaps a late answer
    EXPECT_EQ(end.sent_packets(), (packets{{rc_write_middle, 1, true}}));
    end.ack(1);
    EXPECT_EQ(end.sent_packets(), (packets{{rc_write_middle, 2, false}, {rc_write_last, 3, true}}));
    end.ack(3);
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::none}, {1, refusal::none}}));
    EXPECT_EQ(end.ours.local_ack_timeout_err.value(), 0u);
}

TEST_F(RoceOverdue, CountsTheNakOfAProbeAsALoss)
{
    end.post_write(4);
    end.sent_packets();
    EXPECT_EQ(sent_in(600'000), (packets{{rc_write_last, 3, true}}));
    end.answer(rc_acknowledge, 2, 0x60);
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::none}, {1, refusal::no_answer}})) << "it has no retries";
}

/// The repeat was lost. The peer has sent its NAK, and is silent.
TEST_F(RoceOverdue, RepeatsTheFirstPacketAfterANak)
{
    at_requester other({.timeout = 14});
    other.post_write(1);
    other.sent_packets();
    other.ack(first);
    other.post_write(4);
    other.sent_packets();
    other.answer(rc_acknowledge, 1, 0x60);
    EXPECT_EQ(other.sent_packets().size(), 3u);
    other.now = other.ours.deadline_ns();
    EXPECT_EQ(other.sent_packets(), (packets{{rc_write_middle, 1, true}}));
}

/// Not a part of it: peers drop a later repeat that begins before that part.
TEST_F(RoceOverdue, RepeatsTheLastReadAndSkipsLocalOperations)
{
    end.sends.post(read_from(0), bytes(100 * mtu));
    end.sends.post({}, {});
    EXPECT_EQ(end.sent().size(), 1u);
    end.now = end.ours.deadline_ns();
    const auto again = end.sent();
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].headers.bth.psn, 0u);
    EXPECT_EQ(again[0].headers.dma_bytes, 100 * mtu);
}

/// Late answers cost one packet, and the window stays.
TEST_F(RoceOverdue, RepeatsOnePacketWhenAnswersAreOnlyLate)
{
    end.post_write(1000);
    EXPECT_EQ(end.sent_packets().size(), 128u);
    EXPECT_EQ(sent_in(600'000), (packets{{rc_write_middle, 127, true}}));
    end.ack(63);
    EXPECT_EQ(end.sent_packets().size(), 64u);
    end.ack(127);
    EXPECT_EQ(end.sent_packets().size(), 64u);
    EXPECT_EQ(end.ours.repeated.value(), 1u);
}

/// Answers have become slow for good: a few packets are repeated, until the answer to one that is not is measured.
TEST_F(RoceOverdue, LearnsThatAnswersHaveBecomeSlow)
{
    for (unsigned message = 0; message < 50; ++message) {
        end.post_write(1);
        const auto sent = end.sent_packets();
        ASSERT_EQ(sent.size(), 1u);
        for (const std::uint64_t answered_at = end.now + 5'000'000; end.now < answered_at;) {
            end.now = std::min(end.ours.deadline_ns(), answered_at);
            if (end.now < answered_at)
                end.sent_packets();
        }
        end.ack(sent[0].psn);
    }
    EXPECT_LE(end.ours.repeated.value(), 10u);
    EXPECT_GT(end.ours.repeated.value(), 0u);
}

/// The peer has not read the packets yet: nothing is lost, and a probe would only add to what it has to read.
TEST_F(RoceOverdue, DoesNotProbeAPeerThatHasNotReadYet)
{
    end.post_write(4);
    end.wire.peer_has_read = end.wire.put;
    end.sent_packets();
    for (unsigned waits = 0; waits < 10; ++waits)
        EXPECT_EQ(sent_in(600'000), packets{});
    end.wire.peer_has_read = end.wire.put;
    EXPECT_EQ(sent_in(600'000), (packets{{rc_write_last, 3, true}})) << "it has read them, and does not answer";
}

/// Other queue pairs' packets to the peer are on the wire at any moment. That puts off each timeout once, not more.
TEST(RoceRequester, GivesUpBesideTrafficThatIsOnItsWay)
{
    at_requester end({.timeout = 24, .retry_count = 1});
    end.post_write(1);
    end.sent_packets();
    end.now += 200'000;
    end.ack(first);
    end.post_write(1);
    end.sent_packets();
    const std::uint64_t begin = end.now;
    while (!end.ours.failed() && end.now - begin < 10 * ack_timeout_ns(24)) {
        end.wire.peer_has_read = end.wire.put++;
        end.now = end.ours.deadline_ns();
        end.sent_packets();
    }
    EXPECT_TRUE(end.ours.failed());
    EXPECT_LE(end.now - begin, 4 * ack_timeout_ns(24));
}

/// Nothing comes any more: the timeout still ends the queue, after as many retries as it has.
TEST(RoceRequester, GivesUpAtTheTimeoutWhateverItHasProbed)
{
    at_requester end({.timeout = 14, .retry_count = 1});
    end.post_write(1);
    end.sent_packets();
    end.ack(first);
    end.post_write(1);
    end.sent_packets();
    const std::uint64_t begin = end.now;
    for (unsigned probes = 0; !end.ours.failed() && probes < 100; ++probes) {
        end.now = end.ours.deadline_ns();
        end.sent_packets();
    }
    EXPECT_TRUE(end.ours.failed());
    EXPECT_EQ(end.now - begin, 2 * ack_timeout_ns(14));
    EXPECT_EQ(end.ours.local_ack_timeout_err.value(), 2u);
    EXPECT_LT(end.ours.repeated.value(), 16u);
}

TEST(RoceRequester, AsksWithOnePacketWhetherThePeerIsReadyNow)
{
    at_requester end;
    for (int sent = 0; sent < 5; ++sent)
        end.sends.post(a_send(), bytes(3));
    EXPECT_EQ(end.sent_packets().size(), 5u);
    for (int at = 0; at < 3; ++at) {
        end.answer(rc_acknowledge, first, 0x20 | 18);
        end.now += 5'120'000;
        EXPECT_EQ(end.sent_packets(), (packets{{rc_send_only, first, true}})) << "and not the four behind it";
    }
    end.answer(rc_acknowledge, first, 0);
    EXPECT_EQ(end.sent_packets().size(), 2u) << "as many more as were acknowledged";
}

TEST(RoceRequester, WaitsAsLongAsThePeerIsNotReady)
{
    at_requester end({.rnr_retry = 2});
    end.sends.post(a_send(), bytes(3));
    end.sent_packets();
    for (int at = 0; at < 2; ++at) {
        end.answer(rc_acknowledge, first, 0x20 | 18);
        EXPECT_EQ(end.ours.deadline_ns(), end.now + 5'120'000);
        end.now += 5'119'999;
        EXPECT_EQ(end.sent_packets(), packets{});
        end.now += 1;
        EXPECT_EQ(end.sent_packets(), (packets{{rc_send_only, first, true}}));
    }
    end.answer(rc_acknowledge, first, 0x20 | 18);
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::not_ready}}));
}

TEST(RoceRequester, WaitsForEverWithRnrRetry7)
{
    at_requester end({.rnr_retry = 7});
    end.sends.post(a_send(), bytes(3));
    for (int at = 0; at < 1000; ++at) {
        EXPECT_EQ(end.sent_packets().size(), 1u);
        end.answer(rc_acknowledge, first, 0x21);
        end.now = end.ours.deadline_ns();
    }
    EXPECT_FALSE(end.ours.failed());
    EXPECT_EQ(end.ours.rnr_naks.value(), 1000u);
}

TEST(RoceRequester, AsksAReceiverThatStaysNotReadyLessAndLessOften)
{
    constexpr std::uint8_t timer_10_us = 0x21, timer_2_ms = 0x2f;
    at_requester end({.rnr_retry = 7});
    end.sends.post(a_send(), bytes(3));
    auto wait_after = [&](std::uint8_t timer) {
        EXPECT_EQ(end.sent_packets().size(), 1u);
        end.answer(rc_acknowledge, first, timer);
        const std::uint64_t wait = end.ours.deadline_ns() - end.now;
        end.now += wait;
        return wait;
    };
    for (const std::uint64_t us : {10U, 20U, 40U, 80U, 160U, 320U, 640U, 640U, 640U})
        EXPECT_EQ(wait_after(timer_10_us), us * 1000);
    EXPECT_EQ(wait_after(timer_2_ms), weftio::net::rnr_wait_ns(timer_2_ms & 0x1f)); // the peer names the shortest
    EXPECT_EQ(end.sent_packets().size(), 1u);
    end.answer(rc_acknowledge, first, 0);
    end.sends.post(a_send(), bytes(3));
    EXPECT_EQ(end.sent_packets().size(), 1u);
    end.answer(rc_acknowledge, first + 1, timer_10_us);
    EXPECT_EQ(end.ours.deadline_ns() - end.now, 10'000u) << "after progress it begins anew";
}

TEST(RoceRequester, CountsTheWaitsAnewAfterEachProgress)
{
    at_requester end({.rnr_retry = 1});
    for (std::uint32_t at = 0; at < 5; ++at) {
        end.sends.post(a_send(), bytes(3));
        end.sent_packets();
        end.answer(rc_acknowledge, first + at, 0x21);
        end.now += 10'000;
        end.sent_packets();
        end.ack(first + at);
    }
    EXPECT_EQ(end.sends.ends.size(), 5u);
    EXPECT_FALSE(end.ours.failed());
}

TEST(RoceRequester, SpendsNoRetryOnPacketsThatThePeerHasYetToRead)
{
    constexpr std::uint64_t timeout = std::uint64_t{4096} << 14;
    at_requester end({.timeout = 14, .retry_count = 1});
    end.wire.peer_has_read = 1;
    end.post_write(2);
    EXPECT_EQ(end.sent_packets().size(), 2u);
    for (int at = 0; at < 20; ++at) {
        EXPECT_EQ(end.ours.deadline_ns(), end.now + timeout);
        end.now += timeout;
        EXPECT_EQ(end.sent_packets(), packets{});
    }
    end.post_write(1);
    EXPECT_EQ(end.sent_packets().size(), 1u);
    end.wire.peer_has_read = 2; // what was sent when the timeout first expired, and has not answered it
    end.now += timeout;
    EXPECT_EQ(end.sent_packets().size(), 3u);
    end.wire.peer_has_read = 6;
    end.now += timeout;
    end.sent_packets();
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::no_answer}, {1, refusal::flushed}}));
    EXPECT_EQ(end.ours.local_ack_timeout_err.value(), 2u);
}

/// Packets of others to the same peer are always under way: each retry waits for two timeouts.
TEST(RoceRequester, SpendsItsRetriesThoughThePeerHasNeverReadAll)
{
    at_requester end({.timeout = 14, .retry_count = 3});
    end.post_write(1);
    end.sent_packets();
    unsigned timeouts = 0;
    for (; !end.ours.failed() && timeouts < 100; ++timeouts) {
        end.wire.put += 10;
        end.wire.peer_has_read = end.wire.put - 1;
        end.now = end.ours.deadline_ns();
        end.sent_packets();
    }
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::no_answer}}));
    EXPECT_EQ(timeouts, 8u);
}

TEST(RoceRequester, RepeatsWhenNoAnswerComesAndGivesUpInTheEnd)
{
    at_requester end({.timeout = 14, .retry_count = 3});
    end.post_write(2);
    EXPECT_EQ(end.sent_packets().size(), 2u);
    for (int at = 0; at < 3; ++at) {
        EXPECT_EQ(end.ours.deadline_ns(), end.now + (std::uint64_t{4096} << 14));
        end.now += (std::uint64_t{4096} << 14) - 1;
        EXPECT_EQ(end.sent_packets(), packets{});
        end.now += 1;
        EXPECT_EQ(end.sent_packets(), (packets{{rc_write_first, first, false}, {rc_write_last, 0, true}}));
    }
    end.now += std::uint64_t{4096} << 14;
    EXPECT_EQ(end.sent_packets(), packets{});
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::no_answer}}));
    EXPECT_EQ(end.ours.local_ack_timeout_err.value(), 4u);
}

TEST(RoceRequester, WaitsForEverWithTimeout0)
{
    at_requester end({.timeout = 0});
    end.post_write(1);
    end.sent_packets();
    EXPECT_EQ(end.ours.deadline_ns(), 0u);
    end.now += 1ull << 50;
    EXPECT_EQ(end.sent_packets(), packets{});
}

} // namespace
