/* UDP: which class a datagram is of, and the echo. */
#pragma once

#include "answers.h"

#define DNS_PORT 53u

/*
 * Whether `count` names with `behind` bytes behind each lie within the message (RFC 1035 3.1, 4.1.4). A label takes at
 * most 63 bytes and a name 255; a pointer ends a name and leads backward. Moves `*at` behind the last.
 */
WEFTIO_FN weftio_u32 names_are_fine(const WEFTIO_GLOBAL weftio_u8* message, weftio_u32 bytes, weftio_u32 count,
                                    weftio_u32 behind)
{
    weftio_u32 at = 12;

    for (; count; --count) {
        weftio_u32 name_bytes = 1;
        for (;;) {
            if (at >= bytes)
                return 0;
            weftio_u32 label = message[at];
            if (label >= 0xc0) {
                if (at + 2 > bytes || (be16_get(message + at) & 0x3fff) >= at)
                    return 0;
                at += 2;
                break;
            }
            name_bytes += label + 1;
            at += 1 + label;
            if (label > 63 || name_bytes > 256)
                return 0;
            if (label == 0)
                break;
        }
        at += behind;
        if (at > bytes)
            return 0;
    }
    return 1;
}

/* A DNS message (RFC 1035 4.1.1): its class, and whether the names of its questions are fine. */
WEFTIO_FN weftio_u32 dns_verdict(const WEFTIO_GLOBAL weftio_u8* message, weftio_u32 bytes,
                                 WEFTIO_GLOBAL struct packets_counters* counters)
{
    if (bytes < 12)
        return VERDICT_udp;
    if (!names_are_fine(message, bytes, be16_get(message + 4), 4))
        ++counters->wrong_names;
    return message[2] & 0x80 ? VERDICT_dns_response : VERDICT_dns_query;
}

/* The datagram goes back, with addresses and ports exchanged. */
WEFTIO_FN weftio_u32 echo_datagram(const struct frame* frame, const WEFTIO_GLOBAL struct packets_settings* settings,
                                   weftio_u32 bytes, struct answer* answer)
{
    const WEFTIO_GLOBAL weftio_u8* datagram = frame->at + frame->transport;

    if (link_bytes(frame) + (frame->version == 4 ? 20 : 40) + bytes > answer->room)
        return VERDICT_no_room;
    weftio_u32 at = answer_ethernet(answer->at, frame, settings);
    at += answer_ip(answer->at + at, frame, destination_of(frame), bytes, ANSWER_HOPS);
    WEFTIO_GLOBAL weftio_u8* to = answer->at + at;
    bytes_copy(to + 8, datagram + 8, bytes - 8);
    bytes_copy(to, datagram + 2, 2);
    bytes_copy(to + 2, datagram, 2);
    be16_put(to + 4, bytes);
    be16_put(to + 6, 0);
    answer->bytes = at + bytes;
    answer->flags = WEFTIO_DEV_SEND_L3_CHECKSUM | WEFTIO_DEV_SEND_L4_CHECKSUM;
    return VERDICT_udp_echo;
}

/* RFC 768. A checksum of 0 is none, in IPv4 only. */
WEFTIO_FN weftio_u32 answer_udp(const struct frame* frame, const WEFTIO_GLOBAL struct packets_settings* settings,
                                WEFTIO_GLOBAL struct packets_counters* counters, struct answer* answer)
{
    const WEFTIO_GLOBAL weftio_u8* datagram = frame->at + frame->transport;

    if (transport_bytes(frame) < 8)
        return VERDICT_cut;
    weftio_u32 bytes = be16_get(datagram + 4), source = be16_get(datagram), destination = be16_get(datagram + 2);
    if (bytes < 8 || bytes > transport_bytes(frame))
        return VERDICT_bad_length;
    weftio_u32 has_checksum = frame->version == 6 || be16_get(datagram + 6) != 0;
    if (has_checksum && !(frame->flags & WEFTIO_DEV_PACKET_L4_CHECKSUM_GOOD))
        return VERDICT_bad_checksum;
    if (settings->echo_port != 0 && destination == settings->echo_port) {
        /* A datagram from an echo port, or to a group, would go back and forth for ever. */
        if (source == 0 || source == settings->echo_port ||
            !is_our_address(destination_of(frame), frame->version, settings) ||
            !is_a_host(frame->at + frame->network + (frame->version == 4 ? 12 : 8), frame->version))
            return VERDICT_source;
        return echo_datagram(frame, settings, bytes, answer);
    }
    if (source == DNS_PORT || destination == DNS_PORT)
        return dns_verdict(datagram + 8, bytes - 8, counters);
    return VERDICT_udp;
}
