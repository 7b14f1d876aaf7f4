// What a requester sends, and what it makes of single answers: each rule of the transport on its own.
#include <gtest/gtest.h>

#include "ends.hpp"

namespace {

using namespace roce_ends;
using namespace weftio::net;
using namespace roce_ends::asking;

TEST(RoceRequester, CutsMessagesAndAsksAtTheEndOfAPush)
{
    at_requester end;
    message last = a_send();
    last.extra = roce_extra::immediate;
    end.sends.post(write_to(0), bytes(2 * mtu + 1), true);
    end.sends.post(a_send(), bytes(mtu), true);
    end.sends.post(last, bytes(mtu + 1));
    EXPECT_EQ(end.sent_packets(), (packets{{rc_write_first, first, false},
                                           {rc_write_middle, 0, false},
                                           {rc_write_last, 1, false},
                                           {rc_send_only, 2, false},
                                           {rc_send_first, 3, false},
                                           {rc_send_last_immediate, 4, true}}));
    end.ack(4);
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::none}, {1, refusal::none}, {2, refusal::none}}));
    EXPECT_TRUE(end.ours.idle());
}

TEST(RoceRequester, AsksOnEvery64thPacketAndStopsAt128)
{
    at_requester end;
    end.post_write(300);
    const packets sent = end.sent_packets();
    ASSERT_EQ(sent.size(), 128u);
    for (std::size_t at = 0; at < sent.size(); ++at)
        EXPECT_EQ(sent[at].ack_request, at == 63 || at == 127) << at;
    EXPECT_EQ(end.sent_packets(), packets{});
    end.ack(first + 63);
    EXPECT_EQ(end.sent_packets().size(), 64u);
}

TEST(RoceRequester, AsksOnThePacketThatFillsItsWindow)
{
    at_requester end({.window = 3});
    end.post_write(9);
    EXPECT_EQ(end.sent_packets(),
              (packets{{rc_write_first, first, false}, {rc_write_middle, 0, false}, {rc_write_middle, 1, true}}));
    end.ack(first + 2);
    EXPECT_EQ(end.sent_packets().size(), 3u);
}

TEST(RoceRequester, ReadsNoMoreEntriesInOneCallThanItMay)
{
    at_requester end;
    for (int at = 0; at < 10; ++at)
        end.sends.post({}, {}, at != 9);
    end.sent_packets(4);
    EXPECT_EQ(end.sends.ends.size(), 4u);
}

TEST(RoceRequester, KeepsAtMost128MessagesInFlightAndAsksAtTheLast)
{
    at_requester end;
    for (int at = 0; at < 130; ++at)
        end.sends.post(a_send(), {}, true);
    const packets sent = end.sent_packets();
    ASSERT_EQ(sent.size(), 128u);
    EXPECT_TRUE(sent[127].ack_request);
}

TEST(RoceRequester, AsksAtTheLastMessageThatHasRoomAlsoWhenPacketsHave)
{
    at_requester end;
    end.sends.post(a_send(), {});
    end.sends.post({}, {}, true);
    for (int at = 0; at < 130; ++at)
        end.sends.post(a_send(), {}, true);
    const packets sent = end.sent_packets();
    ASSERT_EQ(sent.size(), 127u);
    EXPECT_TRUE(sent[126].ack_request);
}

TEST(RoceRequester, TakesAnAckForAllBeforeIt)
{
    at_requester end;
    end.post_write(1, true);
    end.post_write(3, true);
    end.post_write(1);
    end.sent_packets();
    end.ack(first + 2); // in the middle of the second
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::none}}));
    end.ack(first + 1); // it was late
    end.ack(first + 4);
    EXPECT_EQ(end.sends.ends.size(), 3u);
    EXPECT_EQ(end.ours.stale_answers.value(), 1u);
}

