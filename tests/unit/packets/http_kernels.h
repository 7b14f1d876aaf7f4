/* A kernel that answers the requests of one peer, for C++ and OpenCL C. */
#pragma once

#include "kernel/http/session.h"

/**
 * Receives `count` bytes in segments of `segment_bytes`, acknowledges the ready bytes of the response after each, and
 * ends.
 *
 * @param[out] to       responses, as many bytes as fit
 * @param[out] written  bytes of the responses; whether the connection was closed; request bytes not accepted
 */
WEFTIO_KERNEL void http_converse(WEFTIO_GLOBAL struct http_worker* worker, WEFTIO_GLOBAL struct http_session* session,
                                 const WEFTIO_GLOBAL weftio_u8* bytes, weftio_u32 count, weftio_u32 segment_bytes,
                                 WEFTIO_GLOBAL weftio_u8* to, weftio_u32 room, WEFTIO_GLOBAL weftio_u32* written)
{
    weftio_u32 ready = 0;
    struct http_result result;

    if (weftio_lane() != 0)
        return;
    http_begin(session);
    written[0] = written[1] = written[2] = 0;
    for (weftio_u32 at = 0; at < count; at += segment_bytes) {
        weftio_u32 segment = weftio_min_u32(segment_bytes, count - at);
        http_take(worker, session, bytes + at, segment, 1, &result);
        written[2] += segment - result.taken;
        while (result.ready != 0) {
            ready += result.ready;
            written[1] += result.close;
            written[0] +=
                http_copy(worker, session, written[0], weftio_min_u32(ready, room) - written[0], to + written[0]);
            http_acknowledged(worker, session, ready, 1, &result);
        }
    }
    http_end(worker, session, 1, &result);
    written[1] += result.close;
    http_drop(worker, session);
}
