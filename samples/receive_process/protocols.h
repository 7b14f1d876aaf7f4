/* Finds the protocols of a packet: part of the kernels of receive_process. */
#pragma once

#include "weftio/device/eth_rxq.h"

enum protocol { ETH, IP, IPV6, ARP, ICMP, ICMPV6, TCP, UDP, VLAN, OTHER, PROTOCOLS };

WEFTIO_FN weftio_u32 be16(const WEFTIO_GLOBAL weftio_u8* at)
{
    return (weftio_u32)at[0] << 8 | at[1];
}
WEFTIO_FN weftio_u32 transport_bit(weftio_u32 number)
{
    return number == 1    ? 1u << ICMP
           : number == 6  ? 1u << TCP
           : number == 17 ? 1u << UDP
           : number == 58 ? 1u << ICMPV6
                          : 0;
}

/* Finds protocols over IPv4. Only the first fragment of a datagram has a transport header. */
WEFTIO_FN weftio_u32 ipv4_bits(const WEFTIO_GLOBAL weftio_u8* header, weftio_u32 bytes)
{
    return 1u << IP | (bytes >= 20 && (be16(header + 6) & 0x1fff) == 0 ? transport_bit(header[9]) : 0);
}
WEFTIO_FN weftio_u32 ipv6_bits(const WEFTIO_GLOBAL weftio_u8* header, weftio_u32 bytes)
{
    weftio_u32 at = 40, next = bytes >= 40 ? header[6] : 59;
    while ((next == 0 || next == 43 || next == 44 || next == 60) && at + 8 <= bytes) { /* extension headers */
        if (next == 44 && (be16(header + at + 2) & 0xfff8) != 0)
            return 1u << IPV6;
        weftio_u32 extension_bytes = next == 44 ? 8 : 8 + 8 * (weftio_u32)header[at + 1];
        next = header[at];
        at += extension_bytes;
    }
    return 1u << IPV6 | transport_bit(next);
}

WEFTIO_FN weftio_u32 is_vlan_type(weftio_u32 type)
{
    return type == 0x8100 || type == 0x88a8 || type == 0x9100;
}

/* Returns a bit for each protocol of a packet. */
WEFTIO_FN weftio_u32 protocol_bits(const struct weftio_dev_packet* packet)
{
    weftio_u32 at = 12, type = be16(packet->address + at);
    weftio_u32 bits = 1u << ETH | (packet->flags & WEFTIO_DEV_PACKET_VLAN_STRIPPED ? 1u << VLAN : 0);
    for (; is_vlan_type(type) && at + 6 <= packet->bytes; type = be16(packet->address + at)) {
        bits |= 1u << VLAN;
        at += 4;
    }
    at += 2;
    if (type == 0x0800)
        return bits | ipv4_bits(packet->address + at, packet->bytes - at);
    if (type == 0x86dd)
        return bits | ipv6_bits(packet->address + at, packet->bytes - at);
    return bits | 1u << (type == 0x0806 ? ARP : OTHER);
}
