/*
 * What a segment does to its connection: RFC 9293, 3.10.7.4, with RFC 5961 (blind attacks) and RFC 7323 (timestamps).
 * Nothing is kept of what arrives out of order; the peer sends it again.
 */
#pragma once

#include "congestion.h"
#include "cookie.h"

enum { TCP_CHALLENGE_TICKS = TCP_SECOND / 2 }; /* between two challenge ACKs of a connection */

/** The RST that answers a segment of no connection (RFC 9293, 3.10.7.1). */
WEFTIO_FN void tcp_answer_reset(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, const struct tcp_segment* received,
                                struct tcp_result* result)
{
    struct tcp_segment* answer = &result->answer;

    tcp_clear(answer);
    answer->source_port = received->destination_port;
    answer->destination_port = received->source_port;
    if (received->flags & TCP_ACK) {
        answer->flags = TCP_RST;
        answer->sequence = received->acknowledgment;
    } else {
        answer->flags = TCP_RST | TCP_ACK;
        answer->acknowledgment = received->sequence + received->payload_bytes + (received->flags & TCP_SYN ? 1 : 0) +
                                 (received->flags & TCP_FIN ? 1 : 0);
    }
    result->has_answer = 1;
    ++endpoint->counters.resets_sent;
}

/** Asks the peer by an ACK what is true (RFC 5961); at most once in half a second, so that two ends make no storm. */
WEFTIO_FN void tcp_challenge(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                             WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 now)
{
    if ((connection->flags & TCP_CHALLENGED) && now - connection->challenged_at < TCP_CHALLENGE_TICKS) {
        ++endpoint->counters.challenges_withheld;
        return;
    }
    connection->challenged_at = now;
    connection->flags |= TCP_CHALLENGED | TCP_WANTS_ACK;
    ++endpoint->counters.challenges_sent;
}

/** Ends a connection at once. The caller of tcp_receive or tcp_due sees the events, tcp_done frees the record. */
WEFTIO_FN void tcp_end(WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 events, struct tcp_result* result)
{
    connection->state = TCP_STATE_CLOSED;
    tcp_timer_stop(connection);
    if ((connection->flags & (TCP_KNOWN | TCP_REPORTED)) == TCP_KNOWN)
        result->events |= TCP_EVENT_CLOSED | events;
    connection->flags |= TCP_REPORTED;
}
/** Both ends have closed, and this one has to wait for late segments. */
WEFTIO_FN void tcp_enter_time_wait(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                   WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 now,
                                   struct tcp_result* result)
{
    ++endpoint->counters.closed;
    tcp_end(connection, 0, result);
    connection->state = TCP_STATE_TIME_WAIT;
    connection->heard_at = now;
}

/** PAWS (RFC 7323, 5). Returns 0 if the segment is older than what was received. */
WEFTIO_FN weftio_u32 tcp_timestamps_pass(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                         WEFTIO_GLOBAL struct tcp_connection* connection,
                                         const struct tcp_segment* received)
{
    if (!(connection->flags & TCP_TIMESTAMPS) || (received->flags & TCP_RST))
        return 1;
    if (received->has_timestamps && !tcp_before(received->ts_value, connection->ts_recent))
        return 1;
    ++endpoint->counters.old_timestamps;
    if (received->has_timestamps)
        connection->flags |= TCP_WANTS_ACK;
    return 0;
}

/** RFC 9293, 3.4: whether any of the segment lies in the window, which is what was announced at most. */
WEFTIO_FN weftio_u32 tcp_in_window(const WEFTIO_GLOBAL struct tcp_connection* connection,
                                   const struct tcp_segment* received)
{
    weftio_u32 window = connection->right_edge - connection->expected;
    weftio_u32 length =
        received->payload_bytes + (received->flags & TCP_SYN ? 1 : 0) + (received->flags & TCP_FIN ? 1 : 0);
    weftio_u32 first = received->sequence - connection->expected;

    if (length == 0)
        return window == 0 ? first == 0 : first < window;
    return window != 0 && (first < window || first + length - 1 < window ||
                           (tcp_before(received->sequence, connection->expected) &&
                            tcp_before(connection->expected, received->sequence + length)));
}

/** A segment outside the window. SYN|ACK was lost if the peer sends its SYN again. */
WEFTIO_FN void tcp_input_outside(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                 WEFTIO_GLOBAL struct tcp_connection* connection, const struct tcp_segment* received,
                                 weftio_u32 now)
{
    if (received->flags & TCP_RST)
        return;
    ++endpoint->counters.out_of_window;
    if (connection->state == TCP_STATE_SYN_RECEIVED && received->flags == TCP_SYN &&
        received->sequence == connection->expected - 1)
        connection->flags |= TCP_WANTS_SYN;
    else if (connection->state == TCP_STATE_TIME_WAIT && (received->flags & TCP_FIN)) {
        connection->heard_at = now; /* the ACK of the FIN was lost: the wait begins again */
        connection->flags |= TCP_WANTS_ACK;
    } else if (received->payload_bytes != 0 || (received->flags & TCP_FIN))
        connection->flags |= TCP_WANTS_ACK;
    else
        tcp_challenge(endpoint, connection, now);
}

