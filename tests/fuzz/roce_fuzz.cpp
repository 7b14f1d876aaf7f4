// Any bytes as a received RoCEv2 packet, and any numbers as one to be built.
//
// The frame lies against a guard page, once the one behind it and once the one before. What is read lies within the
// frame, and is read again from what build_whole_roce() makes of it. The ICRC is the same in pieces, and by every
// method of this processor.
#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "expect.hpp"
#include "frame_memory.hpp"
#include "net/roce_headers.hpp"
#include "net/roce_rules.hpp"
#include "raw_entry.hpp"

namespace weftio::fuzz {

namespace {

using namespace net;
using bytes = std::span<const std::uint8_t>;

bool equal(bytes a, bytes b)
{
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

/// Not their addresses: what they say.
bool same(const roce_packet& a, const roce_packet& b)
{
    return a.path == b.path && a.headers == b.headers && a.icrc == b.icrc && equal(a.payload, b.payload) &&
           equal(a.covered, b.covered);
}

bool within(bytes inner, bytes outer)
{
    return inner.empty() || (inner.data() >= outer.data() && inner.size() <= outer.size() &&
                             inner.data() - outer.data() <= static_cast<std::ptrdiff_t>(outer.size() - inner.size()));
}

/// IP, UDP and BTH.
std::size_t masked_bytes(const roce_packet& packet)
{
    return packet.path.l3 == l3_kind::ipv4 ? masked_ipv4_bytes : masked_ipv6_bytes;
}

void check_bounds(bytes frame, const roce_packet& packet)
{
    const roce_shape& shape = shape_of(packet.headers.bth.opcode);
    expect(shape.known(), "a packet has an opcode that is known");
    expect(within(packet.covered, frame), "what the ICRC covers lies within the frame");
    expect(within(packet.payload, packet.covered), "the payload lies within what the ICRC covers");
    expect(packet.payload.size() <= largest_path_mtu, "a payload is of one packet");
    expect(shape.takes_payload || packet.payload.empty(), "no payload where there is to be none");
    const std::size_t front = roce_headers_bytes(packet.path, packet.headers.bth.opcode) - icrc_offset(packet.path);
    const std::size_t pad = pad_of(static_cast<std::uint32_t>(packet.payload.size()));
    expect(packet.covered.size() == front + packet.payload.size() + pad, "headers, payload and pad are all there is");
    const std::size_t bth = masked_bytes(packet) - 12;
    expect(packet.covered[bth] == static_cast<std::uint8_t>(packet.headers.bth.opcode), "an opcode is its byte");
    expect((packet.covered[bth + 1] & 0x0f) == 0, "there is one version of the header");
    expect(packet.headers.bth.psn <= psn_mask && packet.headers.bth.destination_qp <= 0xffffff, "24 bits are 24 bits");
}

/// An invalid request has its path, its BTH and its ICRC, and nothing else.
void check_invalid(bytes frame, const roce_packet& packet)
{
    expect(within(packet.covered, frame), "what the ICRC covers lies within the frame");
    expect(packet.covered.size() >= masked_bytes(packet), "a BTH is there");
    expect(packet.payload.empty(), "an invalid request has no payload");
    expect(packet.headers == roce_headers{.bth = packet.headers.bth}, "nor extended headers");
    expect(packet.headers.bth.psn <= psn_mask && packet.headers.bth.destination_qp <= 0xffffff, "24 bits are 24 bits");
}

/// The ICRC, in pieces whose lengths the input chooses.
void check_sum(const roce_packet& packet, numbers in)
{
    const std::size_t masked = masked_bytes(packet);
    const std::uint32_t whole = icrc_of(packet.covered);
    std::size_t at = std::min<std::size_t>(packet.covered.size(), masked + in.byte());
    icrc sum(packet.covered.first(at));
    std::array<std::uint8_t, 256> copied{};
    while (at < packet.covered.size()) {
        const bytes piece =
            packet.covered.subspan(at, std::min<std::size_t>(packet.covered.size() - at, in.byte() + 1));
        if (piece.size() % 2 == 0) {
            sum.add(piece);
        } else {
            sum.copy(copied.data(), piece);
            expect(equal(piece, std::span(copied).first(piece.size())), "a copy is a copy");
        }
        at += piece.size();
    }
    expect(sum.value() == whole, "the ICRC of pieces is that of the whole");
    expect(packet.icrc_good() == (whole == packet.icrc), "a good ICRC is the right one");
}

/// Built again and read again, it says the same, and its ICRC is right.
void check_rebuilt(const roce_packet& packet)
{
    static std::vector<std::uint8_t> to(most_roce_headers_bytes + largest_path_mtu + icrc_bytes);
    const std::size_t count = build_whole_roce(to, packet.path, packet.headers, packet.payload);
    roce_packet again;
    expect(count != 0, "what was read can be built");
    expect(parse_roce(std::span(to).first(count), again) == roce_refusal::none, "what was built can be read");
    expect(again.path == packet.path && again.headers == packet.headers, "headers are those that were written");
    expect(equal(again.payload, packet.payload), "a payload is the one that was written");
    expect(again.icrc_good(), "what was built has its ICRC");
}

void check_methods(bytes data, std::uint32_t start)
{
    const std::uint32_t by_portable = crc32_methods().back().update(start, data.data(), data.size());
    std::vector<std::uint8_t> to(data.size());
    for (const crc32_method& method : crc32_methods()) {
        expect(method.update(start, data.data(), data.size()) == by_portable, "all methods have one sum");
        expect(method.copy(start, to.data(), data.data(), data.size()) == by_portable, "and so when they copy");
        expect(equal(to, data), "a copy is a copy");
    }
}

void look_at(bytes frame, numbers in)
{
    static frame_memory behind, before, shorter;
    static roce_packet packet; // with what the last frame has left in it
    roce_packet other;
    const bytes at_end = behind.against_the_end(frame);
    const roce_refusal reason = parse_roce(at_end, packet);
    expect(reason <= roce_refusal::wrong_payload, "a refusal is one of the list");
    expect(parse_roce(before.against_the_begin(frame), other) == reason, "a frame is read the same wherever it lies");
    check_methods(at_end, in.word());
    if (reason != roce_refusal::none && !is_invalid_request(reason))
        return;
    expect(packet.form == reason, "a packet says what is wrong with it");
    expect(same(packet, other), "a packet is read the same wherever it lies");
    if (reason != roce_refusal::none)
        return check_invalid(at_end, packet);
    check_bounds(at_end, packet);
    check_sum(packet, in);
    check_rebuilt(packet);
    const std::size_t end = static_cast<std::size_t>(packet.covered.data() - at_end.data()) + packet.covered.size() + 4;
    const bytes start = shorter.against_the_end(frame.first(in.half() % end));
    expect(parse_roce(start, other) != roce_refusal::none, "a part of a packet is no packet");
}

/// A packet of numbers from the input: whether it can be built is what the opcode says.
void build_one(numbers in)
{
    static std::vector<std::uint8_t> to(most_roce_headers_bytes + largest_path_mtu + icrc_bytes), payload(5000, 0x5a);
    roce_path path{.tag_count = static_cast<std::uint8_t>(in.byte() % 4),
                   .l3 = (in.byte() & 1) != 0 ? l3_kind::ipv4 : l3_kind::ipv6,
                   .source_port = in.half(),
                   .traffic_class = in.byte()};
    const roce_headers headers{.bth = {.opcode = static_cast<roce_opcode>(in.byte())}};
    const std::size_t count = in.half() % payload.size();
    const roce_shape& shape = shape_of(headers.bth.opcode);
    const bool possible = shape.known() && path.tag_count <= most_roce_tags && count <= largest_path_mtu &&
                          (shape.takes_payload ? shape.service != roce_service::congestion || count == 16 : count == 0);
    const std::size_t written = build_whole_roce(to, path, headers, std::span(payload).first(count));
    expect((written != 0) == possible, "what can be built is");
    if (written == 0)
        return;
    roce_packet packet;
    expect(parse_roce(std::span(to).first(written), packet) == roce_refusal::none && packet.icrc_good(),
           "what was built can be read");
    expect(packet.payload.size() == count && packet.headers.bth == headers.bth, "as it was written");
    expect(build_whole_roce(std::span(to).first(in.half() % written), path, headers, std::span(payload).first(count)) ==
               0,
           "there is no packet without room");
}

} // namespace

} // namespace weftio::fuzz

/// The frame, and behind it sixteen bytes that say what is done with it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    constexpr std::size_t choices = 16;
    const std::size_t frame = bytes - std::min(bytes, choices);
    weftio::fuzz::look_at({data, frame}, {data + frame, bytes - frame});
    weftio::fuzz::build_one({data + frame, bytes - frame});
    return 0;
}