TEST(RoceRequester, RepeatsFromTheGapWithTheSameOpcodes)
{
    at_requester end;
    end.post_write(4);
    end.sent_packets();
    end.answer(rc_acknowledge, first + 2, 0x60);
    EXPECT_EQ(end.sent_packets(), (packets{{rc_write_middle, 1, false}, {rc_write_last, 2, true}}));
    end.ack(first + 3);
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::none}}));
    EXPECT_EQ(end.ours.packet_seq_err.value(), 1u);
    EXPECT_EQ(end.ours.repeated.value(), 2u);
}

TEST(RoceRequester, RepeatsBytesOfAnEntryThatItHasReadOnce)
{
    at_requester end;
    end.post_write(2);
    end.sent();
    end.answer(rc_acknowledge, first + 1, 0x60);
    const auto again = end.sent();
    ASSERT_EQ(again.size(), 1u);
    const bytes all = stamped(2 * mtu, 1);
    EXPECT_TRUE(std::equal(again[0].payload.begin(), again[0].payload.end(), all.begin() + mtu));
    EXPECT_EQ(end.sends.reads, 1u);
}

TEST(RoceRequester, HalvesItsWindowOnLossAndOpensItAgain)
{
    at_requester end;
    end.post_write(1000);
    end.sent_packets();
    end.answer(rc_acknowledge, first, 0x60);
    EXPECT_EQ(end.sent_packets().size(), 64u);
    end.ack(first + 31);
    EXPECT_EQ(end.sent_packets().size(), 42u); // 32 acknowledged, and a window of 74
    std::uint32_t sent = 106, acknowledged = 32;
    for (; sent - acknowledged < 128 && sent < 900; sent += static_cast<std::uint32_t>(end.sent_packets().size())) {
        acknowledged = sent;
        end.ack(first + sent - 1);
    }
    EXPECT_EQ(sent - acknowledged, 128u);
    EXPECT_LT(sent, 500u);
}

/// A lost packet that asks for an ACK is shown by those behind it.
TEST(RoceRequester, AsksFourTimesInAWindowAfterALoss)
{
    at_requester end({.window = 16});
    end.post_write(100);
    end.sent_packets();
    end.answer(rc_acknowledge, first, 0x60);
    std::vector<bool> asks;
    for (const seen& packet : end.sent_packets())
        asks.push_back(packet.ack_request);
    EXPECT_EQ(asks, (std::vector<bool>{false, true, false, true, false, true, false, true}));
}

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

TEST_F(RoceOverdue, RepeatsTheLastPartOfAReadAndSkipsLocalOperations)
{
    end.sends.post(read_from(0), bytes(100 * mtu));
    end.sends.post({}, {});
    EXPECT_EQ(end.sent().size(), 1u);
    end.now = end.ours.deadline_ns();
    const auto again = end.sent();
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].headers.bth.psn, 96u);
    EXPECT_EQ(again[0].headers.dma_bytes, 4 * mtu);
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

TEST(RoceRequester, GoesForwardAgainWhenAnAckWasOnlyLate)
{
    at_requester end({.timeout = 1});
    end.post_write(3);
    end.sent_packets();
    end.now += ack_timeout_ns(1);
    EXPECT_EQ(end.sent_packets(1), (packets{{rc_write_first, first, false}}));
    end.ack(first + 1);
    EXPECT_EQ(end.sent_packets(), (packets{{rc_write_last, 1, true}}));
}

TEST(RoceRequester, IgnoresANakForWhatIsAlreadyRepeated)
{
    at_requester end;
    end.post_write(2);
    end.sent_packets();
    end.answer(rc_acknowledge, first, 0x60);
    end.answer(rc_acknowledge, first, 0x60);
    EXPECT_EQ(end.ours.packet_seq_err.value(), 1u);
}

// Errors.