/** RST in the window: only the exact sequence number ends the connection (RFC 5961, 3; TIME_WAIT: RFC 1337). */
WEFTIO_FN void tcp_input_reset(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                               WEFTIO_GLOBAL struct tcp_connection* connection, const struct tcp_segment* received,
                               weftio_u32 now, struct tcp_result* result)
{
    if (connection->state == TCP_STATE_TIME_WAIT)
        return;
    if (received->sequence != connection->expected) {
        tcp_challenge(endpoint, connection, now);
        return;
    }
    if (connection->flags & TCP_KNOWN)
        ++endpoint->counters.reset_by_peer;
    tcp_end(connection, TCP_EVENT_RESET, result);
}

/** The ACK of SYN|ACK. Returns 0 if it acknowledges something else; the answer is then RST. */
WEFTIO_FN weftio_u32 tcp_input_established(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                           WEFTIO_GLOBAL struct tcp_connection* connection,
                                           const struct tcp_segment* received, weftio_u32 now,
                                           struct tcp_result* result)
{
    if (received->acknowledgment != connection->end) {
        ++endpoint->counters.bad_acknowledgments;
        tcp_answer_reset(endpoint, received, result);
        return 0;
    }
    connection->flags |= TCP_KNOWN;
    connection->state = TCP_STATE_ESTABLISHED;
    connection->window_sequence = received->sequence;
    connection->window_acknowledgment = received->acknowledgment;
    connection->window = connection->largest_window = (weftio_u32)received->window << connection->scale;
    connection->unacknowledged = connection->next_to_send = connection->highest = connection->end;
    if (connection->tries) /* RFC 6298, 5.7 */
        connection->timeout = 3 * endpoint->settings->first_timeout;
    else if (connection->flags & TCP_HALF_OPEN) /* not of a cookie, which kept no time */
        tcp_measured(endpoint->settings, connection, now - connection->sent_at);
    if (connection->flags & TCP_HALF_OPEN)
        --endpoint->half_open;
    connection->flags &= ~(weftio_u32)(TCP_HALF_OPEN | TCP_WANTS_SYN);
    tcp_congestion_start(endpoint->settings, connection);
    connection->tries = 0;
    tcp_timer_stop(connection);
    connection->progress_at = now;
    result->events |= TCP_EVENT_ESTABLISHED;
    ++endpoint->counters.opened;
    return 1;
}

/** The round trip of what was acknowledged just now, by timestamps or by Karn's rule. */
WEFTIO_FN void tcp_input_measure(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                 WEFTIO_GLOBAL struct tcp_connection* connection, const struct tcp_segment* received,
                                 weftio_u32 now)
{
    if ((connection->flags & TCP_TIMESTAMPS) && received->ts_echo != 0) {
        tcp_measured(endpoint->settings, connection, now + connection->ts_offset - received->ts_echo);
    } else if ((connection->flags & TCP_TIMING) && !tcp_before(received->acknowledgment, connection->timed_sequence)) {
        connection->flags &= ~(weftio_u32)TCP_TIMING;
        tcp_measured(endpoint->settings, connection, now - connection->timed_at);
    }
}

/** An ACK of `bytes` more sequence numbers. */
WEFTIO_FN void tcp_input_progress(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                  WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 bytes, weftio_u32 now,
                                  struct tcp_result* result)
{
    weftio_u32 outstanding = connection->highest - connection->unacknowledged;

    connection->unacknowledged += bytes;
    if (tcp_before(connection->next_to_send, connection->unacknowledged))
        connection->next_to_send = connection->unacknowledged;
    connection->flags &= ~(weftio_u32)TCP_WANTS_RETRANSMIT;
    tcp_congestion_acknowledged(connection, bytes, outstanding);
    connection->tries = 0;
    connection->progress_at = now;
    connection->flags &= ~(weftio_u32)TCP_PERSIST;
    if (connection->unacknowledged == connection->highest)
        tcp_timer_stop(connection);
    else
        tcp_timer_start(connection, now);
    if (bytes > 1 || tcp_before(connection->unacknowledged - 1, connection->end)) {
        result->events |= TCP_EVENT_ACKNOWLEDGED;
        endpoint->counters.bytes_acknowledged += bytes - tcp_before(connection->end, connection->unacknowledged);
    }
}

