/*
 * Reads the headers of a received frame: Ethernet with up to two VLAN tags, IPv4 or IPv6 with its extension headers.
 * Checks every length against the frame, and whether the frame is for us.
 */
#pragma once

#include "bytes.h"
#include "counters.h"
#include "settings.h"
#include "weftio/device/eth_rxq.h"

#define ETHERTYPE_IPV4 0x0800u
#define ETHERTYPE_ARP 0x0806u
#define ETHERTYPE_IPV6 0x86ddu
#define PROTOCOL_ICMP 1u
#define PROTOCOL_TCP 6u
#define PROTOCOL_UDP 17u
#define PROTOCOL_ICMPV6 58u

/* A received frame, and where its parts are. Offsets count from the first byte of the frame. */
struct frame {
    const WEFTIO_GLOBAL weftio_u8* at;
    weftio_u32 bytes;     /* up to the end of the IP packet: without padding */
    weftio_u32 flags;     /* WEFTIO_DEV_PACKET_* */
    weftio_u32 ethertype; /* behind the tags */
    weftio_u32 network;   /* offset of the ARP or IP header */
    weftio_u32 transport; /* offset of the header behind IP, if `protocol` is not 0 */
    weftio_u32 protocol;
    weftio_u32 version; /* of IP: 4, 6, or 0 */
    weftio_u32 tci;     /* of a VLAN tag that the NIC has taken out; 0xffffffff: none */
};

/* Whether the destination MAC is ours, or a group's (broadcast and multicast). */
WEFTIO_FN weftio_u32 is_for_our_mac(const WEFTIO_GLOBAL weftio_u8* frame,
                                    const WEFTIO_GLOBAL struct packets_settings* settings)
{
    return frame[0] & 1 ? 1 : bytes_equal(frame, settings->mac, 6);
}

/* Whether `address` is one of ours. */
WEFTIO_FN weftio_u32 is_our_address(const WEFTIO_GLOBAL weftio_u8* address, weftio_u32 version,
                                    const WEFTIO_GLOBAL struct packets_settings* settings)
{
    for (weftio_u32 each = 0; each < settings->address_count; ++each)
        if (settings->addresses[each].version == version &&
            bytes_equal(address, settings->addresses[each].bytes, version == 4 ? 4 : 16))
            return 1;
    return 0;
}

/* Whether an IPv4 address stands for all hosts of a network of ours, or for none of them. */
WEFTIO_FN weftio_u32 is_our_broadcast(const WEFTIO_GLOBAL weftio_u8* address,
                                      const WEFTIO_GLOBAL struct packets_settings* settings)
{
    for (weftio_u32 each = 0; each < settings->address_count; ++each) {
        const WEFTIO_GLOBAL struct own_address* own = &settings->addresses[each];
        if (own->version != 4 || own->prefix == 0 || own->prefix > 30)
            continue;
        weftio_u32 hosts = 0xffffffffu >> own->prefix, other = be32_get(address) ^ be32_get(own->bytes);
        weftio_u32 host = be32_get(address) & hosts;
        if ((other & ~hosts) == 0 && (host == 0 || host == hosts))
            return 1;
    }
    return 0;
}

/*
 * Whether `address` is the solicited-node multicast group of one of ours (RFC 4291 2.7.1), or all nodes of the link.
 */
WEFTIO_FN weftio_u32 is_our_group(const WEFTIO_GLOBAL weftio_u8* address,
                                  const WEFTIO_GLOBAL struct packets_settings* settings)
{
    if (be32_get(address) != 0xff020000u || be32_get(address + 4) != 0)
        return 0;
    if (be32_get(address + 8) == 0 && be32_get(address + 12) == 1)
        return 1;
    if (be32_get(address + 8) != 1 || address[12] != 0xff)
        return 0;
    for (weftio_u32 each = 0; each < settings->address_count; ++each)
        if (settings->addresses[each].version == 6 &&
            bytes_equal(address + 13, settings->addresses[each].bytes + 13, 3))
            return 1;
    return 0;
}

/* Whether an answer can go to `source`: no group, not this host's loopback, not nobody (IPv6: handled by its users). */
WEFTIO_FN weftio_u32 is_a_host(const WEFTIO_GLOBAL weftio_u8* source, weftio_u32 version)
{
    if (version == 4)
        return source[0] != 0 && source[0] != 127 && source[0] < 224;
    return source[0] != 0xff && (be32_get(source) | be32_get(source + 4) | be32_get(source + 8) |
                                 (be32_get(source + 12) & 0xfffffffeu)) != 0;
}

/* Whether a VLAN tag follows: 802.1Q, 802.1ad, or the 0x9100 of older stacked tags. */
WEFTIO_FN weftio_u32 is_vlan_type(weftio_u32 ethertype)
{
    return ethertype == 0x8100 || ethertype == 0x88a8 || ethertype == 0x9100;
}