TEST(RoceRequester, EndsWithTheStatusOfTheNakAndFlushesTheRest)
{
    const std::pair<std::uint8_t, refusal> table[]{{0x61, refusal::remote_invalid},
                                                   {0x62, refusal::remote_access},
                                                   {0x63, refusal::remote_operation},
                                                   {0x64, refusal::remote_operation},
                                                   {0x7f, refusal::remote_operation}};
    for (const auto& [syndrome, expected] : table) {
        at_requester end;
        for (int at = 0; at < 3; ++at)
            end.post_write(1, at != 2);
        end.sent_packets();
        end.answer(rc_acknowledge, first + 1, syndrome);
        EXPECT_EQ(end.sends.ends, (ends{{0, refusal::none}, {1, expected}, {2, refusal::flushed}}));
        EXPECT_TRUE(end.ours.failed());
        end.post_write(1);
        EXPECT_EQ(end.sent_packets(), packets{});
        EXPECT_EQ(end.ours.entries_read.value(), 3u);
        EXPECT_EQ(end.ours.deadline_ns(), 0u);
    }
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

TEST(RoceRequester, EndsWithAnEntryThatHasChangedBeforeItsRepeat)
{
    at_requester end({.timeout = 1});
    end.post_write(1, true);
    end.post_write(1);
    end.sent_packets();
    end.sends.entries[1].local.pop_back();
    end.now += ack_timeout_ns(1);
    EXPECT_EQ(end.sent_packets(), (packets{{rc_write_only, first, true}}));
    end.ack(first);
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::none}, {1, refusal::changed}}));
}

TEST(RoceRequester, EndsWithABadEntryOnceThoseBeforeItHaveEnded)
{
    at_requester end({.timeout = 0});
    end.post_write(1, true);
    end.post_write(1);
    end.sends.refusals[1] = refusal::wrong_size;
    EXPECT_EQ(end.sent_packets(), (packets{{rc_write_only, first, false}}));
    EXPECT_EQ(end.sent_packets(), (packets{{rc_write_only, first, true}})); // it had not asked, and nothing follows
    end.ack(first);
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::none}, {1, refusal::wrong_size}}));
}

TEST(RoceRequester, EndsWithLocalMemoryThatIsGone)
{
    at_requester end;
    end.post_write(1);
    end.sends.unreadable = 0;
    EXPECT_EQ(end.sent_packets(), packets{});
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::unknown_key}}));
}

TEST(RoceRequester, ExecutesLocalOperationsOnceInTheOrderOfTheEntries)
{
    at_requester end;
    end.post_write(1, true);
    end.sends.post({}, {}, true);
    end.post_write(1, true);
    end.sends.post({}, {});
    EXPECT_EQ(end.sent_packets(2).size(), 1u); // a local operation spends a packet of the allowance
    EXPECT_EQ(end.sends.executed, (std::vector<std::uint32_t>{1}));
    end.sent_packets();
    EXPECT_EQ(end.sends.executed, (std::vector<std::uint32_t>{1, 3}));
    EXPECT_EQ(end.sends.ends, ends{}); // they end in order
    end.answer(rc_acknowledge, first, 0x60);
    EXPECT_EQ(end.sent_packets().size(), 2u);
    EXPECT_EQ(end.sends.executed, (std::vector<std::uint32_t>{1, 3})) << "a retry must not execute them again";
    end.ack(first + 1);
    EXPECT_EQ(end.sends.ends.size(), 4u);
}

TEST(RoceRequester, EndsWithALocalOperationThatFailsOnceThoseBeforeItHaveEnded)
{
    at_requester end;
    end.post_write(1, true);
    end.sends.post({}, {}, true);
    end.post_write(1);
    end.sends.unreadable = 1;
    EXPECT_EQ(end.sent_packets().size(), 1u);
    EXPECT_EQ(end.sent_packets().size(), 1u); // the first again, which now asks for an ACK
    end.ack(first);
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::none}, {1, refusal::unknown_key}}));
    EXPECT_EQ(end.sends.executed, (std::vector<std::uint32_t>{1}));
}

TEST(RoceRequester, HoldsAFencedLocalOperationUntilReadsAreAnswered)
{
    at_requester end;
    end.sends.post(read_from(0), bytes(1), true);
    end.sends.post({.fence = true}, {});
    end.sent_packets();
    EXPECT_TRUE(end.sends.executed.empty());
    end.answer(rc_read_response_only, first, 0x1f, bytes(1));
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::none}})) << "an answer must not complete what was not executed";
    end.sent_packets();
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::none}, {1, refusal::none}}));
}

