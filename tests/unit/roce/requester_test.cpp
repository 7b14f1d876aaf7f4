// What a requester sends, and what it makes of single answers: each rule of the transport on its own.
#include <gtest/gtest.h>

#include "ends.hpp"

namespace {

using namespace roce_ends;
using namespace weftio::nic;
using enum roce_opcode;
using ends = std::vector<fake_sends::end>;

constexpr std::uint32_t first = 0xffffff, mtu = 256; // the first PSN: the next one is 0

/// A packet that was sent: what the tests look at.
struct seen {
    roce_opcode opcode;
    std::uint32_t psn;
    bool ack_request;

    bool operator==(const seen&) const = default;
    friend void PrintTo(const seen& one, std::ostream* to)
    {
        *to << std::hex << "opcode " << int(one.opcode) << " psn " << one.psn << (one.ack_request ? " asks" : "");
    }
};
using packets = std::vector<seen>;

class at_requester {
 public:
    explicit at_requester(requester_settings settings = {}) : ours(finished(settings), sends) {}

    std::vector<roce_packet> sent(unsigned most = 1000)
    {
        ours.send(wire, most, now);
        return wire.read();
    }
    packets look(unsigned most = 1000)
    {
        packets all;
        for (const roce_packet& packet : sent(most))
            all.push_back({packet.headers.bth.opcode, packet.headers.bth.psn, packet.headers.bth.ack_request});
        return all;
    }
    void answer(roce_opcode opcode, std::uint32_t psn, std::uint8_t syndrome = 0x1f, const bytes& payload = {},
                std::uint64_t original = 0)
    {
        roce_packet packet;
        packet.headers.bth = {.opcode = opcode, .psn = psn & psn_mask};
        packet.headers.syndrome = syndrome;
        packet.headers.original = original;
        packet.payload = payload;
        ours.receive(packet, now);
    }
    void ack(std::uint32_t psn) { answer(rc_acknowledge, psn); }
    /// A WRITE of so many packets, and whether more follow.
    void post_write(std::size_t count, bool more = false) { sends.post(write_to(0), stamped(count * mtu, 1), more); }

    fake_sends sends;
    fake_wire wire;
    requester ours;
    std::uint64_t now = 1'000'000;

