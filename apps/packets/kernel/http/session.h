/*
 * One connection's side of HTTP: bytes that TCP has accepted in order go in, responses come out as positions of a
 * stream. Part of the kernels of weftio-packets.
 *
 *   http_begin()         the connection is established
 *   http_take()          bytes have come; pipelined requests are answered in order
 *   http_end()           the peer sends no more
 *   http_copy()          bytes of the response stream, for a segment that TCP sends or sends again;
 *   http_piece_at()      the same where they lie, without a copy
 *   http_acknowledged()  the peer has them; requests that waited go on
 *   http_expire()        a request is not complete by http_deadline(): 408
 *   http_drop()          the connection is gone
 *
 * Those that may answer fill struct http_result: TCP gets `ready` more bytes to send, and FIN behind them with `close`.
 * One lane calls all of them for the sessions of its block; nothing blocks, and no loop is longer than the bytes given
 * and the buffer of one request together.
 */
#pragma once

#include "kernel/bytes.h"
#include "kernel/http/response.h"

/** Responses under way in one connection; requests behind them wait. */
#define HTTP_PIPELINE 4u
/** While so many bytes are under way, requests wait. Positions in the stream stay within 2^31 of each other. */
#define HTTP_MOST_UNDER_WAY 0x40000000u

/** A connection. All zeros: new. */
struct http_session {
    struct http_response responses[HTTP_PIPELINE]; /**< a ring */
    weftio_u64 since_ns;                           /**< when a request began that is not complete; 0: there is none */
    struct http_scan scan;                         /**< of the request that is not complete */
    weftio_u32 queued;                             /**< position behind the last response */
    weftio_u32 body_left;                          /**< bytes of a request's body that are still to be skipped */
    weftio_u32 buffer;                             /**< number of the request buffer + 1; 0: none */
    weftio_u16 begin;                              /**< bytes [begin, end) of the buffer wait */
    weftio_u16 end;
    weftio_u8 first;  /**< oldest of the responses */
    weftio_u8 count;  /**< responses under way */
    weftio_u8 closed; /**< what comes is thrown away */
    weftio_u8 ended;  /**< the peer sends no more */
    weftio_u32 padding;
};

WEFTIO_STATIC_ASSERT(sizeof(struct http_session) == 104, "there is one for each connection");

/** What the sessions of a block share. The host fills it in; sessions of other blocks must not use it. */
struct http_worker {
    const WEFTIO_GLOBAL struct http_site* site;
    struct http_limits limits;
    struct http_values values;
    struct http_snapshots snapshots;        /**< at most 255, all with `users` 0 */
    WEFTIO_GLOBAL weftio_u8* path;          /**< limits.target_bytes bytes */
    WEFTIO_GLOBAL weftio_u8* buffers;       /**< buffer_count times limits.head_bytes bytes */
    WEFTIO_GLOBAL weftio_u32* free_buffers; /**< numbers of those that are free: buffer_count entries, all at first */
    weftio_u32 buffer_count;
    weftio_u32 free_count; /**< buffer_count at first */
};

WEFTIO_STATIC_ASSERT(sizeof(struct http_worker) == 104, "the host fills it in");

/** What a call has done. */
struct http_result {
    weftio_u32 taken;    /**< of the bytes given. The others are not kept: TCP must not acknowledge them */
    weftio_u32 ready;    /**< response bytes that became ready: for TCP to send */
    weftio_u32 close;    /**< 1: FIN behind them. Once in a connection */
    weftio_u32 answered; /**< requests */
    weftio_u32 refused;  /**< of these, by a status from 400 on */
};

WEFTIO_FN void http_begin(WEFTIO_GLOBAL struct http_session* session)
{
    WEFTIO_GLOBAL weftio_u8* bytes = (WEFTIO_GLOBAL weftio_u8*)session;

    for (weftio_u32 i = 0; i < sizeof *session; ++i)
        bytes[i] = 0;
}

WEFTIO_FN WEFTIO_GLOBAL weftio_u8* http_buffer_of(const WEFTIO_GLOBAL struct http_worker* worker,
                                                  const WEFTIO_GLOBAL struct http_session* session)
{
    return worker->buffers + (weftio_u64)(session->buffer - 1) * worker->limits.head_bytes;
}

/** Returns the request buffer, with what is in it. */
WEFTIO_FN void http_free_buffer(WEFTIO_GLOBAL struct http_worker* worker, WEFTIO_GLOBAL struct http_session* session)
{
    if (session->buffer != 0)
        worker->free_buffers[worker->free_count++] = session->buffer - 1;
    session->buffer = 0;
    session->begin = session->end = 0;
}