/* Ethernet and its tags. A third tag makes the frame one of another ethertype. */
WEFTIO_FN weftio_u32 read_ethernet(struct frame* frame, const WEFTIO_GLOBAL struct packets_settings* settings)
{
    frame->network = 14;
    if (frame->bytes < 14)
        return VERDICT_cut;
    if (!is_for_our_mac(frame->at, settings))
        return VERDICT_other_host;
    if (frame->at[6] & 1)
        return VERDICT_source;
    frame->ethertype = be16_get(frame->at + 12);
    while (is_vlan_type(frame->ethertype) && frame->network < 22) {
        frame->network += 4;
        if (frame->bytes < frame->network)
            return VERDICT_cut;
        frame->ethertype = be16_get(frame->at + frame->network - 2);
    }
    return VERDICT_NONE;
}

/* RFC 791. Packets with options are taken, their options ignored (RFC 1122 3.2.1.8 has us pass them on only). */
WEFTIO_FN weftio_u32 read_ipv4(struct frame* frame, const WEFTIO_GLOBAL struct packets_settings* settings)
{
    const WEFTIO_GLOBAL weftio_u8* header = frame->at + frame->network;
    weftio_u32 room = frame->bytes - frame->network;

    if (room < 20)
        return VERDICT_cut;
    weftio_u32 header_bytes = (header[0] & 15u) * 4, total = be16_get(header + 2);
    if (header[0] >> 4 != 4 || header_bytes < 20)
        return VERDICT_bad_header;
    if (total < header_bytes || total > room)
        return VERDICT_bad_length;
    if (!(frame->flags & WEFTIO_DEV_PACKET_L3_CHECKSUM_GOOD))
        return VERDICT_bad_ip_checksum;
    if (!is_our_address(header + 16, 4, settings))
        return VERDICT_other_address;
    if (be16_get(header + 6) & 0x3fff) /* more fragments, or not the first */
        return VERDICT_fragment;
    if (!is_a_host(header + 12, 4) || is_our_address(header + 12, 4, settings) ||
        is_our_broadcast(header + 12, settings))
        return VERDICT_source;
    if (frame->at[0] & 1) /* a packet for one host in a frame for several: RFC 1122 3.3.6 */
        return VERDICT_other_host;
    frame->version = 4;
    frame->protocol = header[9];
    frame->transport = frame->network + header_bytes;
    frame->bytes = frame->network + total;
    return VERDICT_NONE;
}

/*
 * Whether a hop-by-hop or destination header of `bytes` bytes has only options that may be skipped. None is known but
 * padding; the upper two bits of the others say whether a host that does not know them drops the packet (RFC 8200 4.2).
 */
WEFTIO_FN weftio_u32 may_skip_options(const WEFTIO_GLOBAL weftio_u8* header, weftio_u32 bytes)
{
    for (weftio_u32 at = 2; at < bytes;) {
        if (header[at] == 0) { /* one byte of padding */
            ++at;
            continue;
        }
        if (header[at] >> 6 != 0 || at + 2 > bytes || at + 2 + header[at + 1] > bytes)
            return 0;
        at += 2 + (weftio_u32)header[at + 1];
    }
    return 1;
}

/* Extension headers that a host must look behind (RFC 8200 4): hop-by-hop, routing, destination. At most eight. */
WEFTIO_FN weftio_u32 skip_extensions(struct frame* frame, weftio_u32 next)
{
    for (weftio_u32 each = 0; next == 0 || next == 43 || next == 44 || next == 60; ++each) {
        const WEFTIO_GLOBAL weftio_u8* header = frame->at + frame->transport;
        weftio_u32 room = frame->bytes - frame->transport;
        if (room < 8)
            return VERDICT_cut;
        if (next == 44)
            return VERDICT_fragment; /* also one that is whole: nobody needs to send these (RFC 8021) */
        if (next == 43 && header[3] != 0)
            return VERDICT_bad_header; /* it is to be passed on, which a host does not do */
        weftio_u32 bytes = 8 + 8 * (weftio_u32)header[1];
        if (bytes > room)
            return VERDICT_bad_length;
        if (each == 8 || (next != 43 && !may_skip_options(header, bytes)))
            return VERDICT_bad_header;
        next = header[0];
        frame->transport += bytes;
    }
    frame->protocol = next;
    return VERDICT_NONE;
}

/* RFC 8200. */
WEFTIO_FN weftio_u32 read_ipv6(struct frame* frame, const WEFTIO_GLOBAL struct packets_settings* settings)
{
    const WEFTIO_GLOBAL weftio_u8* header = frame->at + frame->network;
    weftio_u32 room = frame->bytes - frame->network;

    if (room < 40)
        return VERDICT_cut;
    weftio_u32 payload = be16_get(header + 4);
    if (header[0] >> 4 != 6)
        return VERDICT_bad_header;
    if (payload > room - 40)
        return VERDICT_bad_length;
    if (!is_our_address(header + 24, 6, settings) && !is_our_group(header + 24, settings))
        return VERDICT_other_address;
    if (header[8] == 0xff || is_our_address(header + 8, 6, settings))
        return VERDICT_source;
    frame->version = 6;
    frame->transport = frame->network + 40;
    frame->bytes = frame->transport + payload;
    return skip_extensions(frame, header[6]);
}

