// What a responder answers to single packets: each rule of the transport on its own.
#include <functional>

#include <gtest/gtest.h>

#include "ends.hpp"

namespace {

using namespace roce_ends;
using namespace weftio::nic;
using enum roce_opcode;

constexpr std::uint32_t first = 0xffffff, mtu = 256; // the first PSN: the next one is 0

/// An answer: what the tests look at.
struct seen {
    roce_opcode opcode;
    std::uint32_t psn;
    std::uint8_t syndrome;
    std::uint32_t msn;

    bool operator==(const seen&) const = default;
    friend void PrintTo(const seen& one, std::ostream* to)
    {
        *to << std::hex << "opcode " << int(one.opcode) << " psn " << one.psn << " syndrome " << int(one.syndrome)
            << " msn " << one.msn;
    }
};
using answers = std::vector<seen>;

seen ack(std::uint32_t psn, std::uint32_t msn)
{
    return {rc_acknowledge, psn & psn_mask, 0x1f, msn};
}
seen nak(std::uint8_t syndrome, std::uint32_t psn, std::uint32_t msn = 0)
{
    return {rc_acknowledge, psn & psn_mask, syndrome, msn};
}

/// A responder with 4,096 bytes of memory.
class at_responder {
 public:
    explicit at_responder(responder_settings settings = {}) : ours(finished(settings), memory, receives) {}

    /// A packet to it. @param more  sets what the opcode has beside a PSN
    void ask(roce_opcode opcode, std::uint32_t psn, std::size_t payload_bytes = 0,
             const std::function<void(roce_headers&)>& more = {})
    {
        roce_packet packet;
        packet.headers.bth = {.opcode = opcode, .ack_request = true, .psn = psn & psn_mask};
        packet.headers.remote_key = fake_memory::key;
        packet.headers.address = fake_memory::begin;
        packet.headers.dma_bytes = static_cast<std::uint32_t>(payload_bytes);
        if (more)
            more(packet.headers);
        const bytes payload(payload_bytes, 0xee);
        packet.payload = payload;
        ours.receive(packet);
    }
    answers answered(unsigned most = 1000)
    {
        ours.send(wire, most);
        answers all;
        for (const roce_packet& packet : wire.read())
            all.push_back(
                {packet.headers.bth.opcode, packet.headers.bth.psn, packet.headers.syndrome, packet.headers.msn});
        return all;
    }
    std::size_t bytes_written()
    {
        return static_cast<std::size_t>(std::count(memory.all().begin(), memory.all().end(), 0xee));
    }

    fake_memory memory{4096};
    fake_receives receives;
    fake_wire wire;
    responder ours;