/** The window that the segment announces, if it is the newest (RFC 9293, 3.10.7.4). Returns 1 if it has changed. */
WEFTIO_FN weftio_u32 tcp_input_window(const WEFTIO_GLOBAL struct tcp_settings* settings,
                                      WEFTIO_GLOBAL struct tcp_connection* connection,
                                      const struct tcp_segment* received)
{
    weftio_u32 window = (weftio_u32)received->window << connection->scale, before = connection->window;

    if (tcp_before(received->sequence, connection->window_sequence) ||
        (received->sequence == connection->window_sequence &&
         tcp_before(received->acknowledgment, connection->window_acknowledgment)))
        return 0;
    connection->window_sequence = received->sequence;
    connection->window_acknowledgment = received->acknowledgment;
    connection->window = window;
    connection->largest_window = tcp_max_u32(connection->largest_window, window);
    if (window != 0 && (connection->flags & TCP_PERSIST)) {
        tcp_timer_stop(connection);
        tcp_set_timeout(settings, connection);
        connection->tries = 0;
    }
    return window != before;
}

/** The peer has acknowledged this end's FIN. */
WEFTIO_FN void tcp_input_fin_acknowledged(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                          WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 now,
                                          struct tcp_result* result)
{
    if (connection->state == TCP_STATE_FIN_WAIT_1)
        connection->state = TCP_STATE_FIN_WAIT_2;
    else if (connection->state == TCP_STATE_CLOSING)
        tcp_enter_time_wait(endpoint, connection, now, result);
    else if (connection->state == TCP_STATE_LAST_ACK) {
        ++endpoint->counters.closed;
        tcp_end(connection, 0, result);
    }
}

/** Acknowledgment and window. Returns 0 if the segment must be dropped. */
WEFTIO_FN weftio_u32 tcp_input_acknowledgment(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                              WEFTIO_GLOBAL struct tcp_connection* connection,
                                              const struct tcp_segment* received, weftio_u32 now,
                                              struct tcp_result* result)
{
    weftio_u32 acknowledgment = received->acknowledgment, changed;

    if (tcp_before(connection->highest, acknowledgment) ||
        tcp_before(acknowledgment, connection->unacknowledged - connection->largest_window)) {
        ++endpoint->counters.bad_acknowledgments; /* RFC 5961, 5 */
        tcp_challenge(endpoint, connection, now);
        return 0;
    }
    if (tcp_before(acknowledgment, connection->unacknowledged))
        return 1; /* overtaken by a later one */
    changed = tcp_input_window(endpoint->settings, connection, received);
    if (acknowledgment != connection->unacknowledged) {
        tcp_input_measure(endpoint, connection, received, now);
        tcp_input_progress(endpoint, connection, acknowledgment - connection->unacknowledged, now, result);
        if (tcp_before(connection->end, acknowledgment))
            tcp_input_fin_acknowledged(endpoint, connection, now, result);
    } else if (!changed && received->payload_bytes == 0 && !(received->flags & TCP_FIN) &&
               connection->unacknowledged != connection->highest) {
        weftio_u32 before = connection->flags;
        tcp_congestion_duplicate(connection);
        endpoint->counters.fast_retransmits += (connection->flags & ~before & TCP_RECOVERY) != 0;
    }
    return connection->state != TCP_STATE_CLOSED;
}

/** Takes the peer's FIN, which is next in order. */
WEFTIO_FN void tcp_input_fin(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                             WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 now, struct tcp_result* result)
{
    ++connection->expected;
    connection->right_edge += connection->right_edge == connection->expected - 1;
    connection->flags |= TCP_WANTS_ACK;
    connection->progress_at = now;
    result->events |= TCP_EVENT_PEER_CLOSED;
    if (connection->state == TCP_STATE_ESTABLISHED)
        connection->state = TCP_STATE_CLOSE_WAIT;
    else if (connection->state == TCP_STATE_FIN_WAIT_1)
        connection->state = TCP_STATE_CLOSING;
    else
        tcp_enter_time_wait(endpoint, connection, now, result);
}

