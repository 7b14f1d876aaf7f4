/* Numbers that a stranger cannot guess: buckets, initial sequence numbers (RFC 6528) and SYN cookies (RFC 4987). */
#pragma once

#include "connection.h"

/** State of SipHash (Aumasson and Bernstein, 2012). */
struct tcp_sip {
    weftio_u64 v0, v1, v2, v3;
};

WEFTIO_FN weftio_u64 tcp_rotate(weftio_u64 value, weftio_u32 bits)
{
    return value << bits | value >> (64 - bits);
}
WEFTIO_FN void tcp_sip_rounds(struct tcp_sip* sip, weftio_u32 rounds)
{
    for (weftio_u32 i = 0; i < rounds; ++i) {
        sip->v0 += sip->v1;
        sip->v1 = tcp_rotate(sip->v1, 13) ^ sip->v0;
        sip->v0 = tcp_rotate(sip->v0, 32);
        sip->v2 += sip->v3;
        sip->v3 = tcp_rotate(sip->v3, 16) ^ sip->v2;
        sip->v0 += sip->v3;
        sip->v3 = tcp_rotate(sip->v3, 21) ^ sip->v0;
        sip->v2 += sip->v1;
        sip->v1 = tcp_rotate(sip->v1, 17) ^ sip->v2;
        sip->v2 = tcp_rotate(sip->v2, 32);
    }
}
WEFTIO_FN void tcp_sip_word(struct tcp_sip* sip, weftio_u64 word, weftio_u32 rounds)
{
    sip->v3 ^= word;
    tcp_sip_rounds(sip, rounds);
    sip->v0 ^= word;
}

/**
 * SipHash of `count` little-endian words: SipHash-2-4 with 2 rounds, SipHash-1-3 with 1 (for buckets, where a forgery
 * only makes a chain longer).
 */
WEFTIO_FN weftio_u64 tcp_siphash(weftio_u64 key0, weftio_u64 key1, const weftio_u32* words, weftio_u32 count,
                                 weftio_u32 rounds)
{
    struct tcp_sip sip = {key0 ^ 0x736f6d6570736575u, key1 ^ 0x646f72616e646f6du, key0 ^ 0x6c7967656e657261u,
                          key1 ^ 0x7465646279746573u};
    weftio_u64 last = (weftio_u64)(count * 4) << 56;

    for (weftio_u32 i = 0; i + 1 < count; i += 2)
        tcp_sip_word(&sip, (weftio_u64)words[i + 1] << 32 | words[i], rounds);
    if (count % 2)
        last |= words[count - 1];
    tcp_sip_word(&sip, last, rounds);
    sip.v2 ^= 0xff;
    tcp_sip_rounds(&sip, rounds + 2);
    return sip.v0 ^ sip.v1 ^ sip.v2 ^ sip.v3;
}

/** What a hash is for; it goes into the hash, so that one use tells nothing about another. */
enum tcp_hash_use { TCP_HASH_BUCKET = 0, TCP_HASH_SEQUENCE = 1, TCP_HASH_TIMESTAMP = 2, TCP_HASH_COOKIE = 3 };

/** Keyed hash of a connection's name. `a` and `b`: further words of the message. */
WEFTIO_FN weftio_u64 tcp_hash(const WEFTIO_GLOBAL struct tcp_settings* settings, const struct tcp_addresses* addresses,
                              weftio_u32 ports, weftio_u32 use, weftio_u32 a, weftio_u32 b)
{
    weftio_u32 words[12];

    for (weftio_u32 i = 0; i < 4; ++i) {
        words[i] = addresses->peer[i];
        words[4 + i] = addresses->own[i];
    }
    words[8] = ports;
    words[9] = use;
    words[10] = a;
    words[11] = b;
    return tcp_siphash(settings->key[0], settings->key[1], words, use == TCP_HASH_BUCKET ? 9 : 12,
                       use == TCP_HASH_BUCKET ? 1 : 2);
}

/** Both ports in one word, the peer's in the upper half. */
WEFTIO_FN weftio_u32 tcp_ports(const struct tcp_segment* received)
{
    return (weftio_u32)received->source_port << 16 | received->destination_port;
}

