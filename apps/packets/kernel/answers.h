/*
 * Answers that need no memory of what was before: ARP, IPv6 neighbor discovery, echo of ICMP and ICMPv6. Each function
 * looks at a received frame and composes the answer, if there is one; the answer fits where the frame has fit.
 */
#pragma once

#include "frame.h"
#include "weftio/device/eth_txq.h"

/* An answer that is being composed. */
struct answer {
    WEFTIO_GLOBAL weftio_u8* at;
    weftio_u32 room;  /* bytes of the buffer */
    weftio_u32 bytes; /* of the frame; 0: there is no answer */
    weftio_u32 flags; /* WEFTIO_DEV_SEND_*: checksums that the NIC fills in */
};

/* Time to live of answers. Neighbor discovery demands 255 (RFC 4861 7.1). */
#define ANSWER_HOPS 64u

/* RFC 826. */
WEFTIO_FN weftio_u32 answer_arp(const struct frame* frame, const WEFTIO_GLOBAL struct packets_settings* settings,
                                struct answer* answer)
{
    const WEFTIO_GLOBAL weftio_u8* arp = frame->at + frame->network;

    if (frame->bytes - frame->network < 28)
        return VERDICT_cut;
    if (be32_get(arp) != 0x00010800u || be16_get(arp + 4) != 0x0604)
        return VERDICT_bad_header;
    if (be16_get(arp + 6) != 1 || !is_our_address(arp + 24, 4, settings))
        return VERDICT_other_arp;
    weftio_u32 l2 = answer_ethernet(answer->at, frame, settings);
    WEFTIO_GLOBAL weftio_u8* to = answer->at + l2;
    be32_put(to, 0x00010800u);
    be32_put(to + 4, 0x06040002u);
    bytes_copy(to + 8, settings->mac, 6);
    bytes_copy(to + 14, arp + 24, 4);
    bytes_copy(to + 18, arp + 8, 10); /* who asked: its MAC and its address */
    answer->bytes = l2 + 28;
    return VERDICT_arp;
}

/* The message that follows the headers of an answer has been written: fills in its checksum at byte 2. */
WEFTIO_FN void finish_icmp(const struct answer* answer, weftio_u32 transport, weftio_u32 pseudo_sum)
{
    WEFTIO_GLOBAL weftio_u8* message = answer->at + transport;

    be16_put(message + 2, 0);
    be16_put(message + 2, ~ones_fold(ones_add(pseudo_sum, message, answer->bytes - transport)) & 0xffff);
}

/* RFC 792. A whole copy of the message goes back; bytes behind the IP packet do not. */
WEFTIO_FN weftio_u32 answer_icmp(const struct frame* frame, const WEFTIO_GLOBAL struct packets_settings* settings,
                                 struct answer* answer)
{
    const WEFTIO_GLOBAL weftio_u8* message = frame->at + frame->transport;
    weftio_u32 bytes = transport_bytes(frame);

    if (bytes < 8)
        return VERDICT_cut;
    if (ones_fold(ones_add(0, message, bytes)) != 0xffff)
        return VERDICT_bad_checksum;
    if (message[0] != 8 || message[1] != 0)
        return VERDICT_other_icmp;
    if (link_bytes(frame) + 20 + bytes > answer->room)
        return VERDICT_no_room;
    weftio_u32 at = answer_ethernet(answer->at, frame, settings);
    at += answer_ip(answer->at + at, frame, destination_of(frame), bytes, ANSWER_HOPS);
    bytes_copy(answer->at + at, message, bytes);
    answer->at[at] = 0;
    answer->bytes = at + bytes;
    answer->flags = WEFTIO_DEV_SEND_L3_CHECKSUM;
    finish_icmp(answer, at, 0);
    return VERDICT_ping;
}

/* Sum of the pseudo header of an answer of `bytes` from `source`. IPv6 exchanges the addresses, whose sum stays. */
WEFTIO_FN weftio_u32 answer_sum6(const WEFTIO_GLOBAL weftio_u8* ip, weftio_u32 bytes)
{
    return ones_add(PROTOCOL_ICMPV6 + bytes, ip + 8, 32);
}

/* Whether options fill the message to its end, none of length 0 (RFC 4861 7.1.1). */
WEFTIO_FN weftio_u32 options_are_fine(const WEFTIO_GLOBAL weftio_u8* options, weftio_u32 bytes)
{
    weftio_u32 at = 0;

    while (at < bytes) {
        if (at + 8 > bytes || options[at + 1] == 0)
            return 0;
        at += 8 * (weftio_u32)options[at + 1];
    }
    return at == bytes;
}

