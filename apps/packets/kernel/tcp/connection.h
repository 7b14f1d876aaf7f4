/*
 * State of TCP: settings, counters, one connection, and what a block keeps (struct tcp_endpoint). All of it lies in
 * memory that the host allocates and zeroes; zeroed records, pool, buckets and lists are an empty table.
 *
 * Time is counted in ticks of 2^20 ns (1.05 ms), modulo 2^32; spans must stay below 2^31 ticks (26 days).
 */
#pragma once

#include "segment.h"

enum {
    TCP_TICK_SHIFT = 20,
    TCP_SECOND = 954,          /**< ticks; not exactly a second */
    TCP_WHEEL_SLOTS = 4096,    /**< one tick each; a later deadline waits for more than one round */
    TCP_LIST_READY = 4096,     /**< connections that have more to send than the send ring took */
    TCP_LIST_TIME_WAIT = 4097, /**< oldest first */
    TCP_LISTS = 4098,
    TCP_CHAIN_LIMIT = 64, /**< connections of one bucket; the next one is treated as if the table were full */
    TCP_LOWEST_MSS = 48,  /**< a peer that announces less gets segments of this, as Linux does (tcp_min_snd_mss) */
    TCP_NONE = 0          /**< no connection; the others are numbered from 1 */
};

enum tcp_state {
    TCP_STATE_CLOSED = 0,
    TCP_STATE_SYN_RECEIVED,
    TCP_STATE_ESTABLISHED,
    TCP_STATE_FIN_WAIT_1,
    TCP_STATE_FIN_WAIT_2,
    TCP_STATE_CLOSING,
    TCP_STATE_TIME_WAIT,
    TCP_STATE_CLOSE_WAIT,
    TCP_STATE_LAST_ACK
};

/** Bits of tcp_connection::flags. */
enum {
    TCP_WANTS_ACK = 1,
    TCP_WANTS_SYN = 2,        /**< SYN|ACK is to be sent, again or for the first time */
    TCP_WANTS_RETRANSMIT = 4, /**< one segment from `unacknowledged` on */
    TCP_WANTS_PROBE = 8,      /**< keep-alive, or probe of a zero window */
    TCP_WANTS_RESET = 16,
    TCP_TIMER = 32, /**< `deadline` holds: a retransmission, or a probe if TCP_PERSIST is set too */
    TCP_PERSIST = 64,
    TCP_TIMING = 128,       /**< a round trip is measured: `timed_sequence` was sent at `timed_at` */
    TCP_TIMESTAMPS = 256,   /**< both ends have sent the option */
    TCP_RECOVERY = 512,     /**< RFC 6582, until `recover` is acknowledged */
    TCP_FIN_QUEUED = 1024,  /**< the application has closed: FIN has the sequence number `end` */
    TCP_HALF_OPEN = 2048,   /**< counted in tcp_endpoint::half_open */
    TCP_REPORTED = 4096,    /**< the application was given TCP_EVENT_CLOSED */
    TCP_KNOWN = 8192,       /**< the application was given TCP_EVENT_ESTABLISHED */
    TCP_CHALLENGED = 16384, /**< `challenged_at` holds */
    TCP_SCALES = 32768      /**< the peer has sent the window scale option */
};

/** IPv6 addresses of both ends, or IPv4 ones as ::ffff:a.b.c.d; each word as be32_get reads it from the header. */
struct tcp_addresses {
    weftio_u32 peer[4]; /**< source of what is received */
    weftio_u32 own[4];  /**< of this end */
};

/** One for all blocks, written by the host before kernels start. tcp_default_settings() fills it. */
struct tcp_settings {
    weftio_u64 key[2];           /**< secret and random: initial sequence numbers, cookies, buckets */
    weftio_u32 mtu;              /**< longest IP packet */
    weftio_u32 receive_window;   /**< bytes, 1..65,535 */
    weftio_u32 initial_segments; /**< initial congestion window */
    weftio_u32 half_open_limit;  /**< of a block: beyond it SYNs are answered with cookies */
    weftio_u32 first_timeout;    /**< ticks: retransmission before a round trip was measured */
    weftio_u32 least_timeout;
    weftio_u32 longest_timeout;
    weftio_u32 tries;      /**< retransmissions or probes without an answer until the connection is reset */
    weftio_u32 syn_tries;  /**< the same for SYN|ACK; the connection is then dropped silently */
    weftio_u32 idle;       /**< ticks without data in either direction until the connection is closed; 0: never */
    weftio_u32 stall;      /**< ticks without progress of what is to be sent until it is reset; 0: never */
    weftio_u32 fin_wait;   /**< ticks that a closed connection waits for the peer's FIN */
    weftio_u32 time_wait;  /**< ticks */
    weftio_u32 keep_alive; /**< ticks of silence until the peer is probed; 0: never */
    weftio_u32 keep_alive_interval; /**< between probes; `tries` unanswered ones reset the connection */
};