TEST(RoceRequester, RefusesMoreThan2GiB)
{
    for (const bool reads : {false, true}) {
        at_requester end;
        end.sends.post(reads ? read_from(0) : write_to(0), bytes(1));
        end.sends.entries[0].request.bytes = (1u << 31) + 1;
        EXPECT_EQ(end.sent_packets(), packets{});
        EXPECT_EQ(end.sends.ends, (ends{{0, reads ? refusal::read_too_long : refusal::message_too_long}}));
    }
}

TEST(RoceRequester, FlushesAllWhenItIsStopped)
{
    at_requester end;
    end.post_write(1, true);
    end.post_write(1);
    end.sent_packets();
    end.ours.stop();
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::flushed}, {1, refusal::flushed}}));
    EXPECT_TRUE(end.ours.idle());
}

TEST(RoceRequester, SendsThePacketForWhichThereWasNoRoomLater)
{
    at_requester end;
    end.post_write(2);
    end.wire.room = 1;
    EXPECT_EQ(end.sent_packets(), (packets{{rc_write_first, first, false}}));
    EXPECT_EQ(end.sent_packets(), (packets{{rc_write_last, 0, true}}));
}

TEST(RoceRequester, CompletesAnEntryThatDoesNothingInItsTurn)
{
    at_requester end;
    end.post_write(1);
    end.sends.post({}, {});
    end.sent_packets();
    EXPECT_EQ(end.sends.ends, ends{});
    end.ack(first);
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::none}, {1, refusal::none}}));
    end.sends.post({}, {});
    EXPECT_EQ(end.sent_packets(), packets{});
    EXPECT_EQ(end.sends.ends.size(), 3u);
}

TEST(RoceRequester, IgnoresAnswersThatFitNothing)
{
    at_requester end;
    end.post_write(2);
    end.sent_packets();
    end.ack(first + 2);                          // not sent yet
    end.answer(rc_acknowledge, first + 2, 0x62); // nor this
    end.answer(rc_acknowledge, first + 1, 0x80); // a kind that is reserved
    end.answer(rc_write_only, first);            // no answer at all
    EXPECT_EQ(end.ours.wrong_answers.value(), 4u);
    end.answer(rc_acknowledge, first - 1, 0x62); // of a connection that was
    EXPECT_EQ(end.ours.stale_answers.value(), 1u);
    EXPECT_EQ(end.sends.ends, ends{});
    EXPECT_FALSE(end.ours.failed());
}

// Unreliable connections.

TEST(RoceUnreliableRequester, CompletesWhatItHasSent)
{
    at_requester end(weftio::rdma_service::unreliable);
    end.post_write(200, true);
    end.sends.post(a_send(), bytes(3));
    EXPECT_EQ(end.sent_packets(199).back(), (seen{uc_write_middle, first + 198 - (1u << 24), false}));
    EXPECT_EQ(end.sends.ends, ends{});
    EXPECT_EQ(end.sent_packets(), (packets{{uc_write_last, 198, false}, {uc_send_only, 199, false}}));
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::none}, {1, refusal::none}}));
    EXPECT_EQ(end.ours.deadline_ns(), 0u);
    end.sends.post(read_from(0), bytes(8));
    EXPECT_EQ(end.sent_packets(), packets{});
    EXPECT_EQ(end.sends.ends.back(), (fake_sends::ended{2, refusal::unreliable}));
}

TEST(RoceRequesterForms, ThatAreWrongAnswerNothing)
{
    at_requester end;
    end.post_write(1);
    end.sent();
    roce_packet packet;
    packet.headers.bth = {.opcode = rc_acknowledge, .psn = first};
    packet.headers.syndrome = 0x1f;
    packet.form = roce_refusal::no_extended_headers;
    end.ours.receive(packet, end.now);
    EXPECT_EQ(end.ours.wrong_answers.value(), 1u);
    EXPECT_EQ(end.sends.ends, ends{});
}

} // namespace
