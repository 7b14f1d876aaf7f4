/*
 * TCP for a kernel: the one header that its loop includes. A block has an endpoint; one lane of it makes all calls.
 *
 * For each received segment, once its header was parsed and its checksum was good:
 *
 *     tcp_receive(endpoint, &addresses, &segment, now_ns, listens, &result);
 *     if (result.has_answer)
 *         send result.answer                                 // stateless: RST, or SYN|ACK with a cookie
 *     if (result.connection != TCP_NONE)
 *         serve(result)
 *
 * As often as the loop likes, to let time pass and to send what did not fit before:
 *
 *     while (room in the send ring && tcp_due(endpoint, now_ns, &result))
 *         serve(result)
 *
 * serve(result), with `connection` = tcp_connection_of(endpoint, result.connection), which begins the caller's record:
 *
 *     if (result.events & TCP_EVENT_ESTABLISHED)
 *         set up the application's part of the record
 *     if (result.payload_bytes)
 *         tcp_take(endpoint, connection, taken by the application, its window from now on, now, &result)
 *     if (result.events & TCP_EVENT_ACKNOWLEDGED)
 *         the application frees what is before tcp_acknowledged(connection)
 *     the application calls tcp_queue, tcp_close, tcp_abort or tcp_window as it likes; after TCP_EVENT_PEER_CLOSED a
 *     server calls tcp_close once all is answered
 *     if (result.events & TCP_EVENT_CLOSED)
 *         the application frees all it has; there is no further event. Do not queue
 *     while (room in the send ring && tcp_output(endpoint, connection, now, &segment, &stream_offset))
 *         compose and send it: tcp_write, then segment.payload_bytes bytes of the stream from stream_offset on
 *     tcp_done(endpoint, result.connection, the ring had no room, now)
 *
 * with now = tcp_ticks(now_ns), and no other call in between. tcp_take may set TCP_EVENT_PEER_CLOSED and
 * TCP_EVENT_CLOSED. Every result with a connection ends with tcp_done: it may free the record. No function waits, but
 * for the lock of the free records.
 */
#pragma once

#include "table.h"

/** Answers a SYN without keeping state. */
WEFTIO_FN void tcp_answer_cookie(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, const struct tcp_addresses* addresses,
                                 const struct tcp_segment* received, weftio_u32 now, struct tcp_result* result)
{
    const WEFTIO_GLOBAL struct tcp_settings* settings = endpoint->settings;
    struct tcp_segment* answer = &result->answer;
    weftio_u32 ports = tcp_ports(received);

    tcp_clear(answer);
    answer->source_port = received->destination_port;
    answer->destination_port = received->source_port;
    answer->flags = TCP_SYN | TCP_ACK;
    answer->sequence = tcp_cookie(settings, addresses, ports, received->sequence, now >> TCP_COOKIE_PERIOD_SHIFT,
                                  tcp_cookie_mss_index(received->mss));
    answer->acknowledgment = received->sequence + 1;
    answer->window = (weftio_u16)settings->receive_window;
    answer->mss = (weftio_u16)tcp_local_mss(settings->mtu, addresses);
    if (received->has_timestamps) {
        answer->has_timestamps = 1;
        answer->ts_value =
            tcp_cookie_timestamp(now + tcp_timestamp_offset(settings, addresses, ports), received->window_scale);
        answer->ts_echo = received->ts_value;
        if (received->window_scale != TCP_NO_WINDOW_SCALE)
            answer->window_scale = 0;
    }
    result->has_answer = 1;
    endpoint->cookie_sent = 1;
    endpoint->cookie_at = now;
    ++endpoint->counters.cookies_sent;
}

/** Fills a connection in as a SYN, or what a cookie stands for, asks for it. `asked` has the peer's options. */
WEFTIO_FN void tcp_open(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, WEFTIO_GLOBAL struct tcp_connection* made,
                        const struct tcp_segment* asked, weftio_u32 initial, weftio_u32 now)
{
    const WEFTIO_GLOBAL struct tcp_settings* settings = endpoint->settings;
    struct tcp_addresses addresses = made->addresses;
    weftio_u32 mss = tcp_local_mss(settings->mtu, &addresses);

    mss = weftio_min_u32(mss, tcp_max_u32(asked->mss ? asked->mss : 536, TCP_LOWEST_MSS));
    made->state = TCP_STATE_SYN_RECEIVED;
    made->initial = made->unacknowledged = initial;
    made->next_to_send = made->highest = made->end = initial + 1;
    made->expected = made->right_edge = made->last_sent_acknowledgment = asked->sequence + 1;
    made->receive_window = settings->receive_window;
    made->right_edge += settings->receive_window;
    made->timeout = settings->first_timeout;
    made->heard_at = made->progress_at = made->sent_at = now;
    if (asked->has_timestamps) {
        made->ts_offset = tcp_timestamp_offset(settings, &addresses, tcp_ports(asked));
        made->flags |= TCP_TIMESTAMPS;
        made->ts_recent = asked->ts_value;
        mss -= 12;
    }
    if (asked->window_scale != TCP_NO_WINDOW_SCALE) {
        made->flags |= TCP_SCALES;
        made->scale = asked->window_scale;
    }
    made->mss = (weftio_u16)mss;
}

