// What a responder answers to single packets: each rule of the transport on its own.
#include <gtest/gtest.h>

#include "ends.hpp"

namespace {

using namespace roce_ends;
using namespace weftio::net;
using namespace roce_ends::responding;

TEST(RoceResponder, AllowsWhatTheQueueAllows)
{
    const std::tuple<weftio::access, roce_opcode, refusal> forbidden[]{
        {access::remote_read | access::remote_atomic, rc_write_only, refusal::queue_denies_write},
        {access::remote_write | access::remote_atomic, rc_read_request, refusal::queue_denies_read},
        {access::remote_write | access::remote_read, rc_fetch_add, refusal::queue_denies_atomic}};
    for (const auto& [rights, opcode, why] : forbidden) {
        at_responder end({.rights = rights});
        end.ask(opcode, first, 0);
        EXPECT_EQ(end.answered(), (answers{nak(0x61, first)})) << int(opcode);
        EXPECT_EQ(end.ours.last_refused().reason, why);
    }
}

TEST(RoceResponder, RefusesMoreReadsThanAgreed)
{
    at_responder end({.most_reads_of_peer = 2});
    for (std::uint32_t at = 0; at < 3; ++at)
        end.ask(rc_read_request, first + at, 0, dma(8));
    EXPECT_EQ(end.answered(), (answers{{rc_read_response_only, first, 0x1f, 1},
                                       {rc_read_response_only, 0, 0x1f, 2},
                                       nak(0x61, first + 2, 2)}));
    EXPECT_EQ(end.ours.last_refused().reason, refusal::too_many_reads);
}

TEST(RoceResponder, NeedsNoKeyForNoBytes)
{
    at_responder end;
    end.ask(rc_write_only, first, 0, dma(0, 1u << 30, 0));
    end.ask(rc_read_request, first + 1, 0, dma(0, 1u << 30, 0));
    EXPECT_EQ(end.answered(), (answers{ack(first, 1), {rc_read_response_only, 0, 0x1f, 2}}));
}

TEST(RoceResponder, ReportsAGapOnce)
{
    at_responder end;
    end.ask(rc_write_only, first + 2, 8);
    end.ask(rc_write_only, first + 3, 8);
    end.ask(rc_write_only, first + 2, 8);
    EXPECT_EQ(end.answered(), (answers{nak(0x60, first)}));
    EXPECT_EQ(end.bytes_written(), 0u);
    end.ask(rc_write_only, first, 8);
    EXPECT_EQ(end.answered(), (answers{ack(first, 1)}));
    end.ask(rc_write_only, first + 2, 8);
    EXPECT_EQ(end.answered(), (answers{nak(0x60, first + 1, 1)}));
    EXPECT_EQ(end.ours.out_of_sequence.value(), 4u);
}

TEST(RoceResponder, SaysThatItIsNotReadyUntilThereIsAnEntry)
{
    at_responder end({.min_rnr_timer = 18});
    end.ask(rc_send_first, first, mtu);
    end.ask(rc_send_last, first + 1, 1); // it is ahead of its turn, but no gap
    EXPECT_EQ(end.answered(), (answers{nak(0x32, first)}));
    end.ask(rc_send_first, first, mtu);
    EXPECT_EQ(end.answered(), (answers{nak(0x32, first)}));
    end.receives.post(mtu + 1);
    end.ask(rc_send_first, first, mtu);
    end.ask(rc_send_last, first + 1, 1);
    EXPECT_EQ(end.answered(), (answers{ack(first + 1, 1)}));
    EXPECT_EQ(end.receives.messages, (std::vector<bytes>{bytes(mtu + 1, 0xee)}));
    EXPECT_EQ(end.ours.not_ready.value(), 2u);
}

TEST(RoceResponder, WritesNothingOfAPacketForWhoseImmediateThereIsNoEntry)
{
    at_responder end;
    end.ask(rc_write_first, first, mtu, [](roce_headers& headers) {
        headers.dma_bytes = mtu + 8;
        headers.bth.ack_request = false;
    });
    end.ask(rc_write_last_immediate, first + 1, 8);
    EXPECT_EQ(end.answered(), (answers{nak(0x2c, first + 1)}));
    EXPECT_EQ(end.bytes_written(), mtu);
    end.receives.post(0);
    end.ask(rc_write_last_immediate, first + 1, 8);
    EXPECT_EQ(end.answered(), (answers{ack(first + 1, 1)}));
    EXPECT_EQ(end.bytes_written(), mtu + 8);
    EXPECT_EQ(end.receives.completions.at(0).bytes, mtu + 8);
}

TEST(RoceResponder, AcknowledgesARepeatAndDoesNotExecuteIt)
{
    at_responder end;
    end.receives.post(8);
    end.ask(rc_write_only, first, 8);
    end.ask(rc_send_only, first + 1, 8);
    EXPECT_EQ(end.answered(), (answers{ack(first + 1, 2)}));
    std::fill(end.memory.all().begin(), end.memory.all().end(), std::uint8_t{0});
    const auto quiet = [](roce_headers& headers) { headers.bth.ack_request = false; };
    end.ask(rc_write_only, first, 8, quiet);
    EXPECT_EQ(end.answered(), (answers{ack(first + 1, 2)}));
    end.ask(rc_send_only, first + 1, 8, quiet);
    EXPECT_EQ(end.answered(), (answers{ack(first + 1, 2)}));
    EXPECT_EQ(end.bytes_written(), 0u);
    EXPECT_EQ(end.receives.completions.size(), 1u);
    EXPECT_EQ(end.ours.duplicate.value(), 2u);
}

TEST(RoceResponder, ReadsAgainWhatIsAskedForAgain)
{
    at_responder end;
    end.ask(rc_read_request, first, 0, dma(2 * mtu + 5));
    const answers whole{{rc_read_response_first, first, 0x1f, 1},
                        {rc_read_response_middle, 0, 0, 0},
                        {rc_read_response_last, 1, 0x1f, 1}};
    EXPECT_EQ(end.answered(), whole);
    end.ask(rc_read_request, first, 0, dma(2 * mtu + 5));
    EXPECT_EQ(end.answered(), whole);
    end.ask(rc_read_request, first + 1, 0, dma(mtu + 5, mtu));
    EXPECT_EQ(end.answered(), (answers{{rc_read_response_first, 0, 0x1f, 1}, {rc_read_response_last, 1, 0x1f, 1}}));
    EXPECT_EQ(end.ours.expected_psn(), 2u);
}

/// The peer goes back, and asks again for all that follows: what waited for it goes.
TEST(RoceResponder, ARepeatedReadTakesThePlaceOfWhatFollowsIt)
{
    at_responder end;
    end.ask(rc_write_only, first, 8);
    end.ask(rc_read_request, first + 1, 0, dma(5 * mtu));
    end.ask(rc_read_request, first + 6, 0, dma(mtu));
    EXPECT_EQ(end.answered(3),
              (answers{ack(first, 1), {rc_read_response_first, 0, 0x1f, 2}, {rc_read_response_middle, 1, 0, 0}}));
    end.ask(rc_read_request, first + 2, 0, dma(2 * mtu, mtu));
    EXPECT_EQ(end.answered(), (answers{{rc_read_response_first, 1, 0x1f, 3}, {rc_read_response_last, 2, 0x1f, 3}}));
    end.ask(rc_read_request, first + 6, 0, dma(mtu));
    EXPECT_EQ(end.answered(), (answers{{rc_read_response_only, 5, 0x1f, 3}}));
}

TEST(RoceResponder, DropsARepeatedReadThatCannotBeOne)
{
    at_responder end;
    end.ask(rc_read_request, first, 0, dma(2 * mtu));
    EXPECT_EQ(end.answered().size(), 2u);
    end.ask(rc_read_request, first, 0, dma(8, 0, 1));        // wrong key
    end.ask(rc_read_request, first, 0, dma((1u << 31) + 1)); // too long
    end.ask(rc_write_first, first + 2, mtu, dma(3 * mtu));
    end.ask(rc_read_request, first + 1, 0, dma(3 * mtu)); // its last packet is one of the WRITE
    EXPECT_EQ(end.answered(), (answers{ack(first + 2, 1)}));
    EXPECT_FALSE(end.ours.failed());
    EXPECT_EQ(end.ours.ignored.value(), 3u);
    EXPECT_EQ(end.ours.duplicate.value(), 0u);
}

/// A requester that has lost responses may split a long READ otherwise than before.
TEST(RoceResponder, ExecutesThePartOfARepeatedReadThatIsNew)
{
    at_responder end({.most_reads_of_peer = 1});
    end.ask(rc_read_request, first, 0, dma(4 * mtu));
    EXPECT_EQ(end.answered().size(), 4u);
    end.ask(rc_read_request, first + 2, 0, dma(4 * mtu + 5, 2 * mtu));
    EXPECT_EQ(end.answered(), (answers{{rc_read_response_first, 1, 0x1f, 2},
                                       {rc_read_response_middle, 2, 0, 0},
                                       {rc_read_response_middle, 3, 0, 0},
                                       {rc_read_response_middle, 4, 0, 0},
                                       {rc_read_response_last, 5, 0x1f, 2}}));
    EXPECT_EQ(end.ours.expected_psn(), 6u);
    EXPECT_EQ(end.ours.executed.value(), 2u);
    end.ask(rc_write_only, first + 7, 8);
    EXPECT_EQ(end.answered(), (answers{ack(first + 7, 3)}));
}

TEST(RoceResponder, RefusesTheNewPartOfARepeatedReadAsAnyOther)
{
    at_responder end;
    end.ask(rc_read_request, first, 0, dma(2 * mtu, 4096 - 2 * mtu));
    EXPECT_EQ(end.answered().size(), 2u);
    end.ask(rc_read_request, first + 1, 0, dma(2 * mtu, 4096 - mtu));
    EXPECT_EQ(end.answered(), (answers{nak(0x62, first + 2, 1)}));
    EXPECT_TRUE(end.ours.failed());
}

TEST(RoceResponder, ExecutesAnAtomicOnceAndAnswersItAgain)
{
    at_responder end({.most_reads_of_peer = 2});
    const auto add = [](roce_headers& headers) { headers.swap_or_add = 5; };
    for (std::uint32_t at = 0; at < 3; ++at) {
        end.ask(rc_fetch_add, first + at, 0, add);
        EXPECT_EQ(end.answered(), (answers{{rc_atomic_acknowledge, (first + at) & psn_mask, 0x1f, at + 1}}));
    }
    end.ask(rc_fetch_add, first + 2, 0, add);
    end.ours.send(end.wire, 9);
    const auto again = end.wire.read();
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].headers.original, 10u);
    EXPECT_EQ(end.memory.data()[0], 15);
    end.ask(rc_fetch_add, first, 0, add); // two results are kept
    EXPECT_EQ(end.answered(), answers{});
    EXPECT_EQ(end.ours.duplicate.value(), 1u);
    EXPECT_EQ(end.ours.ignored.value(), 1u) << "a repeat that is not answered";
}

