/*
 * What a server has to offer: one image that the host makes (site.hpp) and kernels read.
 *
 *   struct http_site        at its first byte
 *   struct http_item[]      what can be an answer: enum http_fixed first, then pages, files and redirections
 *   weftio_u32[]            hash table of paths: number of an item, 0: free
 *   struct http_counter[]   texts in front of the values of /stats, and the text behind the last
 *   texts, heads, bodies
 *
 * Part of the kernels of weftio-packets.
 */
#pragma once

#include "kernel/http/request.h"

#define HTTP_SITE_MAGIC 0x77737431u /* "wst1" */

/** Variants of an answer: bits. The lower two say which of its heads. */
#define HTTP_CLOSING 1u      /**< "Connection: close" */
#define HTTP_NOT_MODIFIED 2u /**< 304: the client has the item already */
#define HTTP_HEAD_ONLY 4u    /**< no body follows */
#define HTTP_HEADS 4u

/** Begin of the image. Offsets count from here. */
struct http_site {
    weftio_u64 bytes;         /**< of the image */
    weftio_u64 items;         /**< offset of the items */
    weftio_u64 slots;         /**< offset of the hash table */
    weftio_u64 counters;      /**< offset of the texts of /stats */
    weftio_u32 magic;         /**< HTTP_SITE_MAGIC */
    weftio_u32 item_count;    /**< fixed ones included */
    weftio_u32 slot_mask;     /**< slots of the table - 1; their number is a power of two */
    weftio_u32 longest_probe; /**< slots looked at for any path that is there */
    weftio_u32 counter_count; /**< values in /stats; there is one text more */
    weftio_u32 stats_bytes;   /**< the longest that /stats can be, without head */
};

/** One answer. Item 0 is none. */
struct http_item {
    weftio_u64 path; /**< offset; decoded, begins with '/' */
    weftio_u64 body; /**< offset */
    weftio_u64 etag; /**< 0: none, and no 304; else ETag is its 16 hexadecimal digits in quotes */
    weftio_u64 heads[HTTP_HEADS];
    weftio_u32 head_bytes[HTTP_HEADS]; /**< HTTP_STATS: up to "Content-Length: ", which the kernel completes */
    weftio_u32 body_bytes;             /**< less than 2^30 */
    weftio_u32 path_bytes;             /**< 0: is found by no path */
    weftio_u32 path_hash;              /**< http_hash() of the path */
    weftio_u32 status;
    weftio_u32 answer; /**< enum http_fixed that this path has; HTTP_FOUND: the item itself */
    weftio_u32 padding;
};

/** How values of several blocks become one. */
enum http_counter_kind { HTTP_SUM, HTTP_LARGEST };

/** A value of /stats, and the JSON text in front of it. */
struct http_counter {
    weftio_u64 text;
    weftio_u32 text_bytes;
    weftio_u32 kind; /**< enum http_counter_kind */
};

WEFTIO_STATIC_ASSERT(sizeof(struct http_site) == 56, "the host writes it");
WEFTIO_STATIC_ASSERT(sizeof(struct http_item) == 96, "the host writes it");
WEFTIO_STATIC_ASSERT(sizeof(struct http_counter) == 16, "the host writes it");

WEFTIO_FN const WEFTIO_GLOBAL weftio_u8* http_site_bytes(const WEFTIO_GLOBAL struct http_site* site, weftio_u64 offset)
{
    return (const WEFTIO_GLOBAL weftio_u8*)site + offset;
}
/** @pre number < site->item_count */
WEFTIO_FN const WEFTIO_GLOBAL struct http_item* http_item_at(const WEFTIO_GLOBAL struct http_site* site,
                                                             weftio_u32 number)
{
    return (const WEFTIO_GLOBAL struct http_item*)http_site_bytes(site, site->items) + number;
}

/** A path that is being decoded into `bytes`. */
struct http_path {
    WEFTIO_GLOBAL weftio_u8* bytes;
    weftio_u32 room;
    weftio_u32 end;     /**< bytes written */
    weftio_u32 segment; /**< where the last segment begins */
};

/** A character of a path, at *at, which moves behind it. @return 0 to 255; else enum http_fixed + 256 */
WEFTIO_FN weftio_u32 http_decode(const WEFTIO_GLOBAL weftio_u8* bytes, weftio_u32* at, weftio_u32 end)
{
    weftio_u32 c = bytes[(*at)++], high, low;

    if (c != '%')
        return c;
    if (end - *at < 2)
        return 256 + HTTP_BAD_REQUEST;
    high = http_hex(bytes[*at]);
    low = http_hex(bytes[*at + 1]);
    *at += 2;
    c = high * 16 + low;
    if (high > 15 || low > 15 || http_is_control(c))
        return 256 + HTTP_BAD_REQUEST;
    return c == '/' ? 256 + HTTP_NOT_FOUND : c; /* no name has a slash in it */
}