/**
 * A SYN to a port that listens: makes a half-open connection, or answers with a cookie when there are too many of them
 * or no record is left.
 *
 * @param floor  0, or what the initial sequence number must not be before (an earlier connection of the same name)
 */
WEFTIO_FN void tcp_listen(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, const struct tcp_addresses* addresses,
                          const struct tcp_segment* received, weftio_u64 now_ns, weftio_u32 floor,
                          struct tcp_result* result)
{
    WEFTIO_GLOBAL struct tcp_connection* made;
    weftio_u32 ports = tcp_ports(received), initial, steps;

    endpoint->counters.low_mss += received->mss != 0 && received->mss < TCP_LOWEST_MSS;
    tcp_find(endpoint, addresses, ports, &steps);
    if (endpoint->half_open < endpoint->settings->half_open_limit && steps < TCP_CHAIN_LIMIT)
        result->connection = tcp_make(endpoint, addresses, ports);
    if (result->connection == TCP_NONE) {
        endpoint->counters.table_full += endpoint->half_open < endpoint->settings->half_open_limit;
        tcp_answer_cookie(endpoint, addresses, received, tcp_ticks(now_ns), result);
        return;
    }
    initial = tcp_initial_sequence(endpoint->settings, addresses, ports, now_ns);
    if (floor && tcp_before(initial, floor))
        initial = floor;
    made = tcp_connection_of(endpoint, result->connection);
    tcp_open(endpoint, made, received, initial, tcp_ticks(now_ns));
    made->flags |= TCP_WANTS_SYN | TCP_HALF_OPEN;
    ++endpoint->half_open;
    ++endpoint->counters.syn_received;
}

/** Whether an ACK of no connection may end a handshake by a cookie: one was sent of late. */
WEFTIO_FN weftio_u32 tcp_expects_cookies(const WEFTIO_GLOBAL struct tcp_endpoint* endpoint, weftio_u32 now)
{
    return endpoint->cookie_sent && now - endpoint->cookie_at < 2u << TCP_COOKIE_PERIOD_SHIFT;
}

/**
 * Makes a connection of the ACK that brings a cookie back.
 *
 * @return 0: it brings none, RST is due. 1: it does; or it is dropped, as the peer sends it again after what brings it
 */
WEFTIO_FN weftio_u32 tcp_accept_cookie(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                       const struct tcp_addresses* addresses, const struct tcp_segment* received,
                                       weftio_u32 now, struct tcp_result* result)
{
    struct tcp_segment asked = *received;
    weftio_u32 mss, scale, steps;

    if (!tcp_expects_cookies(endpoint, now))
        return 0;
    if (!tcp_cookie_valid(endpoint->settings, addresses, received, now, &mss)) {
        ++endpoint->counters.cookies_failed;
        return received->payload_bytes != 0 || (received->flags & TCP_FIN); /* what brings the cookie may be late */
    }
    tcp_find(endpoint, addresses, tcp_ports(received), &steps);
    if (steps < TCP_CHAIN_LIMIT)
        result->connection = tcp_make(endpoint, addresses, tcp_ports(received));
    if (result->connection == TCP_NONE) { /* dropped: what the peer sends next will bring the cookie again */
        ++endpoint->counters.table_full;
        return 1;
    }
    scale = received->has_timestamps ? received->ts_echo & 15 : (weftio_u32)TCP_COOKIE_NO_SCALE;
    asked.sequence = received->sequence - 1;
    asked.mss = (weftio_u16)mss;
    asked.window_scale = (weftio_u8)(scale == TCP_COOKIE_NO_SCALE ? (weftio_u32)TCP_NO_WINDOW_SCALE : scale);
    tcp_open(endpoint, tcp_connection_of(endpoint, result->connection), &asked, received->acknowledgment - 1, now);
    ++endpoint->counters.opened_by_cookie;
    tcp_input(endpoint, tcp_connection_of(endpoint, result->connection), received, now, result);
    return 1;
}

