/*
 * Responses as runs of bytes: a head and a body that lie in the site's image, or in a snapshot of /stats. Any part can
 * be asked for again, for as long as the peer has not acknowledged it. Part of the kernels of weftio-packets.
 */
#pragma once

#include "kernel/http/stats.h"

/** A response under way. Its bytes are [start, start + bytes) of the connection's stream. */
struct http_response {
    weftio_u32 item;
    weftio_u32 start; /**< position in the stream, modulo 2^32 */
    weftio_u32 bytes;
    weftio_u8 variant;  /**< HTTP_CLOSING, HTTP_NOT_MODIFIED, HTTP_HEAD_ONLY */
    weftio_u8 snapshot; /**< of HTTP_STATS: http_claim_snapshot() has given it; else 0 */
    weftio_u16 padding;
};

/** Bytes that lie side by side. */
struct http_piece {
    const WEFTIO_GLOBAL weftio_u8* address;
    weftio_u32 bytes;
};

/** Head and body of a response. */
struct http_parts {
    struct http_piece head;
    struct http_piece body;
};

WEFTIO_FN struct http_parts http_parts_of(const WEFTIO_GLOBAL struct http_site* site,
                                          const WEFTIO_GLOBAL struct http_snapshots* snapshots,
                                          const WEFTIO_GLOBAL struct http_response* response)
{
    const WEFTIO_GLOBAL struct http_item* item = http_item_at(site, response->item);
    weftio_u32 which = response->variant % HTTP_HEADS;
    struct http_parts parts;

    if (response->snapshot != 0) {
        WEFTIO_GLOBAL struct http_snapshot* snapshot = http_snapshot_at(snapshots, response->snapshot - 1u);
        parts.head.address = http_snapshot_head(snapshot, which & HTTP_CLOSING);
        parts.head.bytes = snapshot->head_bytes[which & HTTP_CLOSING];
        parts.body.address = http_snapshot_body(snapshot);
        parts.body.bytes = snapshot->body_bytes;
    } else {
        parts.head.address = http_site_bytes(site, item->heads[which]);
        parts.head.bytes = item->head_bytes[which];
        parts.body.address = http_site_bytes(site, item->body);
        parts.body.bytes = item->body_bytes;
    }
    if (response->variant & (HTTP_HEAD_ONLY | HTTP_NOT_MODIFIED))
        parts.body.bytes = 0;
    return parts;
}

/**
 * Bytes of a response from `offset` on: at most `wanted`, and one at least unless the response ends there. Head and
 * body that lie side by side are one piece.
 */
WEFTIO_FN struct http_piece http_response_piece(const struct http_parts* parts, weftio_u32 offset, weftio_u32 wanted)
{
    struct http_piece piece = parts->head;

    if (offset >= piece.bytes) {
        offset -= piece.bytes;
        piece = parts->body;
    } else if (piece.address + piece.bytes == parts->body.address) {
        piece.bytes += parts->body.bytes;
    }
    if (offset > piece.bytes)
        offset = piece.bytes;
    piece.address += offset;
    piece.bytes = weftio_min_u32(piece.bytes - offset, wanted);
    return piece;
}
