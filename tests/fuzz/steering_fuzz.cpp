// Any bytes as a received frame: headers, rules, hash and checksums.
//
// The frame lies against a guard page, once the one behind it and once the one before, and cannot be written. What is
// found is held against the bytes, against a shorter frame, and against what DPDK reads in the same frame
// (dpdk_reading.hpp).
#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "dpdk_reading.hpp"
#include "expect.hpp"
#include "frame_memory.hpp"
#include "net/checksum.hpp"
#include "nic/soft/receive/steering.hpp"
#include "raw_entry.hpp"

namespace weftio::fuzz {

namespace {

using net::packet_headers, net::l3_kind, net::l4_kind;

constexpr std::size_t ethernet_bytes = 14, udp_bytes = 8, tcp_bytes = 20;

bool same(const packet_headers& a, const packet_headers& b)
{
    return a.source == b.source && a.destination == b.destination && a.l3_end == b.l3_end &&
           a.ether_type == b.ether_type && a.vlan_tci == b.vlan_tci && a.l3_offset == b.l3_offset &&
           a.l4_offset == b.l4_offset && a.source_port == b.source_port && a.destination_port == b.destination_port &&
           a.vlan_tags == b.vlan_tags && a.l3 == b.l3 && a.l4 == b.l4 && a.protocol == b.protocol &&
           a.tcp_flags == b.tcp_flags && a.has_protocol == b.has_protocol && a.fragment == b.fragment &&
           a.later_fragment == b.later_fragment && a.source_routed == b.source_routed;
}

/// No header ends beyond the frame, none of L4 beyond the IP packet.
void check_bounds(bytes frame, const packet_headers& headers)
{
    const std::size_t fixed_l3 = headers.l3 == l3_kind::ipv4 ? 20 : 40,
                      l4_bytes = headers.l4 == l4_kind::udp ? udp_bytes : tcp_bytes;
    expect((headers.l3_offset == 0) == (frame.size() < ethernet_bytes), "Ethernet is there when it is complete");
    expect(headers.l3_offset <= frame.size(), "what follows Ethernet begins within the frame");
    if (headers.l3 == l3_kind::none)
        expect(!headers.has_protocol && !headers.fragment, "without an IP header nothing is known of one");
    else
        expect(headers.l3_offset + fixed_l3 <= frame.size(), "an IP header lies within the frame");
    if (headers.has_protocol)
        expect(headers.l4_offset >= headers.l3_offset + 20u && headers.l4_offset <= frame.size(),
               "L4 begins within the frame");
    if (headers.l4 != l4_kind::none)
        expect(headers.has_protocol &&
                   headers.l4_offset + l4_bytes <= std::min<std::size_t>(frame.size(), headers.l3_end),
               "an L4 header lies within the frame and the IP packet");
    expect(!headers.later_fragment || (headers.fragment && headers.l4 == l4_kind::none),
           "a later fragment has no L4 header");
}

/// Values are those of the bytes at the offsets.
void check_values(bytes frame, const packet_headers& headers, std::optional<std::uint16_t> stripped)
{
    const unsigned tags = headers.vlan_tags - (stripped ? 1u : 0u);
    expect(tags <= net::max_vlan_tags, "there are no more tags than are looked at");
    if (headers.l3_offset != 0) {
        expect(headers.l3_offset == ethernet_bytes + 4 * tags, "a tag has four bytes");
        expect(headers.ether_type == half_at(frame, headers.l3_offset - 2u),
               "the ether type is the one behind all tags");
    }
    if (headers.vlan_tags > 0)
        expect(headers.vlan_tci == (stripped ? *stripped : half_at(frame, ethernet_bytes)), "the outermost tag counts");
    if (headers.l3 != l3_kind::none) {
        const std::size_t count = headers.l3 == l3_kind::ipv4 ? 4 : 16,
                          at = headers.l3_offset + (count == 4 ? 12u : 8u);
        expect(std::equal(&frame[at], &frame[at] + count, headers.source.begin()), "the source is the header's");
        expect(std::equal(&frame[at + count], &frame[at] + 2 * count, headers.destination.begin()),
               "the destination is the header's");
    }
    if (headers.l4 != l4_kind::none)
        expect(headers.source_port == half_at(frame, headers.l4_offset) &&
                   headers.destination_port == half_at(frame, headers.l4_offset + 2u),
               "ports are those of the header");
    if (headers.l4 == l4_kind::tcp)
        expect(headers.tcp_flags == frame[headers.l4_offset + 13u], "flags are those of the header");
}

/// What the start of a frame shows, the whole shows too.
void check_start(const packet_headers& start, const packet_headers& whole)
{
    if (start.l3 != l3_kind::none)
        expect(start.l3 == whole.l3 && start.source == whole.source && start.destination == whole.destination,
               "the start shows no other IP header than the whole");
    if (start.l4 != l4_kind::none)
        expect(start.l4 == whole.l4 && start.l4_offset == whole.l4_offset && start.source_port == whole.source_port,
               "the start shows no other L4 header than the whole");
}

/// A rule that wants what this packet has, field by field as `which` says.
flow_match match_of(const packet_headers& headers, unsigned which, std::uint8_t length)
{
    flow_match match;
    if (headers.l3_offset != 0 && which & 1)
        match.ether_type = headers.ether_type;
    if (headers.l3_offset != 0 && which & 2)
        match.vlan = headers.vlan_id();
    if (headers.l3 == l3_kind::ipv4 && which & 4) {
        match.ipv4_source = {.address = {}, .length = static_cast<std::uint8_t>(length % 33)};
        std::copy_n(headers.source.begin(), 4, match.ipv4_source->address.begin());
    }
    if (headers.l3 == l3_kind::ipv6 && which & 4)
        match.ipv6_destination = {.address = headers.destination, .length = static_cast<std::uint8_t>(length % 129)};
    if (headers.has_protocol && which & 8)
        match.ip_protocol = headers.protocol;
    if (headers.l4 != l4_kind::none && which & 16)
        match.source_port = {
            .first = static_cast<std::uint16_t>(headers.source_port - std::min<unsigned>(headers.source_port, length)),
            .last = headers.source_port};
    if (headers.l4 != l4_kind::none && which & 32)
        match.destination_port = {.first = headers.destination_port, .last = 0xffff};
    if (headers.l4 == l4_kind::tcp && which & 64)
        match.tcp_flags = {.value = headers.tcp_flags, .mask = length};
    return match;
}

/// The same, but for one field: no packet with these headers is wanted. False when there is no field to spoil.
bool spoil(flow_match& match)
{
    if (match.tcp_flags && match.tcp_flags->mask != 0)
        match.tcp_flags->value = static_cast<std::uint8_t>(~match.tcp_flags->value);
    else if (match.source_port && match.source_port->last != 0xffff)
        match.source_port = {.first = static_cast<std::uint16_t>(match.source_port->last + 1), .last = 0xffff};
    else if (match.ip_protocol)
        match.ip_protocol = static_cast<std::uint8_t>(*match.ip_protocol + 1);
    else if (match.ipv4_source && match.ipv4_source->length > 0)
        match.ipv4_source->address[0] ^= 0x80;
    else if (match.ipv6_destination && match.ipv6_destination->length > 0)
        match.ipv6_destination->address[0] ^= 0x80;
    else if (match.vlan)
        match.vlan = static_cast<std::uint16_t>(*match.vlan ^ 1);
    else if (match.ether_type)
        match.ether_type = static_cast<std::uint16_t>(*match.ether_type ^ 1);
    else
        return false;
    return true;
}

std::shared_ptr<nic::soft::steering_rule> rule_to(std::uint32_t slot, const flow_match& match, flow_kind action,
                                                  std::uint32_t priority)
{
    auto rule = std::make_shared<nic::soft::steering_rule>();
    rule->match = match;
    rule->action = action;
    if (action != flow_kind::drop)
        rule->targets = {slot};
    rule->priority = priority;
    return rule;
}

/// A table of the spoiled rule, the right one, and one for the rest, which must not be reached.
void check_rules(const nic::soft::received_frame& frame, const packet_headers& headers, numbers& in)
{
    const std::uint8_t which = in.byte(), length = in.byte(), action = in.byte();
    flow_match wanted = match_of(headers, which, length), wrong = wanted;
    nic::soft::steering table;
    auto right = rule_to(1, wanted, action & 1 ? flow_kind::rss : action & 2 ? flow_kind::drop : flow_kind::queue, 1);
    if (spoil(wrong))
        table.add(rule_to(0, wrong, flow_kind::queue, 0));
    table.add(right);
    table.add(rule_to(2, {}, flow_kind::queue, 2));
    if (action & 4)
        table.forget_queue(1);

    packet_headers seen;
    const nic::soft::decision decided = table.decide(frame, action & 8 ? &seen : nullptr);
    expect(right->packets.value() == 1 && right->bytes.value() == frame.bytes,
           "the rule that describes a packet gets it");
    if (right->action == flow_kind::drop)
        expect(decided.reason == drop_reason::dropped_by_flow, "a rule drops what it says");
    else if (action & 4)
        expect(decided.reason == drop_reason::queue_closed, "a queue that is gone gets nothing");
    else
        expect(!decided.dropped() && decided.target.queue == 1, "a packet goes to the queue of its rule");
    expect(decided.has_hash == (right->action == flow_kind::rss && headers.l3 != l3_kind::none),
           "an IP packet has a hash");
    expect(!decided.parsed || same(seen, headers), "the headers that a decision shows are the packet's");
    expect(table.remove(right.get()) && !table.remove(right.get()), "a rule goes once");
}

/// Both directions of a connection have one symmetric hash.
void check_hash(const packet_headers& headers)
{
    packet_headers back = headers;
    std::swap(back.source, back.destination);
    std::swap(back.source_port, back.destination_port);
    expect(nic::soft::rss_hash(headers, rss_key::symmetric) == nic::soft::rss_hash(back, rss_key::symmetric),
           "a symmetric hash knows no direction");
    expect(headers.l3 != l3_kind::none || nic::soft::rss_hash(headers, rss_key::standard) == 0,
           "without addresses there is no hash");
}

/// What fill_checksums() has filled in is found good, and nothing else has changed.
void check_checksums(bytes frame, std::span<std::uint8_t> filled)
{
    const packet_headers headers = net::parse(frame, std::nullopt);
    agree_with_dpdk_on_checksums(frame, headers, net::verify_checksums(frame, headers));
    net::fill_checksums(filled, true, true);
    const net::checksum_verdict verdict = net::verify_checksums(filled, net::parse(filled, std::nullopt));
    const bool there = headers.l3 != l3_kind::none && headers.l3_end <= frame.size();
    const bool whole = there && headers.l4 != l4_kind::none && !headers.fragment && !headers.source_routed;
    if (there && headers.l3_end >= headers.l4_offset)
        expect(verdict.l3_good, "a checksum of IP that was filled in is good");
    const std::size_t l4_at = headers.l4_offset + (headers.l4 == l4_kind::udp ? 6u : 16u),
                      l3_at = headers.l3_offset + 10u;
    if (whole && (headers.l4 == l4_kind::tcp ||
                  half_at(frame, headers.l4_offset + 4u) - 8u <= headers.l3_end - headers.l4_offset - 8u))
        expect(verdict.l4_good, "a checksum of UDP or TCP that was filled in is good");
    for (std::size_t at = 0; at < frame.size(); ++at) {
        const bool l3 = headers.l3 == l3_kind::ipv4 && at - l3_at < 2, l4 = whole && at - l4_at < 2;
        expect(frame[at] == filled[at] || l3 || l4, "nothing but checksums is written");
    }
}

void look_at(bytes frame, numbers in)
{
    static frame_memory behind, before, writable, shorter;
    std::optional<std::uint16_t> stripped;
    if (in.byte() & 1)
        stripped = in.half();
    const bytes at_end = behind.against_the_end(frame);
    const packet_headers headers = net::parse(at_end, stripped);
    expect(same(headers, net::parse(before.against_the_begin(frame), stripped)),
           "a frame is read the same wherever it lies");
    check_bounds(at_end, headers);
    check_values(at_end, headers, stripped);
    check_start(net::parse(shorter.against_the_end(frame.first(in.half() % (frame.size() + 1))), stripped), headers);
    agree_with_dpdk(at_end, headers);
    check_hash(headers);
    check_rules({.start = at_end, .bytes = static_cast<std::uint32_t>(frame.size()), .stripped_tci = stripped}, headers,
                in);
    check_checksums(at_end, writable.to_write(frame));
}

} // namespace

} // namespace weftio::fuzz

/// The frame, and behind it eight bytes that say what is done with it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    constexpr std::size_t choices = 8;
    const std::size_t frame = bytes - std::min(bytes, choices);
    weftio::fuzz::look_at({data, frame}, {data + frame, bytes - frame});
    return 0;
}