/** Keeps as many bytes as there is room for, behind those that wait. @return how many; 0: no buffer is free, too */
WEFTIO_FN weftio_u32 http_keep(WEFTIO_GLOBAL struct http_worker* worker, WEFTIO_GLOBAL struct http_session* session,
                               const WEFTIO_GLOBAL weftio_u8* bytes, weftio_u32 count)
{
    WEFTIO_GLOBAL weftio_u8* buffer;

    if (count == 0 || (session->buffer == 0 && worker->free_count == 0))
        return 0;
    if (session->buffer == 0)
        session->buffer = worker->free_buffers[--worker->free_count] + 1;
    buffer = http_buffer_of(worker, session);
    if (session->begin > 0 && count > worker->limits.head_bytes - session->end) {
        http_copy_bytes(buffer, buffer + session->begin, session->end - session->begin);
        session->end = (weftio_u16)(session->end - session->begin);
        session->begin = 0;
    }
    count = weftio_min_u32(count, worker->limits.head_bytes - session->end);
    http_copy_bytes(buffer + session->end, bytes, count);
    session->end = (weftio_u16)(session->end + count);
    return count;
}

/** Throws away the first `count` bytes that wait. */
WEFTIO_FN void http_consume(WEFTIO_GLOBAL struct http_worker* worker, WEFTIO_GLOBAL struct http_session* session,
                            weftio_u32 count)
{
    session->begin = (weftio_u16)(session->begin + count);
    if (session->begin == session->end)
        http_free_buffer(worker, session);
}

/** No request is read any more, and FIN follows what is ready. */
WEFTIO_FN void http_close(WEFTIO_GLOBAL struct http_worker* worker, WEFTIO_GLOBAL struct http_session* session,
                          struct http_result* result)
{
    http_free_buffer(worker, session);
    session->closed = 1;
    session->since_ns = 0;
    result->close = 1;
}

/** A response joins those under way. @pre session->count < HTTP_PIPELINE */
WEFTIO_FN void http_respond(WEFTIO_GLOBAL struct http_worker* worker, WEFTIO_GLOBAL struct http_session* session,
                            weftio_u32 item, weftio_u32 variant, weftio_u64 now, struct http_result* result)
{
    WEFTIO_GLOBAL struct http_response* response =
        &session->responses[(session->first + session->count++) % HTTP_PIPELINE];
    struct http_parts parts;

    response->snapshot = 0;
    if (item == HTTP_STATS)
        response->snapshot = (weftio_u8)http_claim_snapshot(worker->site, &worker->values, now, &worker->snapshots);
    response->item = item == HTTP_STATS && response->snapshot == 0 ? (weftio_u32)HTTP_UNAVAILABLE : item;
    response->variant = (weftio_u8)variant;
    response->start = session->queued;
    parts = http_parts_of(worker->site, &worker->snapshots, response);
    response->bytes = parts.head.bytes + parts.body.bytes;
    session->queued += response->bytes;
    result->ready += response->bytes;
    ++result->answered;
    result->refused += http_item_at(worker->site, response->item)->status >= 400;
}

/** Answers the request whose head http_scan_head() has found at `bytes`. */
WEFTIO_FN void http_answer(WEFTIO_GLOBAL struct http_worker* worker, WEFTIO_GLOBAL struct http_session* session,
                           const WEFTIO_GLOBAL weftio_u8* bytes, const struct http_request* request, weftio_u64 now,
                           struct http_result* result)
{
    const WEFTIO_GLOBAL struct http_site* site = worker->site;
    weftio_u32 number = request->answer;
    weftio_u32 variant = (request->close ? HTTP_CLOSING : 0) | (request->head_only ? HTTP_HEAD_ONLY : 0);
    weftio_u64 etag;

    if (number == HTTP_FOUND)
        number = http_find(site, bytes, request->path, worker->path, worker->limits.target_bytes);
    etag = http_item_at(site, number)->etag;
    if (etag != 0 && http_matches(bytes, request->none_match, etag))
        variant |= HTTP_NOT_MODIFIED;
    http_respond(worker, session, number, variant, now, result);
    session->body_left = request->close ? 0 : request->body_bytes;
}

/**
 * Reads one request from the `count` bytes at `bytes`, where the last call stopped, and answers it.
 *
 * @return bytes of the request; 0: it is not complete
 */
WEFTIO_FN weftio_u32 http_read(WEFTIO_GLOBAL struct http_worker* worker, WEFTIO_GLOBAL struct http_session* session,
                               const WEFTIO_GLOBAL weftio_u8* bytes, weftio_u32 count, weftio_u64 now,
                               struct http_result* result)
{
    const struct http_scan none = {0, 0, 0, 0, 0, 0};
    struct http_scan scan = session->scan;
    struct http_request request;
    weftio_u32 scanned = http_scan_head(bytes, count, &worker->limits, &scan);

