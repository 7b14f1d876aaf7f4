// Requests that end a connection: one NAK, and then silence.
#include <gtest/gtest.h>

#include "ends.hpp"

namespace {

using namespace roce_ends;
using namespace weftio::net;
using namespace roce_ends::responding;
using enum refusal;

struct offense {
    const char* name;
    std::function<void(at_responder&)> ask;
    std::uint8_t syndrome;
    refusal reason;
    bool names_memory = false;
    std::uint32_t psn = first; ///< of the NAK
    std::size_t written = 0;   ///< bytes that were right before it
    std::uint32_t msn = 0;
    friend void PrintTo(const offense& of, std::ostream* to) { *to << of.name; }
};

class RoceResponderOffense : public testing::TestWithParam<offense> {};

TEST_P(RoceResponderOffense, IsAnsweredOnceAndEndsTheConnection)
{
    at_responder end({.most_reads_of_peer = 2});
    GetParam().ask(end);
    EXPECT_EQ(end.answered(), (answers{nak(GetParam().syndrome, GetParam().psn, GetParam().msn)}));
    EXPECT_TRUE(end.ours.failed());
    EXPECT_EQ(end.ours.last_refused().reason, GetParam().reason);
    EXPECT_EQ(end.ours.last_refused().range.has_value(), GetParam().names_memory);
    EXPECT_EQ(end.ours.refused.value(), 1u);
    for (std::uint32_t psn = first - 1; psn != first + 4; ++psn)
        end.ask(rc_write_only, psn, 8);
    EXPECT_EQ(end.answered(), answers{});
    EXPECT_EQ(end.bytes_written(), GetParam().written);
}

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
     .reason = opcode_order,
     .psn = first + 1,
     .written = mtu},
    {.name = "FirstInTheMiddle",
     .ask =
         [](at_responder& end) {
             end.ask(rc_write_first, first, mtu, dma(2 * mtu));
             end.ask(rc_write_first, first + 1, mtu, dma(2 * mtu));
         },
     .syndrome = 0x61,
     .reason = opcode_order,
     .psn = first + 1,
     .written = mtu},
    {.name = "ReadInTheMiddle",
     .ask =
         [](at_responder& end) {
             end.ask(rc_write_first, first, mtu, dma(2 * mtu));
             end.ask(rc_read_request, first + 1, 0, dma(8));
         },
     .syndrome = 0x61,
     .reason = opcode_order,
     .psn = first + 1,
     .written = mtu},
    {"FirstThatIsNotFull", [](at_responder& end) { end.ask(rc_write_first, first, mtu - 1, dma(999)); }, 0x61,
     packet_size},
    {"MoreThanThePathMtu", [](at_responder& end) { end.ask(rc_write_only, first, mtu + 1); }, 0x61, packet_size},
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
     .reason = message_length,
     .psn = first + 1,
     .written = mtu},
    {.name = "MiddleBeyondTheEnd",
     .ask =
         [](at_responder& end) {
             end.ask(rc_write_first, first, mtu, dma(mtu + 9));
             end.ask(rc_write_middle, first + 1, mtu);
         },
     .syndrome = 0x61,
     .reason = message_length,
     .psn = first + 1,
     .written = mtu},
    {"WriteOfMoreThan2GiB", [](at_responder& end) { end.ask(rc_write_first, first, mtu, dma((1u << 31) + 1)); }, 0x61,
     message_too_long},
    {"ReadOfMoreThan2GiB", [](at_responder& end) { end.ask(rc_read_request, first, 0, dma((1u << 31) + 1)); }, 0x61,
     read_too_long},
    {"MisalignedAtomic", [](at_responder& end) { end.ask(rc_fetch_add, first, 0, dma(0, 4)); }, 0x61,
     misaligned_atomic},
    {"OpcodeBetweenThoseOfAtomicsAndInvalidates",
     [](at_responder& end) { end.ask_badly(roce_opcode{0x15}, first, roce_refusal::unknown_opcode); }, 0x61,
     unknown_opcode},
    {"FirstReservedOpcode",
     [](at_responder& end) { end.ask_badly(roce_opcode{0x18}, first, roce_refusal::unknown_opcode); }, 0x61,
     unknown_opcode},
    {"LastReservedOpcode",
     [](at_responder& end) { end.ask_badly(roce_opcode{0x1f}, first, roce_refusal::unknown_opcode); }, 0x61,
     unknown_opcode},
    {"WriteWithoutAllOfItsHeaders",
     [](at_responder& end) { end.ask_badly(rc_write_only, first, roce_refusal::no_extended_headers); }, 0x61,
     headers_cut},
    {"SendThatIsShorterThanItsPad",
     [](at_responder& end) { end.ask_badly(rc_send_only, first, roce_refusal::wrong_pad); }, 0x61, headers_cut},
    {"ReadWithAPayload", [](at_responder& end) { end.ask_badly(rc_read_request, first, roce_refusal::wrong_payload); },
     0x61, stray_payload},
    {"SendOfMoreThanTheLargestPathMtu",
     [](at_responder& end) { end.ask_badly(rc_send_only, first, roce_refusal::wrong_payload); }, 0x61, packet_size},
    {"WriteWithAWrongKey", [](at_responder& end) { end.ask(rc_write_only, first, 8, dma(8, 0, 1)); }, 0x62, unknown_key,
     true},
    {"WriteBeforeTheRegion", [](at_responder& end) { end.ask(rc_write_only, first, 8, dma(8, std::uint64_t(-1))); },
     0x62, outside_region, true},
    {"WriteOfWhichTheEndIsOutside", [](at_responder& end) { end.ask(rc_write_first, first, mtu, dma(4097)); }, 0x62,
     outside_region, true},
    {"WriteAroundTheEndOfAllAddresses",
     [](at_responder& end) { end.ask(rc_write_only, first, 8, dma(8, std::uint64_t(-4) - fake_memory::begin)); }, 0x62,
     outside_region, true},
    {"ReadWithAWrongKey", [](at_responder& end) { end.ask(rc_read_request, first, 0, dma(8, 0, 1)); }, 0x62,
     unknown_key, true},
    {"ReadOutside", [](at_responder& end) { end.ask(rc_read_request, first, 0, dma(8, 4089)); }, 0x62, outside_region,
     true},
    {"AtomicOutside", [](at_responder& end) { end.ask(rc_compare_swap, first, 0, dma(0, 4096)); }, 0x62, outside_region,
     true},
    {"WriteToAReadOnlyRegion",
     [](at_responder& end) {
         end.memory.rights = access::remote_read;
         end.ask(rc_write_only, first, 8);
     },
     0x62, no_remote_write, true},
    {"SendThatIsTooLong",
     [](at_responder& end) {
         end.receives.post(7);
         end.ask(rc_send_only, first, 8);
         EXPECT_EQ(end.receives.completions.at(0).result, refusal::receive_too_short);
     },
     0x61, receive_too_short},
    {"SendIntoMemoryThatIsGone",
     [](at_responder& end) {
         end.receives.post(8);
         end.receives.broken = true;
         end.ask(rc_send_only, first, 8);
         EXPECT_EQ(end.receives.completions.at(0).result, refusal::unknown_key);
     },
     0x63, unknown_key},
    {.name = "WriteWithImmediateIntoARegionThatIsGone",
     .ask =
         [](at_responder& end) {
             end.receives.post(0);
             end.ask(rc_write_first, first, mtu, dma(mtu + 8));
             end.memory.own_key = 1;
             end.ask(rc_write_last_immediate, first + 1, 8);
             EXPECT_EQ(end.receives.completions.at(0).result, refusal::lost_memory);
         },
     .syndrome = 0x62,
     .reason = unknown_key,
     .names_memory = true,
     .psn = first + 1,
     .written = mtu},
};