 private:
    static requester_settings finished(requester_settings settings)
    {
        settings.peer.path_mtu = mtu;
        settings.first_psn = first;
        return settings;
    }
};

TEST(RoceRequester, CutsMessagesAndAsksAtTheEndOfAPush)
{
    at_requester end;
    send_request last = a_send();
    last.extra = roce_extra::immediate;
    end.sends.post(write_to(0), bytes(2 * mtu + 1), true);
    end.sends.post(a_send(), bytes(mtu), true);
    end.sends.post(last, bytes(mtu + 1));
    EXPECT_EQ(end.look(), (packets{{rc_write_first, first, false},
                                   {rc_write_middle, 0, false},
                                   {rc_write_last, 1, false},
                                   {rc_send_only, 2, false},
                                   {rc_send_first, 3, false},
                                   {rc_send_last_immediate, 4, true}}));
    end.ack(4);
    EXPECT_EQ(end.sends.ends, (ends{{0, status::success}, {1, status::success}, {2, status::success}}));
    EXPECT_TRUE(end.ours.idle());
}

TEST(RoceRequester, AsksOnEvery64thPacketAndStopsAt128)
{
    at_requester end;
    end.post_write(300);
    const packets sent = end.look();
    ASSERT_EQ(sent.size(), 128u);
    for (std::size_t at = 0; at < sent.size(); ++at)
        EXPECT_EQ(sent[at].ack_request, at == 63 || at == 127) << at;
    EXPECT_EQ(end.look(), packets{});
    end.ack(first + 63);
    EXPECT_EQ(end.look().size(), 64u);
}

TEST(RoceRequester, AsksOnThePacketThatFillsItsWindow)
{
    at_requester end({.window = 3});
    end.post_write(9);
    EXPECT_EQ(end.look(),
              (packets{{rc_write_first, first, false}, {rc_write_middle, 0, false}, {rc_write_middle, 1, true}}));
    end.ack(first + 2);
    EXPECT_EQ(end.look().size(), 3u);
}

TEST(RoceRequester, ReadsNoMoreEntriesInOneCallThanItMay)
{
    at_requester end;
    for (int at = 0; at < 10; ++at)
        end.sends.post({}, {}, at != 9);
    end.look(4);
    EXPECT_EQ(end.sends.ends.size(), 4u);
}

TEST(RoceRequester, KeepsAtMost128MessagesInFlightAndAsksAtTheLast)
{
    at_requester end;
    for (int at = 0; at < 130; ++at)
        end.sends.post(a_send(), {}, true);
    const packets sent = end.look();
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
    const packets sent = end.look();
    ASSERT_EQ(sent.size(), 127u);
    EXPECT_TRUE(sent[126].ack_request);
}

TEST(RoceRequester, TakesAnAckForAllBeforeIt)
{
    at_requester end;
    end.post_write(1, true);
    end.post_write(3, true);
    end.post_write(1);
    end.look();
    end.ack(first + 2); // in the middle of the second
    EXPECT_EQ(end.sends.ends, (ends{{0, status::success}}));
    end.ack(first + 1); // it was late
    end.ack(first + 4);
    EXPECT_EQ(end.sends.ends.size(), 3u);
    EXPECT_EQ(end.ours.stale_answers.value(), 1u);
}

TEST(RoceRequester, RepeatsFromTheGapWithTheSameOpcodes)
{
    at_requester end;
    end.post_write(4);
    end.look();
    end.answer(rc_acknowledge, first + 2, 0x60);
    EXPECT_EQ(end.look(), (packets{{rc_write_middle, 1, false}, {rc_write_last, 2, true}}));
    end.ack(first + 3);
    EXPECT_EQ(end.sends.ends, (ends{{0, status::success}}));
    EXPECT_EQ(end.ours.packet_seq_err.value(), 1u);
    EXPECT_EQ(end.ours.repeated.value(), 2u);
}

TEST(RoceRequester, RepeatsBytesThatItReadsAgain)
{
    at_requester end;
    end.post_write(2);
    end.sent();
    end.answer(rc_acknowledge, first + 1, 0x60);
    const auto again = end.sent();
    ASSERT_EQ(again.size(), 1u);
    const bytes all = stamped(2 * mtu, 1);
    EXPECT_TRUE(std::equal(again[0].payload.begin(), again[0].payload.end(), all.begin() + mtu));
    EXPECT_EQ(end.sends.reads, 2u);
}

TEST(RoceRequester, HalvesItsWindowOnLossAndOpensItAgain)
{
    at_requester end;
    end.post_write(1000);
    end.look();
    end.answer(rc_acknowledge, first, 0x60);
    EXPECT_EQ(end.look().size(), 64u);
    end.ack(first + 31);
    EXPECT_EQ(end.look().size(), 64u); // 32 acknowledged, and a window of 96
    end.ack(first + 127);
    EXPECT_EQ(end.look().size(), 128u);
}

TEST(RoceRequester, GoesForwardAgainWhenAnAckWasOnlyLate)
{
    at_requester end({.timeout = 1});
    end.post_write(3);
    end.look();
    end.now += ack_timeout_ns(1);
    EXPECT_EQ(end.look(1), (packets{{rc_write_first, first, false}}));
    end.ack(first + 1);
    EXPECT_EQ(end.look(), (packets{{rc_write_last, 1, true}}));
}

TEST(RoceRequester, IgnoresANakForWhatIsAlreadyRepeated)
{
    at_requester end;
    end.post_write(2);
    end.look();
    end.answer(rc_acknowledge, first, 0x60);
    end.answer(rc_acknowledge, first, 0x60);
    EXPECT_EQ(end.ours.packet_seq_err.value(), 1u);
}

// Errors.

TEST(RoceRequester, EndsWithTheStatusOfTheNakAndFlushesTheRest)
{
    const std::pair<std::uint8_t, status> table[]{{0x61, status::remote_invalid},
                                                  {0x62, status::remote_access},
                                                  {0x63, status::remote_operation},
                                                  {0x64, status::remote_operation},
                                                  {0x7f, status::remote_operation}};
    for (const auto& [syndrome, expected] : table) {
        at_requester end;
        for (int at = 0; at < 3; ++at)
            end.post_write(1, at != 2);
        end.look();
        end.answer(rc_acknowledge, first + 1, syndrome);
        EXPECT_EQ(end.sends.ends, (ends{{0, status::success}, {1, expected}, {2, status::flushed}}));
        EXPECT_TRUE(end.ours.failed());
        end.post_write(1);
        EXPECT_EQ(end.look(), packets{});
        EXPECT_EQ(end.ours.next_entry(), 3u);
        EXPECT_EQ(end.ours.deadline_ns(), 0u);
    }
}

TEST(RoceRequester, WaitsAsLongAsThePeerIsNotReady)
{
    at_requester end({.rnr_retry = 2});
    end.sends.post(a_send(), bytes(3));
    end.look();
    for (int at = 0; at < 2; ++at) {
        end.answer(rc_acknowledge, first, 0x20 | 18);
        EXPECT_EQ(end.ours.deadline_ns(), end.now + 5'120'000);
        end.now += 5'119'999;
        EXPECT_EQ(end.look(), packets{});
        end.now += 1;
        EXPECT_EQ(end.look(), (packets{{rc_send_only, first, true}}));
    }
    end.answer(rc_acknowledge, first, 0x20 | 18);
    EXPECT_EQ(end.sends.ends, (ends{{0, status::not_ready_exceeded}}));
}

TEST(RoceRequester, WaitsForEverWithRnrRetry7)
{
    at_requester end({.rnr_retry = 7});
    end.sends.post(a_send(), bytes(3));
    for (int at = 0; at < 1000; ++at) {
        EXPECT_EQ(end.look().size(), 1u);
        end.answer(rc_acknowledge, first, 0x21);
        end.now += 10'000;
    }
    EXPECT_FALSE(end.ours.failed());
}

TEST(RoceRequester, CountsTheWaitsAnewAfterEachProgress)
{
    at_requester end({.rnr_retry = 1});
    for (std::uint32_t at = 0; at < 5; ++at) {
        end.sends.post(a_send(), bytes(3));
        end.look();
        end.answer(rc_acknowledge, first + at, 0x21);
        end.now += 10'000;
        end.look();
        end.ack(first + at);
    }
    EXPECT_EQ(end.sends.ends.size(), 5u);
    EXPECT_FALSE(end.ours.failed());
}

TEST(RoceRequester, RepeatsWhenNoAnswerComesAndGivesUpInTheEnd)
{
    at_requester end({.timeout = 14, .retry_count = 3});
    end.post_write(2);
    EXPECT_EQ(end.look().size(), 2u);
    for (int at = 0; at < 3; ++at) {
        EXPECT_EQ(end.ours.deadline_ns(), end.now + (std::uint64_t{4096} << 14));
        end.now += (std::uint64_t{4096} << 14) - 1;
        EXPECT_EQ(end.look(), packets{});
        end.now += 1;
        EXPECT_EQ(end.look(), (packets{{rc_write_first, first, false}, {rc_write_last, 0, true}}));
    }
    end.now += std::uint64_t{4096} << 14;
    EXPECT_EQ(end.look(), packets{});
    EXPECT_EQ(end.sends.ends, (ends{{0, status::retries_exceeded}}));
    EXPECT_EQ(end.ours.local_ack_timeout_err.value(), 4u);
}

TEST(RoceRequester, WaitsForEverWithTimeout0)
{
    at_requester end({.timeout = 0});
    end.post_write(1);
    end.look();
    EXPECT_EQ(end.ours.deadline_ns(), 0u);
    end.now += 1ull << 50;
    EXPECT_EQ(end.look(), packets{});
}

TEST(RoceRequester, EndsWithAnEntryThatHasChangedBeforeItsRepeat)
{
    at_requester end({.timeout = 1});
    end.post_write(1, true);
    end.post_write(1);
    end.look();
    end.sends.entries[1].request.fingerprint ^= 1;
    end.now += ack_timeout_ns(1);
    EXPECT_EQ(end.look(), (packets{{rc_write_only, first, true}}));
    end.ack(first);
    EXPECT_EQ(end.sends.ends, (ends{{0, status::success}, {1, status::local_operation}}));
}

TEST(RoceRequester, EndsWithABadEntryOnceThoseBeforeItHaveEnded)
{
    at_requester end({.timeout = 0});
    end.post_write(1, true);
    end.post_write(1);
    end.sends.refusals[1] = status::local_operation;
    EXPECT_EQ(end.look(), (packets{{rc_write_only, first, false}}));
    EXPECT_EQ(end.look(), (packets{{rc_write_only, first, true}})); // it had not asked, and nothing follows
    end.ack(first);
    EXPECT_EQ(end.sends.ends, (ends{{0, status::success}, {1, status::local_operation}}));
}

TEST(RoceRequester, EndsWithLocalMemoryThatIsGone)
{
    at_requester end;
    end.post_write(1);
    end.sends.unreadable = 0;
    EXPECT_EQ(end.look(), packets{});
    EXPECT_EQ(end.sends.ends, (ends{{0, status::local_protection}}));
}

TEST(RoceRequester, RefusesMoreThan2GiB)
{
    at_requester end;
    end.post_write(1);
    end.sends.entries[0].request.bytes = (1u << 31) + 1;
    EXPECT_EQ(end.look(), packets{});
    EXPECT_EQ(end.sends.ends, (ends{{0, status::local_length}}));
}

TEST(RoceRequester, FlushesAllWhenItIsStopped)
{
    at_requester end;
    end.post_write(1, true);
    end.post_write(1);
    end.look();
    end.ours.stop();
    EXPECT_EQ(end.sends.ends, (ends{{0, status::flushed}, {1, status::flushed}}));
    EXPECT_TRUE(end.ours.idle());
}

TEST(RoceRequester, SendsThePacketForWhichThereWasNoRoomLater)
{
    at_requester end;
    end.post_write(2);
    end.wire.room = 1;
    EXPECT_EQ(end.look(), (packets{{rc_write_first, first, false}}));
    EXPECT_EQ(end.look(), (packets{{rc_write_last, 0, true}}));
}

TEST(RoceRequester, CompletesAnEntryThatDoesNothingInItsTurn)
{
    at_requester end;
    end.post_write(1);
    end.sends.post({}, {});
    end.look();
    EXPECT_EQ(end.sends.ends, ends{});
    end.ack(first);
    EXPECT_EQ(end.sends.ends, (ends{{0, status::success}, {1, status::success}}));
    end.sends.post({}, {});
    EXPECT_EQ(end.look(), packets{});
    EXPECT_EQ(end.sends.ends.size(), 3u);
}

TEST(RoceRequester, IgnoresAnswersThatFitNothing)
{
    at_requester end;
    end.post_write(2);
    end.look();
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

// READs and atomics.

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
    EXPECT_EQ(end.sends.ends, (ends{{0, status::success}}));
    EXPECT_EQ(local(), data);
}

TEST_F(RoceRequesterReads, TakeTheRestInMiddleForm)
{
    response(rc_read_response_first, 0);
    end.now += ack_timeout_ns(8);
    EXPECT_EQ(end.look().at(0), (seen{rc_read_request, 0, true}));
    response(rc_read_response_middle, 1);
    response(rc_read_response_middle, 2);
    response(rc_read_response_last, 3);
    EXPECT_EQ(local(), data);
    EXPECT_EQ(end.sends.ends, (ends{{0, status::success}}));
}

TEST_F(RoceRequesterReads, NoticeThatTheirAnswerIsLostByTheAckOfALaterWrite)
{
    end.ack(first + 4);
    EXPECT_EQ(end.sends.ends, ends{});
    EXPECT_EQ(end.ours.implied_nak_seq_err.value(), 1u);
    EXPECT_EQ(end.look(), (packets{{rc_read_request, first, true}, {rc_write_only, 3, true}}));
    end.ack(first + 4); // once: the clock does the rest
    EXPECT_EQ(end.look(), packets{});
    end.now += ack_timeout_ns(8);
    EXPECT_EQ(end.look().at(0), (seen{rc_read_request, first, true}));
}

TEST_F(RoceRequesterReads, AcknowledgeWhatIsBeforeThem)
{
    for (std::uint32_t at = 0; at < 4; ++at)
        response(at == 0 ? rc_read_response_first : at == 3 ? rc_read_response_last : rc_read_response_middle, at);
    EXPECT_EQ(end.sends.ends, (ends{{0, status::success}}));
    end.sends.post(read_from(0), bytes(1));
    end.look();
    end.answer(rc_read_response_only, first + 5, 0x1f, {7});
    EXPECT_EQ(end.sends.ends, (ends{{0, status::success}, {1, status::success}, {2, status::success}}));
    EXPECT_EQ(end.sends.entries[2].local, bytes{7});
}

TEST_F(RoceRequesterReads, EndWithAnAnswerOfAnotherLength)
{
    end.answer(rc_read_response_first, first, 0x1f, bytes(mtu - 1));
    EXPECT_EQ(end.sends.ends, (ends{{0, status::bad_response}, {1, status::flushed}}));
    EXPECT_EQ(local(), bytes(3 * mtu + 5));
}

TEST_F(RoceRequesterReads, EndWithAnAnswerToAnotherOperation)
{
    end.answer(rc_atomic_acknowledge, first);
    EXPECT_EQ(end.sends.ends, (ends{{0, status::bad_response}, {1, status::flushed}}));
}

TEST_F(RoceRequesterReads, EndWhenTheirMemoryHasGone)
{
    end.sends.unreadable = 0;
    response(rc_read_response_first, 0);
    EXPECT_EQ(end.sends.ends, (ends{{0, status::local_protection}, {1, status::flushed}}));
}

TEST_F(RoceRequesterReads, EndWhenTheirEntryHasChanged)
{
    end.sends.entries[0].request.fingerprint ^= 1;
    response(rc_read_response_first, 0);
    EXPECT_EQ(end.sends.ends, (ends{{0, status::local_operation}, {1, status::flushed}}));
}

TEST(RoceRequester, EndsWhenAReadAnswersAWrite)
{
    at_requester end;
    end.post_write(1);
    end.look();
    end.answer(rc_read_response_only, first, 0x1f, bytes(1));
    EXPECT_EQ(end.sends.ends, (ends{{0, status::bad_response}}));
}

TEST(RoceRequester, KeepsTheLimitOfReadsAndAtomics)
{
    at_requester end({.most_reads = 2});
    for (int at = 0; at < 3; ++at)
        end.sends.post(fetch_add(0, 1), bytes(8), true);
    end.post_write(1);
    EXPECT_EQ(end.look(), (packets{{rc_fetch_add, first, true}, {rc_fetch_add, 0, true}}));
    end.answer(rc_atomic_acknowledge, first, 0x1f, {}, 0x0102030405060708);
    EXPECT_EQ(end.look(), (packets{{rc_fetch_add, 1, true}, {rc_write_only, 2, true}}));
    std::uint64_t word = 0;
    std::memcpy(&word, end.sends.entries[0].local.data(), 8);
    EXPECT_EQ(word, 0x0102030405060708u);
}

TEST(RoceRequester, HoldsAFencedEntryUntilReadsAreAnswered)
{
    at_requester end;
    end.sends.post(read_from(0), bytes(1), true);
    send_request fenced = write_to(0);
    fenced.fence = true;
    end.sends.post(fenced, bytes(8));
    EXPECT_EQ(end.look(), (packets{{rc_read_request, first, true}}));
    end.answer(rc_read_response_only, first, 0x1f, bytes(1));
    EXPECT_EQ(end.look(), (packets{{rc_write_only, 0, true}}));
}

// Unreliable connections.

TEST(RoceUnreliableRequester, CompletesWhatItHasSent)
{
    at_requester end({.peer = {.service = roce_service::uc}});
    end.post_write(200, true);
    end.sends.post(a_send(), bytes(3));
    EXPECT_EQ(end.look(199).back(), (seen{uc_write_middle, first + 198 - (1u << 24), false}));
    EXPECT_EQ(end.sends.ends, ends{});
    EXPECT_EQ(end.look(), (packets{{uc_write_last, 198, false}, {uc_send_only, 199, false}}));
    EXPECT_EQ(end.sends.ends, (ends{{0, status::success}, {1, status::success}}));
    EXPECT_EQ(end.ours.deadline_ns(), 0u);
    end.sends.post(read_from(0), bytes(8));
    EXPECT_EQ(end.look(), packets{});
    EXPECT_EQ(end.sends.ends.back(), (fake_sends::end{2, status::local_operation}));
}

} // namespace