/** What happened, of one block. Only that block writes it. */
struct tcp_counters {
    weftio_u64 opened, opened_by_cookie; /**< connections that became established; the second are part of the first */
    weftio_u64 closed, reset_by_peer, aborted; /**< ends of established ones */
    weftio_u64 timed_out;                      /**< part of aborted: no answer, or no progress */
    weftio_u64 idle_closed;                    /**< closed because of settings.idle */
    weftio_u64 syn_received;                   /**< half-open connections made */
    weftio_u64 syn_expired;                    /**< half-open connections that got no answer */
    weftio_u64 cookies_sent, cookies_failed;
    weftio_u64 table_full; /**< a connection was not made: no record left */
    weftio_u64 low_mss;    /**< SYNs of peers that announce less than TCP_LOWEST_MSS */
    weftio_u64 time_wait_reused, time_wait_evicted;
    weftio_u64 resets_sent;    /**< RST of any kind */
    weftio_u64 refused;        /**< part of resets_sent: SYN to a port where nothing listens */
    weftio_u64 unknown;        /**< segments of no connection, apart from SYN */
    weftio_u64 bad_flags;      /**< SYN with FIN or RST, no ACK where one is due */
    weftio_u64 old_timestamps; /**< PAWS: too old, or missing */
    weftio_u64 out_of_window, out_of_order, bad_acknowledgments;
    weftio_u64 challenges_sent, challenges_withheld;
    weftio_u64 retransmitted, fast_retransmits, timeouts;
    weftio_u64 window_probes, keep_alive_probes;
    weftio_u64 segments_received, segments_sent; /**< of connections */
    weftio_u64 bytes_accepted, bytes_acknowledged;
};

/** One connection. The caller keeps it as the first member of its record. Fields are TCP's own: use the functions. */
struct tcp_connection {
    struct tcp_addresses addresses;
    weftio_u16 peer_port, own_port;
    weftio_u32 next_in_bucket;
    weftio_u32 next, previous; /**< in the list `list` - 1; circular */
    weftio_u32 list;           /**< 0: in none */
    weftio_u32 flags;
    weftio_u8 state;
    weftio_u8 scale; /**< shift of the windows that the peer announces */
    weftio_u8 tries;
    weftio_u8 duplicates; /**< duplicate ACKs in a row */
    weftio_u16 mss;       /**< payload bytes of a segment that is sent */
    weftio_u16 probes;    /**< keep-alive probes without an answer */
    /* What is sent. Sequence numbers: initial < unacknowledged <= next_to_send <= highest; end is after the last byte
     * that the application has queued. */
    weftio_u32 initial, unacknowledged, next_to_send, highest, end;
    weftio_u32 window, largest_window;                 /**< of the peer, scaled */
    weftio_u32 window_sequence, window_acknowledgment; /**< SND.WL1, SND.WL2 */
    weftio_u32 congestion_window, threshold, recover;
    weftio_u32 smoothed, variation; /**< of the round trip: ticks * 8, ticks * 4; smoothed is 0 before the first */
    weftio_u32 timeout;             /**< ticks, backed off */
    weftio_u32 timed_sequence, timed_at;
    /* What is received. */
    weftio_u32 expected;       /**< RCV.NXT */
    weftio_u32 receive_window; /**< what the application can take from `expected` on */
    weftio_u32 right_edge;     /**< the furthest that was announced */
    weftio_u32 last_sent_acknowledgment;
    weftio_u32 ts_recent, ts_offset;
    weftio_u32 deadline;
    weftio_u32 wake_at; /**< when the application wants to be served; 0: not by itself */
    weftio_u32 heard_at, progress_at, sent_at, challenged_at;
};
WEFTIO_STATIC_ASSERT(sizeof(struct tcp_connection) <= 192, "a record must stay small: there are 65,536");

/** Free records, for all blocks: a list under one lock, and those that were never used. */
struct tcp_pool {
    weftio_u32 lock;
    weftio_u32 first_free; /**< by tcp_connection::next */
    weftio_u32 used_once;  /**< connections 1..used_once have been used */
    weftio_u32 in_use;
    weftio_u32 limit; /**< records there are; written by the host */
    weftio_u32 reserved[11];
};

/**
 * What one block keeps. The host fills the first part in and zeroes the rest; only that block uses it.
 *
 * `buckets` has bucket_mask + 1 words (a power of two; as many as there are records is plenty), `lists` TCP_LISTS.
 */
struct tcp_endpoint {
    WEFTIO_GLOBAL weftio_u8* records; /**< of all blocks; each begins with a struct tcp_connection */
    WEFTIO_GLOBAL struct tcp_pool* pool;
    const WEFTIO_GLOBAL struct tcp_settings* settings;
    WEFTIO_GLOBAL weftio_u32* buckets;
    WEFTIO_GLOBAL weftio_u32* lists;
    weftio_u32 record_bytes; /**< a multiple of 8 */
    weftio_u32 bucket_mask;