/// What it asked for is not known, so it is not answered: neither from saved results, nor by an ACK.
TEST(RoceResponderForms, ThatAreWrongAndBehindTheirTurnAreIgnored)
{
    at_responder end;
    end.ask(rc_fetch_add, first);
    EXPECT_EQ(end.answered().size(), 1u);
    end.ask_badly(roce_opcode{0x15}, first, roce_refusal::unknown_opcode);
    end.ask_badly(rc_write_only, first, roce_refusal::no_extended_headers);
    EXPECT_EQ(end.answered(), answers{});
    EXPECT_EQ(end.ours.ignored.value(), 2u);
    EXPECT_FALSE(end.ours.failed());
}

TEST(RoceResponderForms, ThatAreWrongAndAheadOfTheirTurnShowAGap)
{
    at_responder end;
    end.ask_badly(roce_opcode{0x15}, first + 1, roce_refusal::unknown_opcode);
    EXPECT_EQ(end.answered(), (answers{nak(0x60, first)}));
    EXPECT_FALSE(end.ours.failed());
}

TEST(RoceResponderForms, OfAnotherServiceAreIgnored)
{
    at_responder end;
    for (const int opcode : {0x2c, 0x3f, 0x40, 0x66, 0xc0})
        end.ask_badly(static_cast<roce_opcode>(opcode), first, roce_refusal::unknown_opcode);
    EXPECT_EQ(end.answered(), answers{});
    EXPECT_EQ(end.ours.ignored.value(), 5u);
}

/// As Linux's rdma_rxe: the peer is not told.
TEST(RoceResponderInvalidation, OfAKeyThatIsNoneEndsTheConnectionWithoutANak)
{
    for (const bool asks : {true, false}) {
        at_responder end;
        end.receives.post(8);
        end.ask(rc_send_only_invalidate, first, 8, [&](roce_headers& headers) {
            headers.invalidate_key = 7;
            headers.bth.ack_request = asks;
        });
        EXPECT_EQ(end.answered(), (asks ? answers{ack(first, 0)} : answers{}));
        EXPECT_TRUE(end.ours.failed());
        EXPECT_EQ(end.ours.last_refused().reason, not_a_window);
        EXPECT_EQ(end.ours.last_refused().invalidates, 7u);
        EXPECT_EQ(end.receives.completions.at(0).result, refusal::not_invalidated);
        EXPECT_EQ(end.receives.messages.at(0), bytes()) << "nothing was placed";
    }
}

TEST(RoceResponderForms, ThatAreWrongEndNoUnreliableConnection)
{
    at_responder end(weftio::rdma_service::unreliable);
    end.ask_badly(roce_opcode{0x2c}, first, roce_refusal::unknown_opcode);
    end.ask_badly(uc_write_only, first + 1, roce_refusal::no_extended_headers);
    EXPECT_EQ(end.answered(), answers{});
    EXPECT_EQ(end.ours.refused.value(), 2u);
    end.ask(uc_write_only, first + 2, 8);
    EXPECT_EQ(end.bytes_written(), 8u);
}

INSTANTIATE_TEST_SUITE_P(Rules, RoceResponderOffense, testing::ValuesIn(offenses),
                         [](const testing::TestParamInfo<offense>& tested) { return std::string(tested.param.name); });

} // namespace