TEST(RoceResponder, SendsOneAckForMany)
{
    at_responder end;
    for (std::uint32_t at = 0; at < 3; ++at)
        end.ask(rc_write_only, first + at, 8);
    end.ask(rc_read_request, first + 3, 0, dma(8));
    end.ask(rc_write_only, first + 4, 8);
    end.ask(rc_write_only, first + 5, 8);
    EXPECT_EQ(end.answered(), (answers{ack(first + 2, 3), {rc_read_response_only, 2, 0x1f, 4}, ack(first + 5, 6)}));
}

TEST(RoceResponder, HidesNoNakBehindTheAckOfARepeat)
{
    at_responder end;
    end.ask(rc_write_only, first, 8);
    end.ask(rc_write_only, first + 2, 8);
    end.ask(rc_write_only, first, 8);
    EXPECT_EQ(end.answered(), (answers{nak(0x60, first + 1, 1)}));
}

TEST(RoceResponder, AnswersOnlyWhoAsks)
{
    at_responder end;
    end.ask(rc_write_only, first, 8, [](roce_headers& headers) { headers.bth.ack_request = false; });
    EXPECT_EQ(end.answered(), answers{});
    EXPECT_EQ(end.bytes_written(), 8u);
}

TEST(RoceResponder, GoesOnWithALongReadWhereItStopped)
{
    at_responder end;
    end.ask(rc_read_request, first, 0, dma(3 * mtu));
    end.ask(rc_write_only, first + 3, 8);
    EXPECT_EQ(end.answered(1), (answers{{rc_read_response_first, first, 0x1f, 1}}));
    end.wire.room = 1;
    EXPECT_EQ(end.answered(), (answers{{rc_read_response_middle, 0, 0, 0}}));
    EXPECT_EQ(end.answered(), (answers{{rc_read_response_last, 1, 0x1f, 1}}));
    EXPECT_FALSE(end.ours.idle());
    EXPECT_EQ(end.answered(), (answers{ack(first + 3, 2)}));
    EXPECT_TRUE(end.ours.idle());
}

