// READs and atomics of a requester: answers that are lost, repeated, or of something else.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "ends.hpp"

namespace {

using namespace roce_ends;
using namespace weftio::net;
using namespace roce_ends::asking;

class RoceRequesterReads : public testing::Test {
 protected:
    void SetUp() override
    {
        end.sends.post(read_from(1000), bytes(3 * mtu + 5), true);
        end.post_write(1);
        const auto sent = end.sent();
        ASSERT_EQ(sent.size(), 2u);
        ASSERT_EQ(sent[1].headers.bth.psn, (first + 4) & psn_mask);
    }
    void response(roce_opcode opcode, std::uint32_t at)
    {
        const std::size_t from = at * mtu, to = std::min<std::size_t>(from + mtu, data.size());
        end.answer(opcode, first + at, 0x1f,
                   {data.begin() + static_cast<std::ptrdiff_t>(from), data.begin() + static_cast<std::ptrdiff_t>(to)});
    }
    const bytes& local() { return end.sends.entries[0].local; }

    at_requester end{{.timeout = 8}};
    const bytes data = stamped(3 * mtu + 5, 4);
};

TEST_F(RoceRequesterReads, AskForTheRestOfWhatWasLost)
{
    response(rc_read_response_first, 0);
    response(rc_read_response_last, 3); // 1 and 2 are lost
    const auto again = end.sent();
    ASSERT_EQ(again.size(), 2u);
    EXPECT_EQ(again[0].headers.bth.opcode, rc_read_request);
    EXPECT_EQ(again[0].headers.bth.psn, (first + 1) & psn_mask);
    EXPECT_EQ(again[0].headers.address, fake_memory::begin + 1000 + mtu);
    EXPECT_EQ(again[0].headers.dma_bytes, 2 * mtu + 5);
    for (const auto& [opcode, at] : {std::pair{rc_read_response_first, 1u}, {rc_read_response_middle, 2u}})
        response(opcode, at);
    EXPECT_EQ(end.sends.ends, ends{});
    response(rc_read_response_last, 3);
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::none}}));
    EXPECT_EQ(local(), data);
}

/// The repeat has begun, which a lower PSN shows, and its begin is lost: it is repeated at once.
TEST_F(RoceRequesterReads, AskAgainWhenTheBeginOfTheRepeatIsLost)
{
    response(rc_read_response_middle, 1);
    response(rc_read_response_last, 3);
    EXPECT_EQ(end.sent_packets().at(0), (seen{rc_read_request, first, true}));
    EXPECT_EQ(end.sent_packets(), packets{});
    response(rc_read_response_middle, 1);
    EXPECT_EQ(end.sent_packets().at(0), (seen{rc_read_request, first, true}));
    response(rc_read_response_middle, 2);
    EXPECT_EQ(end.sent_packets(), packets{}) << "of the same repeat";
    EXPECT_EQ(end.ours.implied_nak_seq_err.value(), 2u);
}

TEST_F(RoceRequesterReads, TakeTheRestInMiddleForm)
{
    response(rc_read_response_first, 0);
    end.now += ack_timeout_ns(8);
    EXPECT_EQ(end.sent_packets().at(0), (seen{rc_read_request, 0, true}));
    response(rc_read_response_middle, 1);
    response(rc_read_response_middle, 2);
    response(rc_read_response_last, 3);
    EXPECT_EQ(local(), data);
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::none}}));
}

TEST_F(RoceRequesterReads, NoticeThatTheirAnswerIsLostByTheAckOfALaterWrite)
{
    end.ack(first + 4);
    EXPECT_EQ(end.sends.ends, ends{});
    EXPECT_EQ(end.ours.implied_nak_seq_err.value(), 1u);
    EXPECT_EQ(end.sent_packets(), (packets{{rc_read_request, first, true}, {rc_write_only, 3, true}}));
    end.ack(first + 4); // once: the clock does the rest
    EXPECT_EQ(end.sent_packets(), packets{});
    end.now += ack_timeout_ns(8);
    EXPECT_EQ(end.sent_packets().at(0), (seen{rc_read_request, first, true}));
}