    if (scanned == HTTP_SCAN_MORE) {
        session->scan = scan;
        return 0;
    }
    session->scan = none;
    session->since_ns = 0;
    http_parse(bytes, &scan, scanned, &worker->limits, &request);
    http_answer(worker, session, bytes, &request, now, result);
    if (request.close)
        http_close(worker, session, result);
    return scan.bytes;
}

/** No response can join those under way. */
WEFTIO_FN weftio_u32 http_is_full(const WEFTIO_GLOBAL struct http_session* session)
{
    weftio_u32 oldest = session->responses[session->first].start;

    return session->count == HTTP_PIPELINE || (session->count != 0 && session->queued - oldest >= HTTP_MOST_UNDER_WAY);
}

/** Skips what has come of a request's body. @return bytes of the `count` new ones; those that wait come first */
WEFTIO_FN weftio_u32 http_skip_body(WEFTIO_GLOBAL struct http_worker* worker,
                                    WEFTIO_GLOBAL struct http_session* session, weftio_u32 count)
{
    weftio_u32 waiting = weftio_min_u32(session->body_left, session->end - session->begin);
    weftio_u32 fresh = weftio_min_u32(session->body_left - waiting, count);

    if (session->body_left == 0)
        return 0;
    http_consume(worker, session, waiting);
    session->body_left -= waiting + fresh;
    if (session->body_left == 0)
        session->since_ns = 0;
    return fresh;
}

/**
 * Reads the next request: from the buffer if bytes wait there, which `bytes` join; else from `bytes` themselves.
 *
 * @param[out] taken  of the `count` new bytes
 * @return 0: it is not complete
 */
WEFTIO_FN weftio_u32 http_advance(WEFTIO_GLOBAL struct http_worker* worker, WEFTIO_GLOBAL struct http_session* session,
                                  struct http_piece fresh, weftio_u64 now, weftio_u32* taken,
                                  struct http_result* result)
{
    const struct http_scan none = {0, 0, 0, 0, 0, 0};
    weftio_u32 consumed;

    if (session->buffer != 0) {
        *taken = http_keep(worker, session, fresh.address, fresh.bytes);
        consumed = http_read(worker, session, http_buffer_of(worker, session) + session->begin,
                             (weftio_u32)(session->end - session->begin), now, result);
        if (consumed != 0 && session->buffer != 0) /* it is free already if the connection closes */
            http_consume(worker, session, consumed);
        return consumed;
    }
    consumed = http_read(worker, session, fresh.address, fresh.bytes, now, result);
    *taken = consumed != 0 ? consumed : http_keep(worker, session, fresh.address, fresh.bytes);
    if (*taken == 0)
        session->scan = none; /* they come again */
    return consumed;
}

/** Reads requests until bytes are missing or responses must be acknowledged first. */
WEFTIO_FN void http_run(WEFTIO_GLOBAL struct http_worker* worker, WEFTIO_GLOBAL struct http_session* session,
                        struct http_piece fresh, weftio_u64 now, struct http_result* result)
{
    weftio_u32 complete = 1;

    while (complete && !session->closed) {
        weftio_u32 taken = http_skip_body(worker, session, fresh.bytes);
        fresh.address += taken;
        fresh.bytes -= taken;
        if ((session->buffer == 0 && fresh.bytes == 0) || http_is_full(session))
            break;
        complete = http_advance(worker, session, fresh, now, &taken, result);
        fresh.address += taken;
        fresh.bytes -= taken;
    }
    if (!session->closed)
        fresh.bytes -= http_keep(worker, session, fresh.address, fresh.bytes);
    else
        fresh.bytes = 0;
    result->taken -= fresh.bytes;
    if (session->closed || (session->buffer != 0 && http_is_full(session)))
        return;
    if (session->ended)
        http_close(worker, session, result);
    else if (session->since_ns == 0 && (session->buffer != 0 || session->body_left != 0))
        session->since_ns = now;
}

/**
 * Bytes that the peer has sent, in order: the next `count` after those taken before.
 *
 * @param now  any clock in nanoseconds, not 0; the same for all calls
 */
WEFTIO_FN void http_take(WEFTIO_GLOBAL struct http_worker* worker, WEFTIO_GLOBAL struct http_session* session,
                         const WEFTIO_GLOBAL weftio_u8* bytes, weftio_u32 count, weftio_u64 now,
                         struct http_result* result)
{
    const struct http_result none = {0, 0, 0, 0, 0};
    struct http_piece fresh;

    fresh.address = bytes;
    fresh.bytes = count;
    *result = none;
    result->taken = count;
    http_run(worker, session, fresh, now, result);
}

/** The peer sends no more: FIN. Complete requests are answered, then the connection closes. */
WEFTIO_FN void http_end(WEFTIO_GLOBAL struct http_worker* worker, WEFTIO_GLOBAL struct http_session* session,
                        weftio_u64 now, struct http_result* result)
{
    session->ended = 1;
    http_take(worker, session, worker->buffers, 0, now, result);
}