/** The last segment has ended: "." and ".." go (RFC 3986 5.2.4). @return 0: ".." leads out of the site */
WEFTIO_FN weftio_u32 http_end_segment(struct http_path* path)
{
    const WEFTIO_GLOBAL weftio_u8* name = path->bytes + path->segment;
    weftio_u32 length = path->end - path->segment;

    if (length == 1 && name[0] == '.')
        path->end = path->segment;
    if (length != 2 || name[0] != '.' || name[1] != '.')
        return 1;
    if (path->segment == 1)
        return 0;
    path->end = path->segment - 1;
    while (path->bytes[path->end - 1] != '/')
        --path->end;
    path->segment = path->end;
    return 1;
}

/**
 * Decodes the path at `raw`, once, and resolves dot segments, which percent-encoded dots are too.
 *
 * @return HTTP_FOUND, or the answer to a path that is wrong or leads out of the site
 */
WEFTIO_FN weftio_u32 http_decode_path(const WEFTIO_GLOBAL weftio_u8* bytes, struct http_range raw,
                                      struct http_path* path)
{
    weftio_u32 at = raw.begin + 1, c;

    if (path->room == 0)
        return HTTP_NOT_FOUND;
    path->bytes[0] = '/';
    path->end = path->segment = 1;
    while (at < raw.end) {
        weftio_u32 is_slash = bytes[at] == '/', before = path->end;
        c = http_decode(bytes, &at, raw.end);
        if (c > 255)
            return c - 256;
        if (is_slash && !http_end_segment(path))
            return HTTP_BAD_REQUEST;
        if (is_slash && path->end != before)
            continue; /* a dot segment has gone, with the slash behind it */
        if (path->end == path->room)
            return HTTP_NOT_FOUND;
        path->bytes[path->end++] = (weftio_u8)c;
        if (is_slash)
            path->segment = path->end;
    }
    return http_end_segment(path) ? HTTP_FOUND : HTTP_BAD_REQUEST;
}

/** Item of a decoded path, or HTTP_NOT_FOUND. */
WEFTIO_FN weftio_u32 http_look_up(const WEFTIO_GLOBAL struct http_site* site, const WEFTIO_GLOBAL weftio_u8* path,
                                  weftio_u32 bytes, weftio_u32 hash)
{
    const WEFTIO_GLOBAL weftio_u32* slots = (const WEFTIO_GLOBAL weftio_u32*)http_site_bytes(site, site->slots);

    for (weftio_u32 probe = 0; probe < site->longest_probe; ++probe) {
        weftio_u32 number = slots[(hash + probe) & site->slot_mask];
        const WEFTIO_GLOBAL struct http_item* item = http_item_at(site, number);
        if (number == 0)
            return HTTP_NOT_FOUND;
        if (item->path_hash == hash && item->path_bytes == bytes &&
            http_equal(http_site_bytes(site, item->path), path, bytes))
            return item->answer == HTTP_FOUND ? number : item->answer;
    }
    return HTTP_NOT_FOUND;
}

/**
 * The item that a request's path names.
 *
 * @param raw      as http_request has it
 * @param scratch  where paths with '%' or a segment that begins with '.' are decoded
 * @return number of the item, HTTP_NOT_FOUND or HTTP_BAD_REQUEST
 */
WEFTIO_FN weftio_u32 http_find(const WEFTIO_GLOBAL struct http_site* site, const WEFTIO_GLOBAL weftio_u8* bytes,
                               struct http_range raw, WEFTIO_GLOBAL weftio_u8* scratch, weftio_u32 scratch_bytes)
{
    struct http_path path = {scratch, scratch_bytes, 0, 0};
    weftio_u32 hash = HTTP_HASH_BEGIN, plain = raw.begin < raw.end, answer;

    for (weftio_u32 i = raw.begin; i < raw.end && plain; ++i) {
        hash = http_hash(hash, bytes[i]);
        plain = bytes[i] != '%' && (bytes[i] != '/' || i + 1 == raw.end || bytes[i + 1] != '.');
    }
    if (plain)
        return http_look_up(site, bytes + raw.begin, raw.end - raw.begin, hash);
    answer = http_decode_path(bytes, raw, &path);
    if (answer != HTTP_FOUND)
        return answer;
    hash = HTTP_HASH_BEGIN;
    for (weftio_u32 i = 0; i < path.end; ++i)
        hash = http_hash(hash, path.bytes[i]);
    return http_look_up(site, path.bytes, path.end, hash);
}

/** `value` of If-None-Match names `etag`, weakly or not, or any ("*"). */
WEFTIO_FN weftio_u32 http_matches(const WEFTIO_GLOBAL weftio_u8* bytes, struct http_range value, weftio_u64 etag)
{
    struct http_range element;

    while (http_next_element(bytes, &value, &element)) {
        weftio_u64 number = 0;
        weftio_u32 digits = 0;
        if (element.end - element.begin == 1 && bytes[element.begin] == '*')
            return 1;
        if (element.end - element.begin == 20 && bytes[element.begin] == 'W' && bytes[element.begin + 1] == '/')
            element.begin += 2;
        if (element.end - element.begin != 18 || bytes[element.begin] != '"' || bytes[element.end - 1] != '"')
            continue;
        while (digits < 16 && http_hex(bytes[element.begin + 1 + digits]) < 16)
            number = number << 4 | http_hex(bytes[element.begin + 1 + digits++]);
        if (digits == 16 && number == etag)
            return 1;
    }
    return 0;
}