/** Payload and FIN: offers what is next in order and in the window to the application. */
WEFTIO_FN void tcp_input_payload(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                 WEFTIO_GLOBAL struct tcp_connection* connection, const struct tcp_segment* received,
                                 weftio_u32 now, struct tcp_result* result)
{
    weftio_u32 skipped = connection->expected - received->sequence, left, window;

    if (received->payload_bytes == 0 && !(received->flags & TCP_FIN))
        return;
    connection->flags |= TCP_WANTS_ACK;
    if (tcp_before(connection->expected, received->sequence)) {
        ++endpoint->counters.out_of_order;
        return;
    }
    if (connection->state != TCP_STATE_ESTABLISHED && connection->state != TCP_STATE_FIN_WAIT_1 &&
        connection->state != TCP_STATE_FIN_WAIT_2)
        return; /* after the peer's FIN there is nothing */
    if (skipped > received->payload_bytes)
        return;
    left = received->payload_bytes - skipped;
    window = connection->right_edge - connection->expected;
    result->payload_offset = skipped;
    result->payload_bytes = weftio_min_u32(left, window);
    result->fin = (received->flags & TCP_FIN) && left <= window;
    if (result->fin && left == 0)
        tcp_input_fin(endpoint, connection, now, result);
}

/** The newest timestamp to echo (RFC 7323, 4.3). */
WEFTIO_FN void tcp_input_timestamp(WEFTIO_GLOBAL struct tcp_connection* connection, const struct tcp_segment* received)
{
    if ((connection->flags & TCP_TIMESTAMPS) && received->has_timestamps &&
        !tcp_before(connection->last_sent_acknowledgment, received->sequence))
        connection->ts_recent = received->ts_value;
}

/** Whether a segment may go on to acknowledgment and payload; else what it asks for is noted. */
WEFTIO_FN weftio_u32 tcp_input_check(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                     WEFTIO_GLOBAL struct tcp_connection* connection,
                                     const struct tcp_segment* received, weftio_u32 now, struct tcp_result* result)
{
    if (!tcp_timestamps_pass(endpoint, connection, received))
        return 0;
    if (!tcp_in_window(connection, received)) {
        tcp_input_outside(endpoint, connection, received, now);
        return 0;
    }
    if (received->flags & TCP_RST) {
        tcp_input_reset(endpoint, connection, received, now, result);
        return 0;
    }
    if (received->flags & TCP_SYN) { /* RFC 5961, 4: a peer that has restarted answers the ACK with RST */
        tcp_challenge(endpoint, connection, now);
        return 0;
    }
    if (!(received->flags & TCP_ACK)) {
        ++endpoint->counters.bad_flags;
        return 0;
    }
    return 1;
}

/**
 * Runs the state machine for one segment of a connection. What is to be sent comes from tcp_output afterwards; only the
 * RST that answers a wrong end of a handshake is in `result`.
 *
 * @param result  zeroed by the caller; gets events, and the payload that the application is to take (tcp_take)
 */
WEFTIO_FN void tcp_input(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, WEFTIO_GLOBAL struct tcp_connection* connection,
                         const struct tcp_segment* received, weftio_u32 now, struct tcp_result* result)
{
    ++endpoint->counters.segments_received;
    if (connection->state == TCP_STATE_CLOSED) /* its RST waits for room in the send ring */
        return;
    if (!tcp_input_check(endpoint, connection, received, now, result))
        return;
    if (connection->state == TCP_STATE_SYN_RECEIVED &&
        !tcp_input_established(endpoint, connection, received, now, result))
        return;
    tcp_input_timestamp(connection, received);
    if (connection->state == TCP_STATE_TIME_WAIT)
        return;
    connection->heard_at = now;
    connection->probes = 0;
    if (connection->flags & TCP_PERSIST)
        connection->tries = 0;
    if (!tcp_input_acknowledgment(endpoint, connection, received, now, result))
        return;
    tcp_input_payload(endpoint, connection, received, now, result);
}

/**
 * The application has taken `count` of the bytes that a result offered; the rest is as if it had not arrived. Call it
 * before tcp_output whenever result->payload_bytes is not 0.
 *
 * @param window  bytes that the application can take from now on; with 0 the peer waits until tcp_window opens it
 * @param result  the one that offered the bytes; gets TCP_EVENT_PEER_CLOSED if the peer's FIN follows them
 */
WEFTIO_FN void tcp_take(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, WEFTIO_GLOBAL struct tcp_connection* connection,
                        weftio_u32 count, weftio_u32 window, weftio_u32 now, struct tcp_result* result)
{
    connection->expected += count;
    connection->receive_window = weftio_min_u32(window, endpoint->settings->receive_window);
    endpoint->counters.bytes_accepted += count;
    if (count)
        connection->progress_at = now;
    if (result->fin && count == result->payload_bytes)
        tcp_input_fin(endpoint, connection, now, result);
}

/**
 * The application can take `window` bytes again; the next tcp_output tells the peer. Call it when it is worth a
 * segment, as the peer sends small pieces otherwise.
 */
WEFTIO_FN void tcp_window(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, WEFTIO_GLOBAL struct tcp_connection* connection,
                          weftio_u32 window)
{
    connection->receive_window = weftio_min_u32(window, endpoint->settings->receive_window);
    connection->flags |= TCP_WANTS_ACK;
}
