/* What time does to a connection: retransmission, probes, and the ends of silent or stalled connections. */
#pragma once

#include "input.h"
#include "output.h"

/** Ends a connection that got no answer, or no progress, in time. */
WEFTIO_FN void tcp_timed_out(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                             WEFTIO_GLOBAL struct tcp_connection* connection, struct tcp_result* result)
{
    if (connection->state == TCP_STATE_SYN_RECEIVED) {
        ++endpoint->counters.syn_expired;
    } else {
        ++endpoint->counters.aborted;
        ++endpoint->counters.timed_out;
        connection->flags |= TCP_WANTS_RESET;
    }
    tcp_end(connection, TCP_EVENT_RESET, result);
}

/** Doubles the timeout and starts the timer again. Returns 0 if it was the last try. */
WEFTIO_FN weftio_u32 tcp_timer_back_off(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                        WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 now)
{
    weftio_u32 most =
        connection->state == TCP_STATE_SYN_RECEIVED ? endpoint->settings->syn_tries : endpoint->settings->tries;

    if (connection->tries >= most)
        return 0;
    ++connection->tries;
    connection->timeout = weftio_min_u32(connection->timeout * 2, endpoint->settings->longest_timeout);
    tcp_timer_start(connection, now);
    return 1;
}

/** The deadline of what is in flight, or of a closed window, has passed. */
WEFTIO_FN void tcp_timer_expired(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                 WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 now,
                                 struct tcp_result* result)
{
    if (connection->state != TCP_STATE_SYN_RECEIVED && !(connection->flags & TCP_PERSIST)) {
        ++endpoint->counters.timeouts;
        tcp_congestion_timeout(connection);
        if (connection->window == 0) /* it was taken back while data was in flight */
            connection->flags |= TCP_PERSIST;
    }
    if (!tcp_timer_back_off(endpoint, connection, now)) {
        tcp_timed_out(endpoint, connection, result);
    } else if (connection->state == TCP_STATE_SYN_RECEIVED) {
        connection->flags |= TCP_WANTS_SYN;
    } else if (connection->flags & TCP_PERSIST) {
        connection->flags |= TCP_WANTS_PROBE;
        ++endpoint->counters.window_probes;
    }
}

/** Ticks without progress after which the connection ends; 0: never. */
WEFTIO_FN weftio_u32 tcp_progress_limit(const WEFTIO_GLOBAL struct tcp_settings* settings,
                                        const WEFTIO_GLOBAL struct tcp_connection* connection)
{
    if (connection->state == TCP_STATE_SYN_RECEIVED)
        return 0; /* the tries are counted */
    if (connection->state == TCP_STATE_FIN_WAIT_2)
        return settings->fin_wait;
    if (connection->unacknowledged != connection->end || (connection->flags & TCP_FIN_QUEUED))
        return settings->stall;
    return settings->idle;
}

/** No progress for too long: an idle connection is closed, a stalled one reset. */
WEFTIO_FN void tcp_timer_no_progress(WEFTIO_GLOBAL struct tcp_endpoint* endpoint,
                                     WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 now,
                                     struct tcp_result* result)
{
    if (connection->unacknowledged == connection->end && !(connection->flags & TCP_FIN_QUEUED)) {
        ++endpoint->counters.idle_closed;
        tcp_close(connection, now);
        result->events |= TCP_EVENT_IDLE;
    } else
        tcp_timed_out(endpoint, connection, result);
}

/** Tick of the next keep-alive probe. */
WEFTIO_FN weftio_u32 tcp_keep_alive_at(const WEFTIO_GLOBAL struct tcp_settings* settings,
                                       const WEFTIO_GLOBAL struct tcp_connection* connection)
{
    return connection->heard_at + settings->keep_alive + connection->probes * settings->keep_alive_interval;
}
/** Keep-alive is for connections that wait for the peer and have nothing in flight. */
WEFTIO_FN weftio_u32 tcp_keeps_alive(const WEFTIO_GLOBAL struct tcp_settings* settings,
                                     const WEFTIO_GLOBAL struct tcp_connection* connection)
{
    return settings->keep_alive != 0 && !(connection->flags & TCP_TIMER) &&
           connection->state >= TCP_STATE_ESTABLISHED && connection->state != TCP_STATE_TIME_WAIT;
}

/** Does what is due at `now`; tcp_output then has what is to be sent. `result` is zeroed by the caller. */
WEFTIO_FN void tcp_timer(WEFTIO_GLOBAL struct tcp_endpoint* endpoint, WEFTIO_GLOBAL struct tcp_connection* connection,
                         weftio_u32 now, struct tcp_result* result)
{
    const WEFTIO_GLOBAL struct tcp_settings* settings = endpoint->settings;
    weftio_u32 limit = tcp_progress_limit(settings, connection);

    if (connection->state == TCP_STATE_CLOSED || connection->state == TCP_STATE_TIME_WAIT)
        return;
    if (limit && !tcp_before(now, connection->progress_at + limit))
        tcp_timer_no_progress(endpoint, connection, now, result);
    else if ((connection->flags & TCP_TIMER) && !tcp_before(now, connection->deadline))
        tcp_timer_expired(endpoint, connection, now, result);
    else if (tcp_keeps_alive(settings, connection) && !tcp_before(now, tcp_keep_alive_at(settings, connection))) {
        if (connection->probes >= settings->tries) {
            tcp_timed_out(endpoint, connection, result);
            return;
        }
        ++connection->probes;
        ++endpoint->counters.keep_alive_probes;
        connection->flags |= TCP_WANTS_PROBE;
    }
}

/** The earlier of two ticks, as seen from `now`. */
WEFTIO_FN weftio_u32 tcp_earlier(weftio_u32 a, weftio_u32 b)
{
    return tcp_before(a, b) ? a : b;
}
/** When tcp_timer has to run next; at the latest in half of the span that ticks can compare. */
WEFTIO_FN weftio_u32 tcp_next_deadline(const WEFTIO_GLOBAL struct tcp_settings* settings,
                                       const WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 now)
{
    weftio_u32 next = now + (1u << 30), limit = tcp_progress_limit(settings, connection);

    if (connection->flags & TCP_TIMER)
        next = tcp_earlier(next, connection->deadline);
    if (connection->wake_at)
        next = tcp_earlier(next, connection->wake_at);
    if (limit)
        next = tcp_earlier(next, connection->progress_at + limit);
    if (tcp_keeps_alive(settings, connection))
        next = tcp_earlier(next, tcp_keep_alive_at(settings, connection));
    return next;
}