TEST(RoceResponder, EndsAReadWhoseMemoryHasGone)
{
    at_responder end;
    end.ask(rc_read_request, first, 0, dma(2 * mtu));
    end.ask(rc_write_only, first + 2, 8);
    EXPECT_EQ(end.answered(1).size(), 1u);
    end.memory.own_key = 1;
    EXPECT_EQ(end.answered(), (answers{nak(0x63, first + 1, 2)}));
    EXPECT_TRUE(end.ours.failed());
}

TEST(RoceResponder, DropsARepeatedReadWhoseMemoryHasGone)
{
    at_responder end;
    end.ask(rc_read_request, first, 0, dma(2 * mtu));
    EXPECT_EQ(end.answered().size(), 2u);
    end.ask(rc_read_request, first, 0, dma(2 * mtu));
    end.memory.own_key = 1;
    EXPECT_EQ(end.answered(), answers{});
    EXPECT_TRUE(end.ours.idle());
    EXPECT_FALSE(end.ours.failed());
}

TEST(RoceResponder, TellsItsCredits)
{
    at_responder end;
    end.receives.credit_code = 5;
    end.ask(rc_write_only, first, 8);
    EXPECT_EQ(end.answered(), (answers{{rc_acknowledge, first, 5, 1}}));
}

TEST(RoceResponder, FlushesTheEntryThatIsHalfFullWhenItIsStopped)
{
    at_responder end;
    end.receives.post(1000);
    end.ask(rc_send_first, first, mtu);
    end.ours.stop();
    ASSERT_EQ(end.receives.completions.size(), 1u);
    EXPECT_EQ(end.receives.completions[0].result, refusal::flushed);
}

