/* How much may be in flight, and when what is in flight counts as lost: RFC 5681, 6298, 6582, 6928. */
#pragma once

#include "connection.h"

enum { TCP_LARGEST_CONGESTION_WINDOW = 1 << 30 };

WEFTIO_FN weftio_u32 tcp_in_flight(const WEFTIO_GLOBAL struct tcp_connection* connection)
{
    return connection->next_to_send - connection->unacknowledged;
}

/** The initial window; one segment after SYN|ACK was lost more than once. */
WEFTIO_FN void tcp_congestion_start(const WEFTIO_GLOBAL struct tcp_settings* settings,
                                    WEFTIO_GLOBAL struct tcp_connection* connection)
{
    connection->congestion_window = connection->mss * (connection->tries > 1 ? 1 : settings->initial_segments);
    connection->threshold = TCP_LARGEST_CONGESTION_WINDOW;
    connection->recover = connection->initial;
}

/** Half of what is in flight, at least two segments. */
WEFTIO_FN void tcp_congestion_halve(WEFTIO_GLOBAL struct tcp_connection* connection)
{
    weftio_u32 outstanding = connection->highest - connection->unacknowledged;

    connection->threshold = tcp_max_u32(outstanding / 2, 2u * connection->mss);
}

/** Enters fast recovery (RFC 6582, 3.2 step 2): three duplicates say that one segment was lost. */
WEFTIO_FN void tcp_congestion_recover(WEFTIO_GLOBAL struct tcp_connection* connection)
{
    tcp_congestion_halve(connection);
    connection->congestion_window = connection->threshold + 3u * connection->mss;
    connection->recover = connection->highest;
    connection->flags |= TCP_RECOVERY | TCP_WANTS_RETRANSMIT;
    connection->flags &= ~(weftio_u32)TCP_TIMING;
}

/** `bytes` were acknowledged in recovery: all that was in flight when it began, or a part, whose end is lost too. */
WEFTIO_FN void tcp_congestion_partial(WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 bytes)
{
    if (!tcp_before(connection->unacknowledged, connection->recover)) {
        weftio_u32 outstanding = connection->highest - connection->unacknowledged;
        connection->congestion_window =
            weftio_min_u32(connection->threshold, tcp_max_u32(outstanding, connection->mss) + connection->mss);
        connection->flags &= ~(weftio_u32)TCP_RECOVERY;
        connection->duplicates = 0;
        return;
    }
    connection->flags |= TCP_WANTS_RETRANSMIT;
    connection->congestion_window -= weftio_min_u32(bytes, connection->congestion_window - connection->mss);
    if (bytes >= connection->mss)
        connection->congestion_window += connection->mss;
}

/** `bytes` were acknowledged for the first time, of `in_flight` that were then in flight. */
WEFTIO_FN void tcp_congestion_acknowledged(WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 bytes,
                                           weftio_u32 in_flight)
{
    weftio_u32 window = connection->congestion_window;

    if (connection->flags & TCP_RECOVERY) {
        tcp_congestion_partial(connection, bytes);
        return;
    }
    connection->duplicates = 0;
    if (in_flight < window / 2) /* the application limits it, so that nothing was learned about the path */
        return;
    if (window < connection->threshold)
        window += weftio_min_u32(bytes, 2u * connection->mss); /* RFC 3465 with L = 2 */
    else
        window += tcp_max_u32((weftio_u32)connection->mss * weftio_min_u32(bytes, connection->mss) / window, 1);
    connection->congestion_window = weftio_min_u32(window, TCP_LARGEST_CONGESTION_WINDOW);
}

/** A duplicate ACK arrived: one segment has left the network. */
WEFTIO_FN void tcp_congestion_duplicate(WEFTIO_GLOBAL struct tcp_connection* connection)
{
    if (connection->duplicates < 255)
        ++connection->duplicates;
    if (connection->flags & TCP_RECOVERY) {
        connection->congestion_window =
            weftio_min_u32(connection->congestion_window + connection->mss, TCP_LARGEST_CONGESTION_WINDOW);
    } else if (connection->duplicates == 3 && tcp_before(connection->recover, connection->unacknowledged)) {
        tcp_congestion_recover(connection);
    }
}

/** Nothing was acknowledged in time: all is sent again from `unacknowledged` on, one segment at first. */
WEFTIO_FN void tcp_congestion_timeout(WEFTIO_GLOBAL struct tcp_connection* connection)
{
    if (connection->tries == 0)
        tcp_congestion_halve(connection);
    connection->congestion_window = connection->mss;
    connection->recover = connection->highest;
    connection->next_to_send = connection->unacknowledged;
    connection->duplicates = 0;
    connection->flags &= ~(weftio_u32)(TCP_RECOVERY | TCP_TIMING | TCP_WANTS_RETRANSMIT);
}

/** Where sending must stop: both windows, and one segment more for each of the first two duplicates (RFC 3042). */
WEFTIO_FN weftio_u32 tcp_sendable(const WEFTIO_GLOBAL struct tcp_connection* connection)
{
    weftio_u32 limit = connection->congestion_window;

    if (!(connection->flags & TCP_RECOVERY))
        limit += weftio_min_u32(connection->duplicates, 2) * connection->mss;
    return weftio_min_u32(limit, connection->window);
}

/** The timeout without backoff (RFC 6298, 2.1-2.3). */
WEFTIO_FN void tcp_set_timeout(const WEFTIO_GLOBAL struct tcp_settings* settings,
                               WEFTIO_GLOBAL struct tcp_connection* connection)
{
    connection->timeout = connection->smoothed / 8 + tcp_max_u32(connection->variation, 1);
    connection->timeout =
        weftio_min_u32(tcp_max_u32(connection->timeout, settings->least_timeout), settings->longest_timeout);
    if (connection->smoothed == 0)
        connection->timeout = settings->first_timeout;
}

/** Takes a round trip of `ticks` into account and sets the timeout anew (RFC 6298, 2). */
WEFTIO_FN void tcp_measured(const WEFTIO_GLOBAL struct tcp_settings* settings,
                            WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 ticks)
{
    if (ticks > settings->longest_timeout)
        return; /* an echo that is not of a timestamp sent in this connection */
    if (connection->smoothed == 0) {
        connection->smoothed = (ticks ? ticks : 1) * 8;
        connection->variation = ticks * 2;
    } else {
        weftio_u32 mean = connection->smoothed / 8;
        weftio_u32 error = ticks > mean ? ticks - mean : mean - ticks;
        connection->variation = connection->variation - connection->variation / 4 + error;
        connection->smoothed = tcp_max_u32(connection->smoothed - mean + ticks, 8);
    }
    tcp_set_timeout(settings, connection);
}

/** (Re)starts the timer of what is in flight, or of the closed window. */
WEFTIO_FN void tcp_timer_start(WEFTIO_GLOBAL struct tcp_connection* connection, weftio_u32 now)
{
    connection->flags |= TCP_TIMER;
    connection->deadline = now + connection->timeout;
}
WEFTIO_FN void tcp_timer_stop(WEFTIO_GLOBAL struct tcp_connection* connection)
{
    connection->flags &= ~(weftio_u32)(TCP_TIMER | TCP_PERSIST);
}
