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