 private:
    static responder_settings finished(responder_settings settings)
    {
        settings.peer.path_mtu = mtu;
        settings.first_psn = first;
        return settings;
    }
};

auto dma(std::uint32_t count, std::uint64_t offset = 0, std::uint32_t key = fake_memory::key)
{
    return [=](roce_headers& headers) {
        headers.dma_bytes = count;
        headers.address = fake_memory::begin + offset;
        headers.remote_key = key;
    };
}

// Requests that end the connection: one NAK, and then silence.

struct offense {
    const char* name;
    std::function<void(at_responder&)> ask;
    std::uint8_t syndrome;
    responder_fault fault;
    key_refusal key = key_refusal::none;
    std::uint32_t psn = first; ///< of the NAK
    std::size_t written = 0;   ///< bytes that were right before it
    std::uint32_t msn = 0;
    friend void PrintTo(const offense& of, std::ostream* to) { *to << of.name; }
};

class RoceResponderOffense : public testing::TestWithParam<offense> {};

TEST_P(RoceResponderOffense, IsAnsweredOnceAndEndsTheConnection)
{
    at_responder end({.most_reads = 2});
    GetParam().ask(end);
    EXPECT_EQ(end.answered(), (answers{nak(GetParam().syndrome, GetParam().psn, GetParam().msn)}));
    EXPECT_TRUE(end.ours.failed());
    EXPECT_EQ(end.ours.fault(), GetParam().fault);
    EXPECT_EQ(end.ours.refused_key(), GetParam().key);
    EXPECT_EQ(end.ours.refused.value(), 1u);
    for (std::uint32_t psn = first - 1; psn != first + 4; ++psn)
        end.ask(rc_write_only, psn, 8);
    EXPECT_EQ(end.answered(), answers{});
    EXPECT_EQ(end.bytes_written(), GetParam().written);
}

using enum responder_fault;

const offense offenses[]{
    {"MiddleWithoutFirst", [](at_responder& end) { end.ask(rc_write_middle, first, mtu); }, 0x61, opcode_order},
    {"LastWithoutFirst", [](at_responder& end) { end.ask(rc_send_last, first, 1); }, 0x61, opcode_order},
    {.name = "LastOfAnotherOperation",
     .ask =
         [](at_responder& end) {
             end.ask(rc_write_first, first, mtu, [](roce_headers& headers) {
                 headers.bth.ack_request = false;
                 headers.dma_bytes = mtu + 1;
             });
             end.ask(rc_send_last, first + 1, 1);
         },
     .syndrome = 0x61,
     .fault = opcode_order,
     .psn = first + 1,
     .written = mtu},
    {.name = "FirstInTheMiddle",
     .ask =
         [](at_responder& end) {
             end.ask(rc_write_first, first, mtu, dma(2 * mtu));
             end.ask(rc_write_first, first + 1, mtu, dma(2 * mtu));
         },
     .syndrome = 0x61,
     .fault = opcode_order,
     .psn = first + 1,
     .written = mtu},
    {.name = "ReadInTheMiddle",
     .ask =
         [](at_responder& end) {
             end.ask(rc_write_first, first, mtu, dma(2 * mtu));
             end.ask(rc_read_request, first + 1, 0, dma(8));
         },
     .syndrome = 0x61,
     .fault = opcode_order,
     .psn = first + 1,
     .written = mtu},
    {"FirstThatIsNotFull", [](at_responder& end) { end.ask(rc_write_first, first, mtu - 1, dma(999)); }, 0x61,
     payload_size},
    {"MoreThanThePathMtu", [](at_responder& end) { end.ask(rc_write_only, first, mtu + 1); }, 0x61, payload_size},
    {"OnlyShorterThanAnnounced", [](at_responder& end) { end.ask(rc_write_only, first, 8, dma(9)); }, 0x61,
     message_length},
    {"OnlyLongerThanAnnounced", [](at_responder& end) { end.ask(rc_write_only, first, 8, dma(7)); }, 0x61,
     message_length},
    {"FirstThatIsAll", [](at_responder& end) { end.ask(rc_write_first, first, mtu, dma(mtu)); }, 0x61, message_length},
    {.name = "LastThatEndsEarly",
     .ask =
         [](at_responder& end) {
             end.ask(rc_write_first, first, mtu, dma(2 * mtu));
             end.ask(rc_write_last, first + 1, mtu - 1);
         },
     .syndrome = 0x61,
     .fault = message_length,
     .psn = first + 1,
     .written = mtu},
    {.name = "MiddleBeyondTheEnd",
     .ask =
         [](at_responder& end) {
             end.ask(rc_write_first, first, mtu, dma(mtu + 9));
             end.ask(rc_write_middle, first + 1, mtu);
         },
     .syndrome = 0x61,
     .fault = message_length,
     .psn = first + 1,
     .written = mtu},
    {"WriteOfMoreThan2GiB", [](at_responder& end) { end.ask(rc_write_first, first, mtu, dma((1u << 31) + 1)); }, 0x61,
     message_length},
    {"ReadOfMoreThan2GiB", [](at_responder& end) { end.ask(rc_read_request, first, 0, dma((1u << 31) + 1)); }, 0x61,
     message_length},
    {"MisalignedAtomic", [](at_responder& end) { end.ask(rc_fetch_add, first, 0, dma(0, 4)); }, 0x61, misaligned},
    {"WriteWithAWrongKey", [](at_responder& end) { end.ask(rc_write_only, first, 8, dma(8, 0, 1)); }, 0x62,
     remote_memory, key_refusal::unknown_key},
    {"WriteBeforeTheRegion", [](at_responder& end) { end.ask(rc_write_only, first, 8, dma(8, std::uint64_t(-1))); },
     0x62, remote_memory, key_refusal::outside_region},
    {"WriteOfWhichTheEndIsOutside", [](at_responder& end) { end.ask(rc_write_first, first, mtu, dma(4097)); }, 0x62,
     remote_memory, key_refusal::outside_region},
    {"WriteAroundTheEndOfAllAddresses",
     [](at_responder& end) { end.ask(rc_write_only, first, 8, dma(8, std::uint64_t(-4) - fake_memory::begin)); }, 0x62,
     remote_memory, key_refusal::outside_region},
    {"ReadWithAWrongKey", [](at_responder& end) { end.ask(rc_read_request, first, 0, dma(8, 0, 1)); }, 0x62,
     remote_memory, key_refusal::unknown_key},
    {"ReadOutside", [](at_responder& end) { end.ask(rc_read_request, first, 0, dma(8, 4089)); }, 0x62, remote_memory,
     key_refusal::outside_region},
    {"AtomicOutside", [](at_responder& end) { end.ask(rc_compare_swap, first, 0, dma(0, 4096)); }, 0x62, remote_memory,
     key_refusal::outside_region},
    {"WriteToAReadOnlyRegion",
     [](at_responder& end) {
         end.memory.rights = access::remote_read;
         end.ask(rc_write_only, first, 8);
     },
     0x62, remote_memory, key_refusal::no_right},
    {"SendThatIsTooLong",
     [](at_responder& end) {
         end.receives.post(7);
         end.ask(rc_send_only, first, 8);
         EXPECT_EQ(end.receives.completions.at(0).result, status::local_length);
     },
     0x61, send_too_long},
    {"SendIntoMemoryThatIsGone",
     [](at_responder& end) {
         end.receives.post(8);
         end.receives.broken = true;
         end.ask(rc_send_only, first, 8);
         EXPECT_EQ(end.receives.completions.at(0).result, status::local_protection);
     },
     0x63, local_memory},
    {"InvalidateOfAnUnknownKey",
     [](at_responder& end) {
         end.receives.post(8);
         end.ask(rc_send_only_invalidate, first, 8);
         EXPECT_EQ(end.receives.completions.at(0).result, status::flushed);
     },
     0x62, remote_memory, key_refusal::unknown_key},
    {.name = "WriteWithImmediateIntoARegionThatIsGone",
     .ask =
         [](at_responder& end) {
             end.receives.post(0);
             end.ask(rc_write_first, first, mtu, dma(mtu + 8));
             end.memory.own_key = 1;
             end.ask(rc_write_last_immediate, first + 1, 8);
             EXPECT_EQ(end.receives.completions.at(0).result, status::local_access);
         },
     .syndrome = 0x62,
     .fault = remote_memory,
     .key = key_refusal::unknown_key,
     .psn = first + 1,
     .written = mtu},
};

INSTANTIATE_TEST_SUITE_P(Rules, RoceResponderOffense, testing::ValuesIn(offenses),
                         [](const testing::TestParamInfo<offense>& tested) { return std::string(tested.param.name); });

TEST(RoceResponder, AllowsWhatTheQueueAllows)
{
    const std::pair<weftio::access, roce_opcode> forbidden[]{
        {access::remote_read | access::remote_atomic, rc_write_only},
        {access::remote_write | access::remote_atomic, rc_read_request},
        {access::remote_write | access::remote_read, rc_fetch_add}};
    for (const auto& [rights, opcode] : forbidden) {
        at_responder end({.rights = rights});
        end.ask(opcode, first, 0);
        EXPECT_EQ(end.answered(), (answers{nak(0x61, first)})) << int(opcode);
        EXPECT_EQ(end.ours.fault(), no_queue_right);
    }
}

TEST(RoceResponder, RefusesMoreReadsThanAgreed)
{
    at_responder end({.most_reads = 2});
    for (std::uint32_t at = 0; at < 3; ++at)
        end.ask(rc_read_request, first + at, 0, dma(8));
    EXPECT_EQ(end.answered(), (answers{{rc_read_response_only, first, 0x1f, 1},
                                       {rc_read_response_only, 0, 0x1f, 2},
                                       nak(0x61, first + 2, 2)}));
    EXPECT_EQ(end.ours.fault(), too_many_reads);
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
    at_responder end({.rnr_timer = 18});
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

TEST(RoceResponder, DropsARepeatedReadThatCannotBeOne)
{
    at_responder end;
    end.ask(rc_read_request, first, 0, dma(2 * mtu));
    EXPECT_EQ(end.answered().size(), 2u);
    end.ask(rc_read_request, first + 1, 0, dma(mtu + 1));    // it ends behind what was asked for
    end.ask(rc_read_request, first, 0, dma(8, 0, 1));        // wrong key
    end.ask(rc_read_request, first, 0, dma((1u << 31) + 1)); // too long
    EXPECT_EQ(end.answered(), answers{});
    EXPECT_FALSE(end.ours.failed());
}

TEST(RoceResponder, ExecutesAnAtomicOnceAndAnswersItAgain)
{
    at_responder end({.most_reads = 2});
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
    EXPECT_EQ(end.receives.completions[0].result, status::flushed);
}

TEST(RoceResponder, IgnoresWhatIsNotForIt)
{
    at_responder end;
    end.ask(rc_acknowledge, first);
    end.ask(rc_read_response_only, first, 8);
    end.ask(uc_write_only, first, 8);
    end.ask(ud_send_only, first, 8);
    end.ask(cnp, first, 16);
    end.ask(static_cast<roce_opcode>(0x1d), first);
    end.ask(rc_write_only, first, 8, [](roce_headers& headers) { headers.bth.partition_key = 0x1234; });
    EXPECT_EQ(end.answered(), answers{});
    EXPECT_EQ(end.ours.ignored.value(), 7u);
    EXPECT_EQ(end.bytes_written(), 0u);
}

// Unreliable connections: nothing is answered, and what does not fit ends its message only.

TEST(RoceUnreliableResponder, LosesTheMessageThatHasAGapAndTakesTheNext)
{
    at_responder end({.peer = {.service = roce_service::uc}});
    end.receives.post(1000);
    end.receives.post(1000);
    end.ask(uc_send_first, first, mtu);
    end.ask(uc_send_last, first + 2, 8); // the middle is lost
    EXPECT_EQ(end.receives.completions.at(0).result, status::flushed);
    end.ask(uc_send_middle, first + 3, mtu);
    end.ask(uc_send_only, first + 5, 9);
    EXPECT_EQ(end.receives.completions.at(1).result, status::success);
    EXPECT_EQ(end.receives.completions.at(1).bytes, 9u);
    end.ask(uc_send_only, first + 6, 9); // no entry is left
    end.ask(uc_write_only, first + 7, 8, dma(8, 0, 1));
    end.ask(uc_write_only, first + 8, 8);
    EXPECT_EQ(end.bytes_written(), 8u);
    EXPECT_EQ(end.answered(), answers{});
    EXPECT_FALSE(end.ours.failed());
    EXPECT_EQ(end.ours.not_ready.value(), 1u);
}

TEST(RoceUnreliableResponder, TakesAFirstPacketInPlaceOfALast)
{
    at_responder end({.peer = {.service = roce_service::uc}});
    end.ask(uc_write_first, first, mtu, dma(2 * mtu));
    end.ask(uc_write_only, first + 1, 8, dma(8, 1024));
    EXPECT_EQ(end.memory.data()[1024 + 7], 0xee);
}

} // namespace