    weftio_u32 started;     /**< 0: `wheel` is not set yet */
    weftio_u32 wheel;       /**< the last tick whose slot is done */
    weftio_u32 connections; /**< of this block, TIME_WAIT included */
    weftio_u32 half_open;
    weftio_u32 cookie_sent; /**< 0: never sent one; cookie_at holds otherwise */
    weftio_u32 cookie_at;
    struct tcp_counters counters;
};

/** Bits of tcp_result::events. */
enum {
    TCP_EVENT_ESTABLISHED = 1,  /**< first event of a connection: the application sets its part of the record up */
    TCP_EVENT_ACKNOWLEDGED = 2, /**< tcp_acknowledged() has moved */
    TCP_EVENT_PEER_CLOSED = 4,  /**< the peer's FIN is behind all bytes taken */
    TCP_EVENT_CLOSED = 8,       /**< last event: both ends have closed, or there was a reset or a timeout */
    TCP_EVENT_IDLE = 32,        /**< settings.idle has passed: as if the application had called tcp_close */
    TCP_EVENT_RESET = 16        /**< with TCP_EVENT_CLOSED: not an orderly end */
};

/** What tcp_receive and tcp_due tell the caller. */
struct tcp_result {
    weftio_u32 connection; /**< TCP_NONE, or the connection to serve, tcp_output and tcp_done */
    weftio_u32 events;
    weftio_u32 payload_offset; /**< in the segment's payload: the bytes that are next in order */
    weftio_u32 payload_bytes;  /**< how many; if not 0, tcp_take is to be called */
    weftio_u32 fin;            /**< 1: the peer's FIN follows these bytes */
    weftio_u32 has_answer;     /**< 1: `answer` is to be sent, without payload, to where the segment came from */
    struct tcp_segment answer;
};

/** An empty result. */
WEFTIO_FN void tcp_clear_result(struct tcp_result* result)
{
    result->connection = TCP_NONE;
    result->events = result->payload_offset = result->payload_bytes = result->fin = result->has_answer = 0;
    tcp_clear(&result->answer);
}

/** Ticks of a time in nanoseconds. */
WEFTIO_FN weftio_u32 tcp_ticks(weftio_u64 now_ns)
{
    return (weftio_u32)(now_ns >> TCP_TICK_SHIFT);
}
/** Compares sequence numbers, or ticks, modulo 2^32. */
WEFTIO_FN weftio_u32 tcp_before(weftio_u32 a, weftio_u32 b)
{
    return (weftio_s32)(a - b) < 0;
}
WEFTIO_FN weftio_u32 tcp_max_u32(weftio_u32 a, weftio_u32 b)
{
    return a > b ? a : b;
}

/** Defaults of everything but the key. Host or kernel. */
WEFTIO_FN void tcp_default_settings(WEFTIO_GLOBAL struct tcp_settings* settings)
{
    settings->mtu = 1500;
    settings->receive_window = 16384;
    settings->initial_segments = 10;
    settings->half_open_limit = 1024;
    settings->first_timeout = TCP_SECOND;
    settings->least_timeout = TCP_SECOND / 5;
    settings->longest_timeout = 60 * TCP_SECOND;
    settings->tries = 8;
    settings->syn_tries = 5;
    settings->idle = 60 * TCP_SECOND;
    settings->stall = 300 * TCP_SECOND;
    settings->fin_wait = 60 * TCP_SECOND;
    settings->time_wait = 60 * TCP_SECOND;
    settings->keep_alive = 0;
    settings->keep_alive_interval = 10 * TCP_SECOND;
}

WEFTIO_FN WEFTIO_GLOBAL struct tcp_connection* tcp_connection_of(const WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                                                 weftio_u32 connection)
{
    return (WEFTIO_GLOBAL struct tcp_connection*)(endpoint->records +
                                                  (weftio_u64)(connection - 1) * endpoint->record_bytes);
}

/** Words of an IPv4 address as tcp_addresses has them. */
WEFTIO_FN void tcp_ipv4(weftio_u32* words, weftio_u32 address)
{
    words[0] = words[1] = 0;
    words[2] = 0xffff;
    words[3] = address;
}
/** Bytes of the IP header between these addresses: 20 for IPv4, 40 for IPv6. */
WEFTIO_FN weftio_u32 tcp_ip_header_bytes(const struct tcp_addresses* addresses)
{
    return addresses->own[0] == 0 && addresses->own[1] == 0 && addresses->own[2] == 0xffff ? 20 : 40;
}
/** The longest payload of a segment without options. */
WEFTIO_FN weftio_u32 tcp_local_mss(weftio_u32 mtu, const struct tcp_addresses* addresses)
{
    return mtu - tcp_ip_header_bytes(addresses) - TCP_HEADER_BYTES;
}