/**
 * The peer has acknowledged the response stream up to `position`, modulo 2^32. A position that is not that of a byte
 * under way, or of the one behind them, changes nothing.
 */
WEFTIO_FN void http_acknowledged(WEFTIO_GLOBAL struct http_worker* worker, WEFTIO_GLOBAL struct http_session* session,
                                 weftio_u32 position, weftio_u64 now, struct http_result* result)
{
    const struct http_result none = {0, 0, 0, 0, 0};

    while (session->count != 0) {
        const WEFTIO_GLOBAL struct http_response* oldest = &session->responses[session->first];
        if (position - oldest->start > session->queued - oldest->start || position - oldest->start < oldest->bytes)
            break;
        http_release_snapshot(&worker->snapshots, oldest->snapshot);
        session->first = (weftio_u8)((session->first + 1) % HTTP_PIPELINE);
        --session->count;
    }
    *result = none;
    if (session->buffer != 0 || session->ended)
        http_take(worker, session, worker->buffers, 0, now, result);
}

/** When http_expire() is to be called, in the clock of `now`. 0: no request is incomplete. */
WEFTIO_FN weftio_u64 http_deadline(const WEFTIO_GLOBAL struct http_worker* worker,
                                   const WEFTIO_GLOBAL struct http_session* session)
{
    return session->since_ns != 0 ? session->since_ns + worker->limits.request_ns : 0;
}

/** A request is not complete by its deadline: 408, or no answer if only its body is missing. The connection closes. */
WEFTIO_FN void http_expire(WEFTIO_GLOBAL struct http_worker* worker, WEFTIO_GLOBAL struct http_session* session,
                           weftio_u64 now, struct http_result* result)
{
    const struct http_result none = {0, 0, 0, 0, 0};

    *result = none;
    if (session->since_ns == 0 || now < http_deadline(worker, session))
        return;
    if (session->body_left == 0 && !http_is_full(session))
        http_respond(worker, session, HTTP_REQUEST_TIMEOUT, HTTP_CLOSING, now, result);
    http_close(worker, session, result);
}

/** The connection is gone, whatever it was at. */
WEFTIO_FN void http_drop(WEFTIO_GLOBAL struct http_worker* worker, WEFTIO_GLOBAL struct http_session* session)
{
    for (weftio_u32 i = 0; i < session->count; ++i)
        http_release_snapshot(&worker->snapshots, session->responses[(session->first + i) % HTTP_PIPELINE].snapshot);
    http_free_buffer(worker, session);
    http_begin(session);
}

/** How many bytes the next http_take() takes at least: what TCP may offer as a window. */
WEFTIO_FN weftio_u32 http_room(const WEFTIO_GLOBAL struct http_worker* worker,
                               const WEFTIO_GLOBAL struct http_session* session)
{
    weftio_u32 waiting = (weftio_u32)(session->end - session->begin);

    if (session->closed)
        return 65535;
    if (session->buffer == 0 && worker->free_count == 0)
        return session->body_left;
    return session->body_left + worker->limits.head_bytes - waiting;
}

/**
 * Bytes of the response stream from `position` on, where they lie: at most `wanted`, and one at least if they are under
 * way. They may end earlier, where the next ones lie elsewhere.
 *
 * @return bytes 0: `position` is acknowledged, or not ready
 */
WEFTIO_FN struct http_piece http_piece_at(const WEFTIO_GLOBAL struct http_worker* worker,
                                          const WEFTIO_GLOBAL struct http_session* session, weftio_u32 position,
                                          weftio_u32 wanted)
{
    struct http_piece piece = {0, 0};

    for (weftio_u32 i = 0; i < session->count; ++i) {
        const WEFTIO_GLOBAL struct http_response* response = &session->responses[(session->first + i) % HTTP_PIPELINE];
        struct http_parts parts;
        if (position - response->start >= response->bytes)
            continue;
        parts = http_parts_of(worker->site, &worker->snapshots, response);
        return http_response_piece(&parts, position - response->start, wanted);
    }
    return piece;
}

/** Copies bytes [position, position + count) of the response stream. @return how many were under way */
WEFTIO_FN weftio_u32 http_copy(const WEFTIO_GLOBAL struct http_worker* worker,
                               const WEFTIO_GLOBAL struct http_session* session, weftio_u32 position, weftio_u32 count,
                               WEFTIO_GLOBAL weftio_u8* to)
{
    weftio_u32 copied = 0;

    while (copied < count) {
        struct http_piece piece = http_piece_at(worker, session, position + copied, count - copied);
        if (piece.bytes == 0)
            break;
        bytes_copy(to + copied, piece.address, piece.bytes);
        copied += piece.bytes;
    }
    return copied;
}