/** Initial sequence number of a new connection: a clock of 4.1 us and a secret offset for each name (RFC 6528). */
WEFTIO_FN weftio_u32 tcp_initial_sequence(const WEFTIO_GLOBAL struct tcp_settings* settings,
                                          const struct tcp_addresses* addresses, weftio_u32 ports, weftio_u64 now_ns)
{
    return (weftio_u32)(now_ns >> 12) + (weftio_u32)tcp_hash(settings, addresses, ports, TCP_HASH_SEQUENCE, 0, 0);
}
/** Added to the ticks for the timestamps of a connection, so that they do not tell how long this host is up. */
WEFTIO_FN weftio_u32 tcp_timestamp_offset(const WEFTIO_GLOBAL struct tcp_settings* settings,
                                          const struct tcp_addresses* addresses, weftio_u32 ports)
{
    return (weftio_u32)tcp_hash(settings, addresses, ports, TCP_HASH_TIMESTAMP, 0, 0);
}

/*
 * A cookie is the initial sequence number of a SYN|ACK that leaves no state here:
 *   bits 4..31  keyed hash of the name, the peer's initial sequence number, the period and the MSS
 *   bit  3      lowest bit of the period, which is 2^16 ticks (69 s) long
 *   bits 0..2   which MSS
 * It is taken in its own period and in the next. The peer's window scale travels in the four lowest bits of the
 * timestamp, 15 for none; a peer without timestamps gets no window scale.
 */
enum { TCP_COOKIE_PERIOD_SHIFT = 16, TCP_COOKIE_NO_SCALE = 15 };

/** The sizes that three bits name. */
WEFTIO_FN weftio_u32 tcp_cookie_mss(weftio_u32 index)
{
    return index == 0   ? TCP_LOWEST_MSS
           : index == 1 ? 536
           : index == 2 ? 1220
           : index == 3 ? 1360
           : index == 4 ? 1440
           : index == 5 ? 1460
           : index == 6 ? 4312
                        : 8940;
}
/** The largest size that is not above `mss`; 0 (no option) stands for 536. */
WEFTIO_FN weftio_u32 tcp_cookie_mss_index(weftio_u32 mss)
{
    weftio_u32 index = 7;

    while (index > 0 && tcp_cookie_mss(index) > (mss ? mss : 536))
        --index;
    return index;
}
WEFTIO_FN weftio_u32 tcp_cookie(const WEFTIO_GLOBAL struct tcp_settings* settings,
                                const struct tcp_addresses* addresses, weftio_u32 ports, weftio_u32 peer_initial,
                                weftio_u32 period, weftio_u32 mss_index)
{
    weftio_u32 mac =
        (weftio_u32)tcp_hash(settings, addresses, ports, TCP_HASH_COOKIE, peer_initial, period << 3 | mss_index);

    return (mac & ~15u) | (period & 1) << 3 | mss_index;
}
/**
 * Checks the ACK that ends a handshake without state.
 *
 * @param[out] mss  what the peer asked for, rounded down
 * @return 1 if the acknowledged sequence number is a cookie of ours for this peer, not older than 137 s
 */
WEFTIO_FN weftio_u32 tcp_cookie_valid(const WEFTIO_GLOBAL struct tcp_settings* settings,
                                      const struct tcp_addresses* addresses, const struct tcp_segment* received,
                                      weftio_u32 now, weftio_u32* mss)
{
    weftio_u32 cookie = received->acknowledgment - 1, period = now >> TCP_COOKIE_PERIOD_SHIFT;

    if ((period & 1) != (cookie >> 3 & 1))
        period = (period - 1) & 0xffffffffu >> TCP_COOKIE_PERIOD_SHIFT;
    *mss = tcp_cookie_mss(cookie & 7);
    return cookie == tcp_cookie(settings, addresses, tcp_ports(received), received->sequence - 1, period, cookie & 7);
}
/** A timestamp not after `value` that carries a window scale. */
WEFTIO_FN weftio_u32 tcp_cookie_timestamp(weftio_u32 value, weftio_u32 window_scale)
{
    weftio_u32 scale = window_scale == TCP_NO_WINDOW_SCALE ? (weftio_u32)TCP_COOKIE_NO_SCALE : window_scale;
    weftio_u32 marked = (value & ~15u) | scale;

    return marked > value ? marked - 16 : marked;
}
