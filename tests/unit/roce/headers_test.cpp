// Packets of every opcode, built and read; and packets that nobody should take.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fuzz/guarded.hpp"
#include "net/byte_order.hpp"
#include "net/checksum.hpp"
#include "net/roce_front.hpp"
#include "net/roce_headers.hpp"
#include "net/roce_rules.hpp"
#include "reading.hpp"
#include "unit/steering/frames.hpp"

namespace {

using namespace weftio::net;
using roce_reading::bytes;
using roce_reading::hex;

constexpr roce_gid gid6(std::uint8_t last)
{
    return {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last};
}

roce_path over_ipv4()
{
    return {.destination_mac = {0x52, 0x54, 0, 0xc0, 0, 2},
            .source_mac = {0x52, 0x54, 0, 0xc0, 0, 3},
            .l3 = l3_kind::ipv4,
            .source = gid_of_ipv4(std::array<std::uint8_t, 4>{192, 0, 2, 3}),
            .destination = gid_of_ipv4(std::array<std::uint8_t, 4>{192, 0, 2, 2}),
            .identification = 0xd69a,
            .source_port = 0xc121};
}

roce_path over_ipv6()
{
    roce_path path = over_ipv4();
    path.tags = {vlan_tag{.type = 0x88a8, .tci = 0x2007}, vlan_tag{.type = 0x8100, .tci = 9}};
    path.tag_count = 2;
    path.l3 = l3_kind::ipv6;
    path.source = gid6(3);
    path.destination = gid6(2);
    path.flow_label = 0xabcde;
    path.identification = 0;
    path.traffic_class = 0xc2;
    path.hop_limit = 7;
    return path;
}

/// All fields that this opcode has, each with a value of its own.
roce_headers filled(roce_opcode opcode)
{
    const roce_shape& shape = shape_of(opcode);
    roce_headers headers{.bth = {.opcode = opcode,
                                 .solicited = true,
                                 .migrated = true,
                                 .ack_request = true,
                                 .fecn = true,
                                 .becn = true,
                                 .partition_key = 0x7fff,
                                 .destination_qp = 0x123456,
                                 .psn = 0xfedcba}};
    if (shape.has_reth || shape.has_atomic)
        headers.address = 0x0102030405060708, headers.remote_key = 0x11121314;
    if (shape.has_reth)
        headers.dma_bytes = 0x21222324;
    if (shape.has_atomic)
        headers.swap_or_add = 0x3132333435363738, headers.compare = 0x4142434445464748;
    if (shape.has_aeth)
        headers.syndrome = 0x1f, headers.msn = 0x515253;
    if (shape.has_atomic_ack)
        headers.original = 0x6162636465666768;
    if (shape.has_immediate)
        headers.immediate = 0x71727374;
    if (shape.has_invalidate)
        headers.invalidate_key = 0x81828384;
    if (shape.has_deth)
        headers.queue_key = 0x91929394, headers.source_qp = 0xa1a2a3;
    return headers;
}

std::vector<roce_opcode> known_opcodes()
{
    std::vector<roce_opcode> known;
    for (unsigned value = 0; value < 256; ++value) {
        if (shape_of(static_cast<roce_opcode>(value)).known())
            known.push_back(static_cast<roce_opcode>(value));
    }
    return known;
}

/// Some payload that the opcode takes.
bytes payload_for(roce_opcode opcode)
{
    const roce_shape& shape = shape_of(opcode);
    const std::size_t count = shape.operation == roce_operation::congestion ? 16 : shape.takes_payload ? 13 : 0;
    bytes payload(count);
    for (std::size_t at = 0; at < count; ++at)
        payload[at] = static_cast<std::uint8_t>(0x61 + at);
    return payload;
}

bytes built(const roce_path& path, const roce_headers& headers, const bytes& payload)
{
    bytes frame(most_roce_headers_bytes + payload.size() + 8);
    frame.resize(build_whole_roce(frame, path, headers, payload));
    return frame;
}

/// A WRITE ONLY with an immediate and seven bytes.
bytes a_write(const roce_path& path = over_ipv4())
{
    return built(path, filled(roce_opcode::rc_write_only_immediate), hex("61626364656667"));
}

roce_refusal refusal_of(const bytes& frame)
{
    roce_packet packet;
    return parse_roce(frame, packet);
}

TEST(RoceHeaders, OfOnePathAreThoseOfEachPacketWhateverItsLength)
{
    for (const roce_path& path : {over_ipv4(), over_ipv6()}) {
        roce_front front(path);
        for (roce_opcode opcode : known_opcodes()) {
            const bytes payload = payload_for(opcode), alone = built(path, filled(opcode), payload);
            bytes frame(most_roce_headers_bytes);
            frame.resize(front.build(frame, filled(opcode), payload.size()));
            ASSERT_TRUE(std::equal(frame.begin(), frame.end(), alone.begin())) << int(opcode);
            frame.insert(frame.end(), payload.begin(), payload.end());
            frame.resize((frame.size() - front.bth_offset() + 3) / 4 * 4 + front.bth_offset());
            const std::uint32_t sum = front.begin_icrc(std::span(frame).subspan(front.bth_offset())).value();
            EXPECT_EQ(sum, icrc_of(std::span(frame).subspan(icrc_offset(path)))) << int(opcode);
        }
    }
}

TEST(RoceHeaders, OfEveryOpcodeAreReadAsTheyWereWritten)
{
    for (const roce_path& path : {over_ipv4(), over_ipv6()}) {
        for (roce_opcode opcode : known_opcodes()) {
            const bytes payload = payload_for(opcode), frame = built(path, filled(opcode), payload);
            roce_packet packet;
            ASSERT_EQ(parse_roce(frame, packet), roce_refusal::none) << int(opcode);
            EXPECT_EQ(packet.path, path);
            EXPECT_EQ(packet.headers, filled(opcode)) << int(opcode);
            EXPECT_TRUE(std::equal(packet.payload.begin(), packet.payload.end(), payload.begin(), payload.end()));
            EXPECT_TRUE(packet.icrc_good());
            EXPECT_EQ(packet.icrc, roce_reading::icrc_by_zlib(packet.covered));
            EXPECT_EQ(frame.size(), roce_headers_bytes(path, opcode) + (payload.size() + 3) / 4 * 4 + icrc_bytes);
        }
    }
}

TEST(RoceHeaders, AreThoseThatLinuxWrites)
{
    const roce_headers send{
        .bth = {.opcode = roce_opcode::rc_send_only, .ack_request = true, .destination_qp = 0x11, .psn = 0xffffff}};
    EXPECT_EQ(built(over_ipv4(), send, hex("6162636465666768696a6b6c6d")),
              hex("525400c00002525400c000030800 4500003cd69a40004011e010c0000203c0000202 c12112b700280000"
                  "0430ffff0000001180ffffff 6162636465666768696a6b6c6d000000 2a403039"));
}

TEST(RoceHeaders, OfCongestionAreThoseOfConnectX)
{
    roce_path path = over_ipv4();
    path.traffic_class = 0xc2;
    path.source_port = 0;
    const roce_headers cnp{.bth = {.opcode = roce_opcode::cnp, .becn = true, .destination_qp = 0xd2}};
    const bytes frame = built(path, cnp, bytes(16));
    EXPECT_EQ(load_be<std::uint16_t>(&frame[16]), 60);
    EXPECT_EQ(load_be<std::uint16_t>(&frame[38]), 40);
    EXPECT_EQ(bytes(frame.begin() + 42, frame.begin() + 70), hex("8100ffff400000d200000000" + std::string(32, '0')));
}

/// With every value of one field, so that sums with each number of carries are among them.
TEST(RoceHeaders, HaveTheChecksumOfIpv4)
{
    roce_path path = over_ipv4();
    for (unsigned value = 0; value <= 0xffff; ++value) {
        path.identification = static_cast<std::uint16_t>(value);
        const bytes frame = a_write(path);
        ASSERT_TRUE(verify_checksums(frame, parse(frame, {})).l3_good) << value;
    }
}

TEST(RoceHeaders, AreReadOverThoseOfAnotherPacket)
{
    roce_packet packet;
    ASSERT_EQ(parse_roce(built(over_ipv6(), filled(roce_opcode::rc_compare_swap), {}), packet), roce_refusal::none);
    const bytes frame = a_write();
    ASSERT_EQ(parse_roce(frame, packet), roce_refusal::none);
    EXPECT_EQ(packet.path, over_ipv4());
    EXPECT_EQ(packet.headers, filled(roce_opcode::rc_write_only_immediate));
}

TEST(RoceHeaders, ArePutInFrontOfAPayloadThatComesInPieces)
{
    const roce_headers headers = filled(roce_opcode::rc_write_only_immediate);
    const bytes whole = a_write();
    bytes frame(whole.size());
    const std::size_t front = build_roce(frame, over_ipv4(), headers, 7);
    ASSERT_EQ(front, roce_headers_bytes(over_ipv4(), headers.bth.opcode));
    const std::size_t from = icrc_offset(over_ipv4());
    icrc sum({&frame[from], front - from});
    sum.copy(&frame[front], hex("616263"));
    sum.copy(&frame[front + 3], hex("64656667"));
    EXPECT_EQ(sum.finish(&frame[front + 7], pad_of(7)), 5u);
    EXPECT_EQ(frame, whole);
}

TEST(RoceHeaders, AreNotWrittenWhereTheyDoNotFit)
{
    const roce_headers headers = filled(roce_opcode::rc_write_only_immediate);
    const bytes payload(7), whole = a_write();
    for (std::size_t room = 0; room < whole.size(); ++room) {
        bytes frame(room, 0xa5);
        ASSERT_EQ(build_whole_roce(frame, over_ipv4(), headers, payload), 0u) << room;
        ASSERT_TRUE(std::all_of(frame.begin(), frame.end(), [](std::uint8_t byte) { return byte == 0xa5; })) << room;
    }
    bytes frame(200, 0xa5);
    roce_path tagged = over_ipv4();
    tagged.tag_count = 3;
    EXPECT_EQ(build_roce(frame, tagged, headers, 7), 0u);
    EXPECT_EQ(build_roce(frame, over_ipv4(), {.bth = {.opcode = static_cast<roce_opcode>(0x1d)}}, 0), 0u);
    EXPECT_EQ(build_roce(frame, over_ipv4(), filled(roce_opcode::rc_acknowledge), 4), 0u);
    EXPECT_EQ(build_roce(frame, over_ipv4(), filled(roce_opcode::cnp), 12), 0u);
    EXPECT_EQ(build_roce(frame, over_ipv4(), headers, 4097), 0u);
    EXPECT_EQ(frame, bytes(200, 0xa5));
}

TEST(RoceHeaders, AreNeverLongerThanTheLongest)
{
    std::size_t longest = 0;
    for (roce_opcode opcode : known_opcodes())
        longest = std::max(longest, roce_headers_bytes(over_ipv6(), opcode));
    EXPECT_EQ(longest, most_roce_headers_bytes);
}

// What is refused.

/// A frame with a few bytes changed.
bytes with(bytes frame, std::size_t at, const bytes& changed)
{
    std::copy(changed.begin(), changed.end(), frame.begin() + static_cast<std::ptrdiff_t>(at));
    return frame;
}

constexpr std::size_t ip = 14, udp = ip + 20, bth = udp + 8;

/// A frame whose IP and UDP lengths say that so many bytes are behind the UDP header.
bytes with_transport_bytes(std::size_t count)
{
    bytes frame = a_write();
    frame.resize(bth + count);
    store_be(&frame[ip + 2], static_cast<std::uint16_t>(28 + count));
    store_be(&frame[udp + 4], static_cast<std::uint16_t>(8 + count));
    return frame;
}

TEST(RoceRefusals, OfWhatIsNoRoce)
{
    EXPECT_EQ(refusal_of({}), roce_refusal::not_roce);
    EXPECT_EQ(refusal_of(frames::tcp4(1, roce_port)), roce_refusal::not_roce);
    EXPECT_EQ(refusal_of(frames::udp4(roce_port, 4790)), roce_refusal::not_roce);
    EXPECT_EQ(refusal_of(with(a_write(), 12, hex("0806"))), roce_refusal::not_roce);
}

TEST(RoceRefusals, OfTooManyTags)
{
    const bytes packet = a_write();
    const bytes ip_packet(packet.begin() + 14, packet.end());
    EXPECT_EQ(refusal_of(frames::ethernet({{0x8100, 1}, {0x8100, 2}}, 0x0800, ip_packet)), roce_refusal::none);
    EXPECT_EQ(refusal_of(frames::ethernet({{0x8100, 1}, {0x8100, 2}, {0x8100, 3}}, 0x0800, ip_packet)),
              roce_refusal::too_many_tags);
}

TEST(RoceRefusals, OfOptionsAndExtensionHeaders)
{
    const bytes frame = a_write(), datagram(frame.begin() + udp, frame.end());
    EXPECT_EQ(refusal_of(frames::ethernet({}, 0x0800, frames::ipv4({.option_bytes = 4}, datagram))),
              roce_refusal::ip_options);
    EXPECT_EQ(refusal_of(frames::ethernet({}, 0x86dd, frames::ipv6({.extensions = {frames::hop_by_hop()}}, datagram))),
              roce_refusal::ip_options);
    EXPECT_EQ(refusal_of(frames::ethernet({}, 0x86dd, frames::ipv6({}, datagram))), roce_refusal::none);
}

TEST(RoceRefusals, OfFragments)
{
    EXPECT_EQ(refusal_of(with(a_write(), ip + 6, hex("2000"))), roce_refusal::fragment);
    EXPECT_EQ(refusal_of(with(a_write(), ip + 6, hex("0001"))), roce_refusal::fragment);
}

TEST(RoceRefusals, OfLengthsThatDoNotAgree)
{
    const bytes frame = a_write();
    EXPECT_EQ(refusal_of(with(frame, ip + 3, {static_cast<std::uint8_t>(frame[ip + 3] + 1)})), roce_refusal::truncated);
    EXPECT_EQ(refusal_of(with(frame, udp + 5, {static_cast<std::uint8_t>(frame[udp + 5] + 4)})),
              roce_refusal::udp_length);
    EXPECT_EQ(refusal_of(with(frame, udp + 5, {static_cast<std::uint8_t>(frame[udp + 5] - 4)})),
              roce_refusal::udp_length);
    EXPECT_EQ(refusal_of(with_transport_bytes(15)), roce_refusal::too_short);
    EXPECT_EQ(refusal_of(with_transport_bytes(0)), roce_refusal::too_short);
    EXPECT_EQ(refusal_of(with_transport_bytes(50)), roce_refusal::misaligned);
}

TEST(RoceRefusals, OfTransportHeaders)
{
    EXPECT_EQ(refusal_of(with(a_write(), bth + 1, {0xd1})), roce_refusal::unknown_version);
    EXPECT_EQ(refusal_of(with(a_write(), bth, {0x1d})), roce_refusal::unknown_opcode);
    EXPECT_EQ(refusal_of(with_transport_bytes(12 + 16 + 4)), roce_refusal::no_extended_headers);
    EXPECT_EQ(refusal_of(with_transport_bytes(12 + 20 + 4)), roce_refusal::wrong_pad);
    EXPECT_EQ(refusal_of(with(a_write(), bth, {0x13})), roce_refusal::wrong_pad); // its AtomicETH takes all bytes
}

/// A responder answers them, so it must be known to whom, and that they are whole.
TEST(RoceRefusals, OfTransportHeadersLeavePathAndBth)
{
    roce_packet whole, packet;
    const bytes cut = with_transport_bytes(12 + 8 + 4);
    ASSERT_EQ(parse_roce(a_write(), whole), roce_refusal::none);
    parse_roce(a_write(), packet); // what is left of another one
    ASSERT_EQ(parse_roce(cut, packet), roce_refusal::no_extended_headers);
    EXPECT_EQ(packet.form, roce_refusal::no_extended_headers);
    EXPECT_EQ(packet.path, whole.path);
    EXPECT_EQ(packet.headers, roce_headers{.bth = whole.headers.bth});
    EXPECT_TRUE(packet.payload.empty());
    EXPECT_EQ(packet.covered.size(), cut.size() - ip - 4);
    ASSERT_EQ(parse_roce(a_write(), packet), roce_refusal::none);
    EXPECT_EQ(packet.form, roce_refusal::none);
}

TEST(RoceRefusals, OfPayload)
{
    const bytes four_too_long = with(with_transport_bytes(12 + 4 + 4 + 4), bth, hex("1100"));
    EXPECT_EQ(refusal_of(four_too_long), roce_refusal::wrong_payload);
    const bytes short_cnp = with(with_transport_bytes(12 + 12 + 4), bth, hex("8100"));
    EXPECT_EQ(refusal_of(short_cnp), roce_refusal::wrong_payload);
    bytes largest(bth + 12 + 4096 + 4), larger(bth + 12 + 4100 + 4);
    for (bytes* frame : {&largest, &larger}) {
        const bytes start = with_transport_bytes(frame->size() - bth);
        *frame = with(start, bth, hex("0000"));
    }
    EXPECT_EQ(refusal_of(largest), roce_refusal::none);
    EXPECT_EQ(refusal_of(larger), roce_refusal::wrong_payload);
}

TEST(RoceHeaders, BehindReservedBitsAndInFrontOfTrailingBytesAreRead)
{
    bytes frame = a_write();
    roce_packet packet;
    frame[bth + 4] |= 0x3f;
    frame[bth + 8] |= 0x7f;
    frame.resize(frame.size() + 10);
    ASSERT_EQ(parse_roce(frame, packet), roce_refusal::none);
    EXPECT_EQ(packet.headers, filled(roce_opcode::rc_write_only_immediate));
    EXPECT_EQ(packet.payload.size(), 7u);
}

/// Whatever is missing, a packet is refused, and nothing behind what is there is read: there is a page that nobody may.
TEST(RoceHeaders, OfNoPartOfAPacketAreTaken)
{
    using weftio::fuzz::guarded;
    guarded memory(guarded::page);
    for (const roce_path& path : {over_ipv4(), over_ipv6()}) {
        for (roce_opcode opcode : known_opcodes()) {
            const bytes frame = built(path, filled(opcode), payload_for(opcode));
            for (std::size_t count = 0; count < frame.size(); ++count) {
                std::byte* const to = memory.kernel() + guarded::page - count;
                std::memcpy(to, frame.data(), count);
                roce_packet packet;
                ASSERT_NE(parse_roce({reinterpret_cast<const std::uint8_t*>(to), count}, packet), roce_refusal::none)
                    << int(opcode) << ", " << count;
            }
        }
    }
}

} // namespace
