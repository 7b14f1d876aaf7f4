/*
 * What a kernel counts. Each received frame counts in exactly one line of PACKETS_VERDICTS, so these lines add up to
 * the frames that were received.
 */
#pragma once

#include "weftio/device/platform.h"

/* X(name, text): name of the constant, and of the member in JSON; text of the table. */
#define PACKETS_ANSWERED(X)                                                                                            \
    X(arp, "ARP requests answered")                                                                                    \
    X(neighbor, "IPv6 neighbor solicitations answered")                                                                \
    X(ping, "pings answered, IPv4")                                                                                    \
    X(ping6, "pings answered, IPv6")                                                                                   \
    X(udp_echo, "UDP datagrams echoed")                                                                                \
    X(dns_query, "DNS queries")                                                                                        \
    X(dns_response, "DNS responses")                                                                                   \
    X(udp, "UDP datagrams, other")                                                                                     \
    X(tcp, "TCP segments")

#define PACKETS_DROPPED(X)                                                                                             \
    X(other_host, "for another MAC address")                                                                           \
    X(other_address, "for another IP address")                                                                         \
    X(other_ethertype, "neither IP nor ARP")                                                                           \
    X(other_protocol, "neither ICMP nor UDP nor TCP")                                                                  \
    X(other_icmp, "ICMP, but no echo request")                                                                         \
    X(other_arp, "ARP, but no request for an address of ours")                                                         \
    X(cut, "headers cut short")                                                                                        \
    X(bad_length, "a length that its packet does not have")                                                            \
    X(bad_header, "a header that breaks its standard")                                                                 \
    X(fragment, "fragments")                                                                                           \
    X(bad_ip_checksum, "wrong IPv4 checksum")                                                                          \
    X(bad_checksum, "wrong ICMP, UDP or TCP checksum")                                                                 \
    X(source, "a source address that no host has")                                                                     \
    X(no_room, "no room to send an answer")

#define PACKETS_VERDICTS(X) PACKETS_ANSWERED(X) PACKETS_DROPPED(X)

enum verdict {
#define PACKETS_CONSTANT(name, text) VERDICT_##name,
    PACKETS_VERDICTS(PACKETS_CONSTANT)
#undef PACKETS_CONSTANT
        VERDICTS,
    VERDICT_NONE = VERDICTS /* the frame is fine so far */
};

/* Answer times: a bucket holds what is below 2^(n/4) times the one unit of 256 ns, roughly. */
#define PACKETS_TIMES 96

/* Of one kernel, which alone writes them. */
struct packets_counters {
    weftio_u64 connections; /* TCP connections now, those in TIME_WAIT too */
    weftio_u64 frames;      /* received */
    weftio_u64 bytes;
    weftio_u64 sent; /* frames */
    weftio_u64 sent_bytes;
    weftio_u64 wrong_names;      /* DNS messages whose names are too long or leave the message */
    weftio_u64 requests;         /* HTTP requests answered */
    weftio_u64 refused_requests; /* of these, by a status from 400 on */
    weftio_u64 verdicts[VERDICTS];
    weftio_u64 times[PACKETS_TIMES]; /* from the arrival of a frame until its answer was sent */
};

/* Bucket of a time: four for each doubling, from 256 ns on. */
WEFTIO_FN weftio_u32 time_bucket(weftio_u64 ns)
{
    weftio_u64 units = ns >> 6;
    weftio_u32 doublings = 0;

    while (units >= 8) {
        units >>= 1;
        ++doublings;
    }
    weftio_u32 bucket = units < 4 ? 0 : doublings * 4 + (weftio_u32)units - 4;
    return weftio_min_u32(bucket, PACKETS_TIMES - 1);
}
