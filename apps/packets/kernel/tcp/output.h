/* What a connection has to send now, one segment a call: RFC 9293, 3.10.2-3.10.5 and 3.8.6. */
#pragma once

#include "congestion.h"

/** Fills in what every segment of a connection has, and takes note of what it tells the peer. */
WEFTIO_FN void tcp_fill(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, WEFTIO_GLOBAL struct tcp_connection* connection,
                        weftio_u32 now, weftio_u32 sequence, weftio_u32 flags, struct tcp_segment* out)
{
    tcp_clear(out);
    out->source_port = connection->own_port;
    out->destination_port = connection->peer_port;
    out->sequence = sequence;
    out->flags = (weftio_u8)(flags | TCP_ACK);
    out->acknowledgment = connection->expected;
    out->window = (weftio_u16)connection->receive_window;
    if (connection->flags & TCP_TIMESTAMPS) {
        out->has_timestamps = 1;
        out->ts_value = now + connection->ts_offset;
        out->ts_echo = connection->ts_recent;
    }
    if (tcp_before(connection->right_edge, connection->expected + connection->receive_window))
        connection->right_edge = connection->expected + connection->receive_window;
    connection->last_sent_acknowledgment = connection->expected;
    connection->flags &= ~(weftio_u32)TCP_WANTS_ACK;
    ++endpoint->counters.segments_sent;
}

/** SYN|ACK. The window of it is never scaled, and neither are later ones: a receive window has 16 bits. */
WEFTIO_FN void tcp_output_syn(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                              WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 now, struct tcp_segment* out)
{
    struct tcp_addresses addresses = connection->addresses;

    tcp_fill(endpoint, connection, now, connection->initial, TCP_SYN, out);
    out->mss = (weftio_u16)tcp_local_mss(endpoint->settings->mtu, &addresses);
    if (connection->flags & TCP_SCALES)
        out->window_scale = 0;
    connection->flags &= ~(weftio_u32)TCP_WANTS_SYN;
    connection->sent_at = now;
    if (!(connection->flags & TCP_TIMER))
        tcp_timer_start(connection, now);
}

/** Names `length` bytes of the stream from `sequence` on, and FIN if it is due right behind them. */
WEFTIO_FN void tcp_output_bytes(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 now, weftio_u32 sequence,
                                weftio_u32 length, struct tcp_segment* out)
{
    weftio_u32 last = sequence + length == connection->end;
    weftio_u32 fin = last && (connection->flags & TCP_FIN_QUEUED);

    tcp_fill(endpoint, connection, now, sequence, (fin ? TCP_FIN : 0) | (last && length ? TCP_PSH : 0), out);
    out->payload_bytes = length;
    if (tcp_before(sequence, connection->highest))
        ++endpoint->counters.retransmitted;
    connection->sent_at = now;
    if (connection->flags & TCP_PERSIST)
        tcp_timer_stop(connection);
    if (!(connection->flags & TCP_TIMER))
        tcp_timer_start(connection, now);
}

/** The one segment that fast recovery takes for lost. Returns 0 if there is none to send. */
WEFTIO_FN weftio_u32 tcp_output_lost(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                     WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 now,
                                     struct tcp_segment* out)
{
    weftio_u32 sent = connection->highest - connection->unacknowledged;
    weftio_u32 queued = connection->end - connection->unacknowledged;

    connection->flags &= ~(weftio_u32)TCP_WANTS_RETRANSMIT;
    if (sent == 0 || connection->window == 0)
        return 0;
    if (tcp_before(connection->end, connection->unacknowledged))
        return 0;
    tcp_output_bytes(endpoint, connection, now, connection->unacknowledged,
                     weftio_min_u32(weftio_min_u32(queued, sent), connection->mss), out);
    connection->flags &= ~(weftio_u32)TCP_TIMING;
    return 1;
}

/** Notes that [next_to_send, next_to_send + `bytes`) is sent; FIN counts as a byte. */
WEFTIO_FN void tcp_output_advance(WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 bytes, weftio_u32 now)
{
    weftio_u32 is_new = connection->next_to_send == connection->highest;

    connection->next_to_send += bytes;
    if (tcp_before(connection->highest, connection->next_to_send))
        connection->highest = connection->next_to_send;
    if (is_new && !(connection->flags & TCP_TIMING)) {
        connection->flags |= TCP_TIMING;
        connection->timed_sequence = connection->next_to_send;
        connection->timed_at = now;
    }
    if (connection->next_to_send != connection->end + 1 || !(connection->flags & TCP_FIN_QUEUED))
        return;
    if (connection->state == TCP_STATE_ESTABLISHED)
        connection->state = TCP_STATE_FIN_WAIT_1;
    else if (connection->state == TCP_STATE_CLOSE_WAIT)
        connection->state = TCP_STATE_LAST_ACK;
}

/**
 * How many of `remaining` bytes the next segment gets, when `usable` are within the windows. 0: wait for an ACK rather
 * than send a small piece (silly window avoidance, RFC 9293, 3.8.6.2.1).
 */
WEFTIO_FN weftio_u32 tcp_output_length(const WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 remaining,
                                       weftio_u32 usable)
{
    weftio_u32 length = weftio_min_u32(weftio_min_u32(remaining, usable), connection->mss);

    if (length == remaining || length == connection->mss || tcp_in_flight(connection) == 0)
        return length;
    return length >= connection->largest_window / 2 ? length : 0;
}