TEST_F(RoceRequesterReads, AcknowledgeWhatIsBeforeThem)
{
    for (std::uint32_t at = 0; at < 4; ++at)
        response(at == 0 ? rc_read_response_first : at == 3 ? rc_read_response_last : rc_read_response_middle, at);
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::none}}));
    end.sends.post(read_from(0), bytes(1));
    end.sent_packets();
    end.answer(rc_read_response_only, first + 5, 0x1f, {7});
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::none}, {1, refusal::none}, {2, refusal::none}}));
    EXPECT_EQ(end.sends.entries[2].local, bytes{7});
}

TEST_F(RoceRequesterReads, EndWithAnAnswerOfAnotherLength)
{
    end.answer(rc_read_response_first, first, 0x1f, bytes(mtu - 1));
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::bad_response}, {1, refusal::flushed}}));
    EXPECT_EQ(local(), bytes(3 * mtu + 5));
}

TEST_F(RoceRequesterReads, EndWithAnAnswerToAnotherOperation)
{
    end.answer(rc_atomic_acknowledge, first);
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::bad_response}, {1, refusal::flushed}}));
}

TEST_F(RoceRequesterReads, EndWhenTheirMemoryHasGone)
{
    end.sends.unreadable = 0;
    response(rc_read_response_first, 0);
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::unknown_key}, {1, refusal::flushed}}));
}

TEST_F(RoceRequesterReads, EndWhenTheirEntryHasChanged)
{
    end.sends.entries[0].local.resize(mtu - 1);
    response(rc_read_response_first, 0);
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::changed}, {1, refusal::flushed}}));
}

/// After a loss a long READ is asked for in parts. Peers drop a repeat that asks for more than the part that was lost.
TEST(RoceRequester, RepeatsNoMoreOfAReadThanItHasAskedFor)
{
    at_requester end({.timeout = 8});
    constexpr std::uint32_t begin = first + 2; // of the long READ
    const auto respond = [&](std::uint32_t psn, roce_opcode opcode) { end.answer(opcode, psn, 0x1f, bytes(mtu)); };
    std::vector<std::uint32_t> parts; // where the first request for a packet has ended
    const auto take_requests = [&] {
        for (const roce_packet& packet : end.sent()) {
            const std::uint32_t from = (packet.headers.bth.psn - begin) & psn_mask,
                                to = from + packet.headers.dma_bytes / mtu;
            if (parts.empty() || from >= parts.back())
                parts.push_back(to);
            else
                EXPECT_LE(to, *std::upper_bound(parts.begin(), parts.end(), from)) << "from " << from;
        }
    };
    end.sends.post(read_from(0), bytes(2 * mtu));
    ASSERT_EQ(end.sent().size(), 1u);
    respond(first + 1, rc_read_response_last); // the first response is lost
    ASSERT_EQ(end.sent().size(), 1u);
    respond(first, rc_read_response_first);
    respond(first + 1, rc_read_response_last);
    end.sends.post(read_from(0), bytes(600 * mtu));
    take_requests();
    for (std::uint32_t at = 0; at < 600; ++at) {
        const bool ends = std::find(parts.begin(), parts.end(), at + 1) != parts.end();
        if (at % 29 == 28 || ends) { // this response is lost
            end.now += ack_timeout_ns(8);
            take_requests();
        }
        respond(begin + at, ends ? rc_read_response_last : rc_read_response_middle);
        take_requests();
    }
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::none}, {1, refusal::none}}));
    EXPECT_GT(parts.size(), 4u);
}