/* Whether options that are fine have one of type `type`. */
WEFTIO_FN weftio_u32 has_option(const WEFTIO_GLOBAL weftio_u8* options, weftio_u32 bytes, weftio_u32 type)
{
    for (weftio_u32 at = 0; at < bytes; at += 8 * (weftio_u32)options[at + 1])
        if (options[at] == type)
            return 1;
    return 0;
}

/* RFC 4861 7.2.3 and 7.2.4. The answer goes to the MAC that asked; to all nodes, if the asker has no address yet. */
WEFTIO_FN weftio_u32 answer_neighbor(const struct frame* frame, const WEFTIO_GLOBAL struct packets_settings* settings,
                                     struct answer* answer)
{
    const WEFTIO_GLOBAL weftio_u8* ip = frame->at + frame->network;
    const WEFTIO_GLOBAL weftio_u8* message = frame->at + frame->transport;
    weftio_u32 bytes = transport_bytes(frame);

    if (bytes < 24)
        return VERDICT_cut;
    if (ip[7] != 255 || message[1] != 0 || !options_are_fine(message + 24, bytes - 24))
        return VERDICT_bad_header;
    if (!is_our_address(message + 8, 6, settings))
        return VERDICT_other_address;
    weftio_u32 has_address = is_a_host(ip + 8, 6);
    if (!has_address && (ip[24] != 0xff || has_option(message + 24, bytes - 24, 1)))
        return VERDICT_bad_header; /* RFC 4861 7.1.1 */
    weftio_u32 at = answer_ethernet(answer->at, frame, settings);
    WEFTIO_GLOBAL weftio_u8* to = answer->at + at;
    at += answer_ip(to, frame, message + 8, 32, 255);
    if (!has_address) { /* it looks whether its address is taken (RFC 4862 5.4) */
        be32_put(answer->at, 0x33330000u);
        be16_put(answer->at + 4, 1);
        for (weftio_u32 each = 24; each < 40; ++each)
            to[each] = each == 24 ? 0xff : each == 25 ? 2 : each == 39;
    }
    WEFTIO_GLOBAL weftio_u8* reply = answer->at + at;
    be32_put(reply, 136u << 24);
    be32_put(reply + 4, has_address ? 0x60000000u : 0x20000000u); /* solicited, override */
    bytes_copy(reply + 8, message + 8, 16);
    be16_put(reply + 24, 0x0201);
    bytes_copy(reply + 26, settings->mac, 6);
    answer->bytes = at + 32;
    finish_icmp(answer, at, answer_sum6(to, 32));
    return VERDICT_neighbor;
}

/* RFC 4443 4.2. A ping to all nodes is answered from no address of ours: it is left to hosts that have one. */
WEFTIO_FN weftio_u32 answer_icmpv6(const struct frame* frame, const WEFTIO_GLOBAL struct packets_settings* settings,
                                   struct answer* answer)
{
    const WEFTIO_GLOBAL weftio_u8* message = frame->at + frame->transport;
    const WEFTIO_GLOBAL weftio_u8* ip = frame->at + frame->network;
    weftio_u32 bytes = transport_bytes(frame);

    if (bytes < 8)
        return VERDICT_cut;
    if (ones_fold(ones_add(pseudo_header_sum(frame, bytes), message, bytes)) != 0xffff)
        return VERDICT_bad_checksum;
    if (message[0] == 135)
        return answer_neighbor(frame, settings, answer);
    if (message[0] != 128 || message[1] != 0 || !is_our_address(ip + 24, 6, settings))
        return VERDICT_other_icmp;
    if (!is_a_host(ip + 8, 6))
        return VERDICT_source;
    if (link_bytes(frame) + 40 + bytes > answer->room)
        return VERDICT_no_room;
    weftio_u32 at = answer_ethernet(answer->at, frame, settings);
    WEFTIO_GLOBAL weftio_u8* to = answer->at + at;
    at += answer_ip(to, frame, destination_of(frame), bytes, ANSWER_HOPS);
    bytes_copy(answer->at + at, message, bytes);
    answer->at[at] = 129;
    answer->bytes = at + bytes;
    finish_icmp(answer, at, answer_sum6(to, bytes));
    return VERDICT_ping6;
}