/* Reads the headers of a packet up to the transport header. Returns VERDICT_NONE, or why the frame is dropped. */
WEFTIO_FN weftio_u32 read_frame(const struct weftio_dev_packet* packet,
                                const WEFTIO_GLOBAL struct packets_settings* settings, struct frame* frame)
{
    frame->at = packet->address;
    frame->bytes = packet->bytes;
    frame->flags = packet->flags;
    frame->tci = packet->flags & WEFTIO_DEV_PACKET_VLAN_STRIPPED ? packet->vlan_tci : 0xffffffffu;
    frame->protocol = 0;
    frame->version = 0;
    frame->transport = 0;
    weftio_u32 verdict = read_ethernet(frame, settings);
    if (verdict != VERDICT_NONE)
        return verdict;
    if (frame->ethertype == ETHERTYPE_IPV4)
        return read_ipv4(frame, settings);
    if (frame->ethertype == ETHERTYPE_IPV6)
        return read_ipv6(frame, settings);
    return frame->ethertype == ETHERTYPE_ARP ? VERDICT_NONE : VERDICT_other_ethertype;
}

/* Bytes from the transport header to the end of the IP packet. */
WEFTIO_FN weftio_u32 transport_bytes(const struct frame* frame)
{
    return frame->bytes - frame->transport;
}

/* Sum of the addresses, the protocol and `bytes`: the pseudo header of ICMPv6, UDP and TCP. */
WEFTIO_FN weftio_u32 pseudo_header_sum(const struct frame* frame, weftio_u32 bytes)
{
    const WEFTIO_GLOBAL weftio_u8* header = frame->at + frame->network;
    weftio_u32 sum = frame->protocol + (bytes >> 16) + (bytes & 0xffff);

    return frame->version == 4 ? ones_add(sum, header + 12, 8) : ones_add(sum, header + 8, 32);
}

/* Bytes of the Ethernet header of an answer, tags included. */
WEFTIO_FN weftio_u32 link_bytes(const struct frame* frame)
{
    return frame->network + (frame->tci != 0xffffffffu ? 4 : 0);
}

/*
 * The headers of an answer up to the transport header, in `to`: Ethernet and IP with source and destination exchanged,
 * `source` of ours where the frame came to a group. Returns their bytes. The NIC fills in the IPv4 checksum.
 */
WEFTIO_FN weftio_u32 answer_ethernet(WEFTIO_GLOBAL weftio_u8* to, const struct frame* frame,
                                     const WEFTIO_GLOBAL struct packets_settings* settings)
{
    weftio_u32 bytes = 12;

    bytes_copy(to, frame->at + 6, 6);
    bytes_copy(to + 6, settings->mac, 6);
    if (frame->tci != 0xffffffffu) {
        be32_put(to + 12, 0x81000000u | frame->tci);
        bytes = 16;
    }
    bytes_copy(to + bytes, frame->at + 12, frame->network - 12);
    return bytes + frame->network - 12;
}

/* An IPv4 header but for its addresses, which begin at byte 12. `hops`: time to live. */
WEFTIO_FN void begin_ipv4(WEFTIO_GLOBAL weftio_u8* to, weftio_u32 protocol, weftio_u32 payload, weftio_u32 hops)
{
    be32_put(to, 0x45000000u | (20 + payload));
    be32_put(to + 4, 0x4000u); /* not to be fragmented, so it needs no identification (RFC 6864) */
    be32_put(to + 8, hops << 24 | protocol << 16);
}

/* An IPv6 header but for its addresses, which begin at byte 8. `hops`: hop limit. */
WEFTIO_FN void begin_ipv6(WEFTIO_GLOBAL weftio_u8* to, weftio_u32 protocol, weftio_u32 payload, weftio_u32 hops)
{
    be32_put(to, 0x60000000u);
    be32_put(to + 4, payload << 16 | protocol << 8 | hops);
}

/* The IP header of an answer of `payload` bytes from `source`. Returns its bytes. */
WEFTIO_FN weftio_u32 answer_ip(WEFTIO_GLOBAL weftio_u8* to, const struct frame* frame,
                               const WEFTIO_GLOBAL weftio_u8* source, weftio_u32 payload, weftio_u32 hops)
{
    const WEFTIO_GLOBAL weftio_u8* header = frame->at + frame->network;

    if (frame->version == 4) {
        begin_ipv4(to, frame->protocol, payload, hops);
        bytes_copy(to + 12, source, 4);
        bytes_copy(to + 16, header + 12, 4);
        return 20;
    }
    begin_ipv6(to, frame->protocol, payload, hops);
    bytes_copy(to + 8, source, 16);
    bytes_copy(to + 24, header + 8, 16);
    return 40;
}

/* Our address that a frame came to. */
WEFTIO_FN const WEFTIO_GLOBAL weftio_u8* destination_of(const struct frame* frame)
{
    return frame->at + frame->network + (frame->version == 4 ? 16 : 24);
}