/// Linux's rdma_rxe drops a repeat that begins before an earlier repeat of the same request.
TEST(RoceRequester, RepeatsOneRangeOfAReadAtATime)
{
    at_requester end;
    const auto respond = [&](std::uint32_t at) { end.answer(rc_read_response_middle, first + at, 0x1f, bytes(mtu)); };
    end.sends.post(read_from(0), bytes(200 * mtu));
    ASSERT_EQ(end.sent().size(), 1u);
    respond(0);
    respond(5); // those between are lost
    for (std::uint32_t at = 1; at != 199; ++at) {
        const auto again = end.sent();
        if (at == 1) {
            EXPECT_EQ(again.size(), 1u) << "the rest waits for the answer";
        }
        for (const roce_packet& packet : again)
            EXPECT_EQ(packet.headers.bth.psn, (first + at) & psn_mask) << "everything before has arrived";
        respond(at);
    }
    end.answer(rc_read_response_last, first + 199, 0x1f, bytes(mtu));
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::none}}));
}

/// The window limits the responses in flight, in several parts, and the peer's limit of READs is kept.
TEST(RoceRequester, HasSeveralPartsOfAReadInFlightAfterALoss)
{
    for (const std::uint8_t most : {std::uint8_t{1}, std::uint8_t{4}, std::uint8_t{16}}) {
        at_requester end({.most_reads = most});
        end.sends.post(read_from(0), bytes(2 * mtu));
        ASSERT_EQ(end.sent().size(), 1u);
        end.answer(rc_read_response_last, first + 1, 0x1f, bytes(mtu));
        ASSERT_EQ(end.sent().size(), 1u);
        end.answer(rc_read_response_first, first, 0x1f, bytes(mtu));
        end.answer(rc_read_response_last, first + 1, 0x1f, bytes(mtu));
        end.sends.post(read_from(0), bytes(600 * mtu));
        const auto sent = end.sent();
        const std::size_t part = most == 1 ? 32 : most == 4 ? 16 : 8;
        EXPECT_EQ(sent.size(), most == 16 ? 64 / part : most) << int(most);
        std::uint32_t psn = first + 2;
        for (const roce_packet& packet : sent) {
            EXPECT_EQ(packet.headers.bth.psn, psn & psn_mask);
            EXPECT_EQ(packet.headers.dma_bytes, part * mtu);
            psn += static_cast<std::uint32_t>(part);
        }
    }
}

TEST(RoceRequester, EndsWhenAReadAnswersAWrite)
{
    at_requester end;
    end.post_write(1);
    end.sent_packets();
    end.answer(rc_read_response_only, first, 0x1f, bytes(1));
    EXPECT_EQ(end.sends.ends, (ends{{0, refusal::bad_response}}));
}

TEST(RoceRequester, KeepsTheLimitOfReadsAndAtomics)
{
    at_requester end({.most_reads = 2});
    for (int at = 0; at < 3; ++at)
        end.sends.post(fetch_add(0, 1), bytes(8), true);
    end.post_write(1);
    EXPECT_EQ(end.sent_packets(), (packets{{rc_fetch_add, first, true}, {rc_fetch_add, 0, true}}));
    end.answer(rc_atomic_acknowledge, first, 0x1f, {}, 0x0102030405060708);
    EXPECT_EQ(end.sent_packets(), (packets{{rc_fetch_add, 1, true}, {rc_write_only, 2, true}}));
    std::uint64_t word = 0;
    std::memcpy(&word, end.sends.entries[0].local.data(), 8);
    EXPECT_EQ(word, 0x0102030405060708u);
}

TEST(RoceRequester, HoldsAFencedEntryUntilReadsAreAnswered)
{
    at_requester end;
    end.sends.post(read_from(0), bytes(1), true);
    message fenced = write_to(0);
    fenced.fence = true;
    end.sends.post(fenced, bytes(8));
    EXPECT_EQ(end.sent_packets(), (packets{{rc_read_request, first, true}}));
    end.answer(rc_read_response_only, first, 0x1f, bytes(1));
    EXPECT_EQ(end.sent_packets(), (packets{{rc_write_only, 0, true}}));
}

} // namespace