/** A segment of no connection: RFC 9293, 3.10.7.1 and 3.10.7.2. */
WEFTIO_FN void tcp_receive_unknown(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, const struct tcp_addresses* addresses,
                                   const struct tcp_segment* received, weftio_u32 now, weftio_u32 listens,
                                   struct tcp_result* result)
{
    ++endpoint->counters.unknown;
    if (received->flags & TCP_RST)
        return;
    if (listens && (received->flags & (TCP_ACK | TCP_SYN)) == TCP_ACK &&
        tcp_accept_cookie(endpoint, addresses, received, now, result))
        return;
    tcp_answer_reset(endpoint, received, result);
}

/**
 * Whether a SYN may begin a new connection while the old one of its name is in TIME_WAIT: it is later by its timestamp
 * or its sequence number (RFC 9293, 3.6.1; RFC 6191).
 */
WEFTIO_FN weftio_u32 tcp_may_reuse(const WEFTIO_GLOBAL struct tcp_connection* connection,
                                   const struct tcp_segment* received)
{
    if (connection->state != TCP_STATE_TIME_WAIT || (received->flags & ~TCP_PSH) != TCP_SYN)
        return 0;
    if ((connection->flags & TCP_TIMESTAMPS) && received->has_timestamps && received->ts_value != connection->ts_recent)
        return tcp_before(connection->ts_recent, received->ts_value);
    return tcp_before(connection->expected, received->sequence);
}

/** A SYN to no connection, or to one in TIME_WAIT that it replaces. */
WEFTIO_FN void tcp_receive_syn(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, const struct tcp_addresses* addresses,
                               const struct tcp_segment* received, weftio_u64 now_ns, weftio_u32 old,
                               struct tcp_result* result)
{
    weftio_u32 floor = 0;

    if (old != TCP_NONE) {
        floor = tcp_connection_of(endpoint, old)->highest + 65537; /* beyond any segment that may still arrive */
        floor += floor == 0;
        tcp_free(endpoint, old);
        ++endpoint->counters.time_wait_reused;
    }
    tcp_listen(endpoint, addresses, received, now_ns, floor, result);
}

/** Sets the wheel to the time of the first call. */
WEFTIO_FN void tcp_start(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, weftio_u32 now)
{
    if (endpoint->started)
        return;
    endpoint->started = 1;
    endpoint->wheel = now - 1;
}

/**
 * Takes one received segment. Never blocks, but for the lock of the free records.
 *
 * @param listens  1: a SYN to the destination port makes a connection; 0: it is answered with RST
 * @param[out] result  see the top of this file
 */
WEFTIO_FN void tcp_receive(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, const struct tcp_addresses* addresses,
                           const struct tcp_segment* received, weftio_u64 now_ns, weftio_u32 listens,
                           struct tcp_result* result)
{
    weftio_u32 now = tcp_ticks(now_ns), flags = received->flags, steps;
    weftio_u32 connection = tcp_find(endpoint, addresses, tcp_ports(received), &steps);
    weftio_u32 is_syn = (flags & (TCP_SYN | TCP_ACK | TCP_RST)) == TCP_SYN;

    tcp_clear_result(result);
    tcp_start(endpoint, now);
    if (flags == 0 || ((flags & TCP_SYN) && (flags & (TCP_FIN | TCP_RST)))) {
        ++endpoint->counters.bad_flags; /* no stack sends them: dropped, not answered */
    } else if (connection != TCP_NONE &&
               !(listens && tcp_may_reuse(tcp_connection_of(endpoint, connection), received))) {
        result->connection = connection;
        tcp_input(endpoint, tcp_connection_of(endpoint, connection), received, now, result);
    } else if (is_syn && listens) {
        tcp_receive_syn(endpoint, addresses, received, now_ns, connection, result);
    } else {
        endpoint->counters.refused += is_syn;
        endpoint->counters.unknown -= is_syn;
        tcp_receive_unknown(endpoint, addresses, received, now, listens, result);
    }
}

/**
 * Moves on to the next slot that has connections, at most `most` slots further. Returns 0 if there is none yet. After a
 * long pause one round of the wheel is enough: it has every connection.
 */