/** The next segment of the stream, if the windows let it go. */
WEFTIO_FN weftio_u32 tcp_output_next(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                     WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 now,
                                     struct tcp_segment* out)
{
    weftio_u32 remaining = connection->end - connection->next_to_send, in_flight = tcp_in_flight(connection);
    weftio_u32 fin = (connection->flags & TCP_FIN_QUEUED) != 0, window, length;

    if (connection->next_to_send == connection->end + fin)
        return 0;
    if (in_flight == 0 && now - connection->sent_at > connection->timeout && connection->tries == 0) /* RFC 5681, 4.1 */
        connection->congestion_window =
            weftio_min_u32(connection->congestion_window, endpoint->settings->initial_segments * connection->mss);
    window = tcp_sendable(connection);
    length = window > in_flight ? tcp_output_length(connection, remaining, window - in_flight) : 0;
    if (length == 0 && (remaining != 0 || window <= in_flight)) {
        if (in_flight == 0 && !(connection->flags & TCP_TIMER)) { /* nothing but a probe will bring an ACK */
            connection->flags |= TCP_PERSIST;
            tcp_timer_start(connection, now);
        }
        return 0;
    }
    tcp_output_bytes(endpoint, connection, now, connection->next_to_send, length, out);
    tcp_output_advance(connection, length + (out->flags & TCP_FIN ? 1 : 0), now);
    return 1;
}

/** A segment without payload: ACK, a probe that the peer must answer because it is outside the window, or RST. */
WEFTIO_FN weftio_u32 tcp_output_empty(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                      WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 now,
                                      struct tcp_segment* out)
{
    weftio_u32 wants = connection->flags & (TCP_WANTS_ACK | TCP_WANTS_PROBE);

    if (!wants)
        return 0;
    connection->flags &= ~(weftio_u32)TCP_WANTS_PROBE;
    tcp_fill(endpoint, connection, now, wants & TCP_WANTS_PROBE ? connection->unacknowledged - 1 : connection->highest,
             0, out);
    return 1;
}

/**
 * The next segment that a connection has to send, if there is one now.
 *
 * @param out            its header fields and payload_bytes; the caller adds the payload
 * @param stream_offset  position of the payload in the stream of queued bytes, modulo 2^32, from 0 on
 * @return 1, or 0: nothing to send until the next segment, event or timer
 */
WEFTIO_FN weftio_u32 tcp_output(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 now,
                                struct tcp_segment* out, weftio_u32* stream_offset)
{
    weftio_u32 sent = 0;

    if (connection->state == TCP_STATE_CLOSED) {
        sent = (connection->flags & TCP_WANTS_RESET) != 0;
        if (sent) {
            tcp_fill(endpoint, connection, now, connection->highest, TCP_RST, out);
            connection->flags &= ~(weftio_u32)TCP_WANTS_RESET;
            ++endpoint->counters.resets_sent;
        }
    } else if (connection->state == TCP_STATE_SYN_RECEIVED) {
        sent = (connection->flags & TCP_WANTS_SYN) != 0;
        if (sent)
            tcp_output_syn(endpoint, connection, now, out);
    } else if (connection->state != TCP_STATE_TIME_WAIT) {
        if (connection->flags & TCP_WANTS_RETRANSMIT)
            sent = tcp_output_lost(endpoint, connection, now, out);
        if (!sent)
            sent = tcp_output_next(endpoint, connection, now, out);
    }
    if (!sent && connection->state >= TCP_STATE_ESTABLISHED)
        sent = tcp_output_empty(endpoint, connection, now, out);
    if (sent)
        *stream_offset = out->sequence - connection->initial - 1;
    return sent;
}

/**
 * The application has `bytes` more to send. After tcp_close or TCP_EVENT_IDLE they are ignored.
 *
 * @pre less than 2^30 are queued and not yet acknowledged
 */
WEFTIO_FN void tcp_queue(WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 bytes, weftio_u32 now)
{
    if (connection->flags & TCP_FIN_QUEUED)
        return;
    if (connection->unacknowledged == connection->end)
        connection->progress_at = now; /* the time without progress begins here */
    connection->end += bytes;
}
/** The application has nothing more to send: FIN goes behind what is queued. What the peer sends is still offered. */
WEFTIO_FN void tcp_close(WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 now)
{
    if (!(connection->flags & TCP_FIN_QUEUED))
        connection->progress_at = now;
    connection->flags |= TCP_FIN_QUEUED;
}
/** Ends the connection at once; tcp_output gives the RST. There is no further event. */
WEFTIO_FN void tcp_abort(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, WEFTIO_GLOBAL struct tcp_connection* connection)
{
    if (connection->state == TCP_STATE_CLOSED || connection->state == TCP_STATE_TIME_WAIT)
        return;
    if (connection->flags & TCP_KNOWN)
        ++endpoint->counters.aborted;
    connection->state = TCP_STATE_CLOSED;
    connection->flags |= TCP_REPORTED | TCP_WANTS_RESET;
    tcp_timer_stop(connection);
}

/** Position in the stream up to which the peer has acknowledged: what is before it need not be kept. */
WEFTIO_FN weftio_u32 tcp_acknowledged(const WEFTIO_GLOBAL struct tcp_connection* connection)
{
    weftio_u32 until =
        tcp_before(connection->end, connection->unacknowledged) ? connection->end : connection->unacknowledged;

    return until - connection->initial - 1;
}
/** Position in the stream after the last byte that is queued. */
WEFTIO_FN weftio_u32 tcp_queued(const WEFTIO_GLOBAL struct tcp_connection* connection)
{
    return connection->end - connection->initial - 1;
}