TEST(RoceResponder, SendsAsManyPacketsOfAReadAsTheWireHasRoomFor)
{
    at_responder end;
    end.ask(rc_read_request, first, 0, dma(4 * mtu));
    end.wire.room = 3;
    EXPECT_EQ(end.ours.send(end.wire, 10), 3u);
    EXPECT_EQ(end.wire.read().size(), 3u);
    EXPECT_EQ(end.ours.send(end.wire, 10), 1u);
    EXPECT_EQ(end.wire.read().at(0).headers.bth.opcode, rc_read_response_last);
}

TEST(RoceResponder, IgnoresWhatIsNotForIt)
{
    at_responder end;
    end.ask(rc_acknowledge, first);
    end.ask(rc_read_response_only, first, 8);
    end.ask(uc_write_only, first, 8);
    end.ask(ud_send_only, first, 8);
    end.ask(cnp, first, 16);
    end.ask(rc_write_only, first, 8, [](roce_headers& headers) { headers.bth.partition_key = 0x1234; });
    EXPECT_EQ(end.answered(), answers{});
    EXPECT_EQ(end.ours.ignored.value(), 6u);
    EXPECT_EQ(end.bytes_written(), 0u);
}

// Unreliable connections: nothing is answered, and what does not fit ends its message only.

TEST(RoceUnreliableResponder, LosesTheMessageThatHasAGapAndPutsTheNextIntoItsReceive)
{
    at_responder end(weftio::rdma_service::unreliable);
    end.receives.post(1000);
    end.ask(uc_send_first, first, mtu);
    end.ask(uc_send_last, first + 2, 8); // the middle is lost
    EXPECT_TRUE(end.receives.completions.empty()) << "the receive is posted still";
    end.ask(uc_send_middle, first + 3, mtu);
    end.ask(uc_send_only, first + 5, 9);
    ASSERT_EQ(end.receives.completions.size(), 1u);
    EXPECT_EQ(end.receives.completions[0].result, refusal::none);
    EXPECT_EQ(end.receives.completions[0].bytes, 9u);
    end.ask(uc_send_only, first + 6, 9); // no entry is left
    end.ask(uc_write_only, first + 7, 8, dma(8, 0, 1));
    end.ask(uc_write_only, first + 8, 8);
    EXPECT_EQ(end.bytes_written(), 8u);
    EXPECT_EQ(end.answered(), answers{});
    EXPECT_FALSE(end.ours.failed());
    EXPECT_EQ(end.ours.not_ready.value(), 1u);
}

/// A local error of the work queue, which ends a connection of either service.
TEST(RoceUnreliableResponder, EndsWithAReceiveThatFails)
{
    at_responder end(weftio::rdma_service::unreliable);
    end.receives.post(100);
    end.receives.post(1000);
    end.ask(uc_send_only, first, 101);
    EXPECT_TRUE(end.ours.failed());
    ASSERT_EQ(end.receives.completions.size(), 1u);
    EXPECT_EQ(end.receives.completions[0].result, refusal::receive_too_short);
    end.ask(uc_send_only, first + 1, 9);
    EXPECT_EQ(end.receives.completions.size(), 1u) << "it takes nothing more";
    EXPECT_EQ(end.answered(), answers{});
    EXPECT_EQ(end.ours.refused.value(), 1u);
    EXPECT_EQ(end.ours.ignored.value(), 1u);
}

TEST(RoceUnreliableResponder, TakesAFirstPacketInPlaceOfALast)
{
    at_responder end(weftio::rdma_service::unreliable);
    end.ask(uc_write_first, first, mtu, dma(2 * mtu));
    end.ask(uc_write_only, first + 1, 8, dma(8, 1024));
    EXPECT_EQ(end.memory.data()[1024 + 7], 0xee);
}

} // namespace