WEFTIO_FN weftio_u32 tcp_wheel_advance(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, weftio_u32 now, weftio_u32 most)
{
    if (tcp_before(endpoint->wheel + TCP_WHEEL_SLOTS, now))
        endpoint->wheel = now - TCP_WHEEL_SLOTS;
    for (weftio_u32 i = 0; i < most && tcp_before(endpoint->wheel, now); ++i) {
        if (endpoint->lists[(endpoint->wheel + 1) % TCP_WHEEL_SLOTS] != TCP_NONE)
            return 1;
        ++endpoint->wheel;
    }
    return 0;
}

/** Ends the TIME_WAIT of a few connections. */
WEFTIO_FN void tcp_expire_time_wait(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, weftio_u32 now, weftio_u32 most)
{
    for (weftio_u32 i = 0; i < most; ++i) {
        weftio_u32 oldest = endpoint->lists[TCP_LIST_TIME_WAIT];
        if (oldest == TCP_NONE ||
            tcp_before(now, tcp_connection_of(endpoint, oldest)->heard_at + endpoint->settings->time_wait))
            return;
        tcp_free(endpoint, oldest);
    }
}

/**
 * The application wants the connection from tcp_due at tick `at`; 0: it does not. Call it before tcp_done, again
 * whenever the connection is served: a tick that has passed is due at once.
 */
WEFTIO_FN void tcp_wake(WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 at)
{
    connection->wake_at = at;
}

/** The next connection whose deadline has passed; its timer has run. Those with a later deadline move on. */
WEFTIO_FN weftio_u32 tcp_due_timer(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, weftio_u32 now,
                                   struct tcp_result* result)
{
    for (weftio_u32 i = 0; i < 64 && tcp_wheel_advance(endpoint, now, 64); ++i) {
        weftio_u32 connection = endpoint->lists[(endpoint->wheel + 1) % TCP_WHEEL_SLOTS];
        WEFTIO_GLOBAL struct tcp_connection* found = tcp_connection_of(endpoint, connection);
        weftio_u32 deadline = tcp_next_deadline(endpoint->settings, found, now);

        tcp_list_remove(endpoint, connection);
        if (!tcp_before(now, deadline)) {
            result->connection = connection;
            tcp_timer(endpoint, found, now, result);
            return 1;
        }
        tcp_list_append(endpoint, tcp_wheel_tick(endpoint, deadline) % TCP_WHEEL_SLOTS, connection);
    }
    return 0;
}

/**
 * The next connection to serve without a segment: its timer has run, or it had more to send than there was room.
 * Never blocks; does a bounded amount of work, so that after a long pause it takes several calls to catch up.
 *
 * @return 1: serve result->connection; 0: nothing is due
 */
WEFTIO_FN weftio_u32 tcp_due(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, weftio_u64 now_ns, struct tcp_result* result)
{
    weftio_u32 now = tcp_ticks(now_ns);

    tcp_clear_result(result);
    tcp_start(endpoint, now);
    tcp_expire_time_wait(endpoint, now, 4);
    if (tcp_due_timer(endpoint, now, result))
        return 1;
    result->connection = endpoint->lists[TCP_LIST_READY];
    if (result->connection == TCP_NONE)
        return 0;
    tcp_list_remove(endpoint, result->connection);
    return 1;
}

/**
 * The caller is done with a connection for now: it is freed if it has ended, else it waits for its next deadline.
 *
 * @param more  1: tcp_output was not called until it gave 0; tcp_due then gives the connection again
 */
WEFTIO_FN void tcp_done(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, weftio_u32 connection, weftio_u32 more,
                        weftio_u32 now)
{
    WEFTIO_GLOBAL struct tcp_connection* done = tcp_connection_of(endpoint, connection);

    if (!more && done->state == TCP_STATE_CLOSED) {
        tcp_free(endpoint, connection);
        return;
    }
    if (done->list == TCP_LIST_TIME_WAIT + 1 && !more && done->heard_at != now)
        return; /* the wait goes on: the list is in the order of heard_at */
    if (more || done->state == TCP_STATE_TIME_WAIT) {
        tcp_list_remove(endpoint, connection);
        tcp_list_append(endpoint, more ? TCP_LIST_READY : TCP_LIST_TIME_WAIT, connection);
        return;
    }
    if (done->list > TCP_WHEEL_SLOTS)
        tcp_list_remove(endpoint, connection);
    tcp_schedule(endpoint, connection, tcp_next_deadline(endpoint->settings, done, now));
}
