/*
 * /stats: JSON that a kernel writes from counters, into snapshots that stay as they are while a response needs them.
 * Part of the kernels of weftio-packets.
 *
 * Snapshots belong to one block, so nothing here is locked. Responses share one: all that ask while no other is free.
 */
#pragma once

#include "kernel/http/site.h"

/** Room for the head of a snapshot, in front of its body. */
#define HTTP_STATS_HEAD 512u
/** While no snapshot is free, responses share the newest one, if it is not older. */
#define HTTP_SNAPSHOT_SHARED_NS 1000000000ull

/** Counters of all blocks: value `i` of block `b` is values[b * stride + i], in the order of the site's counters. */
struct http_values {
    const WEFTIO_GLOBAL weftio_u64* values;
    weftio_u32 blocks;
    weftio_u32 stride;
};

/** One /stats as it was at a moment; its heads and its body lie behind it. */
struct http_snapshot {
    weftio_u64 taken_ns;
    weftio_u32 users; /**< responses that need it; 0: it is free */
    weftio_u32 body_bytes;
    weftio_u32 head_bytes[2]; /**< by HTTP_CLOSING */
    weftio_u32 padding[2];
};

/** Memory for the snapshots of one block. */
struct http_snapshots {
    WEFTIO_GLOBAL weftio_u8* memory; /**< count * stride bytes, at a multiple of 8 */
    weftio_u32 stride;               /**< http_snapshot_bytes() of the site */
    weftio_u32 count;
    weftio_u32 newest; /**< number of the youngest + 1; 0: there is none yet */
    weftio_u32 padding;
};

/** Bytes of a snapshot, for the host. */
WEFTIO_FN weftio_u32 http_snapshot_bytes(const WEFTIO_GLOBAL struct http_site* site)
{
    return (weftio_u32)sizeof(struct http_snapshot) + 2 * HTTP_STATS_HEAD + ((site->stats_bytes + 63) & ~63u);
}

/** @pre number < snapshots->count */
WEFTIO_FN WEFTIO_GLOBAL struct http_snapshot* http_snapshot_at(const WEFTIO_GLOBAL struct http_snapshots* snapshots,
                                                               weftio_u32 number)
{
    return (WEFTIO_GLOBAL struct http_snapshot*)(snapshots->memory + (weftio_u64)number * snapshots->stride);
}
/** @param variant  0 or HTTP_CLOSING */
WEFTIO_FN WEFTIO_GLOBAL weftio_u8* http_snapshot_head(WEFTIO_GLOBAL struct http_snapshot* snapshot, weftio_u32 variant)
{
    return (WEFTIO_GLOBAL weftio_u8*)(snapshot + 1) + variant * HTTP_STATS_HEAD;
}
WEFTIO_FN WEFTIO_GLOBAL weftio_u8* http_snapshot_body(WEFTIO_GLOBAL struct http_snapshot* snapshot)
{
    return (WEFTIO_GLOBAL weftio_u8*)(snapshot + 1) + 2 * HTTP_STATS_HEAD;
}

/** Value `number` of all blocks. Other blocks go on counting meanwhile. */
WEFTIO_FN weftio_u64 http_value(const WEFTIO_GLOBAL struct http_values* from, weftio_u32 number, weftio_u32 kind)
{
    weftio_u64 all = 0;

    for (weftio_u32 block = 0; block < from->blocks; ++block) {
        weftio_u64 one = weftio_load_acquire_sys_u64(&from->values[(weftio_u64)block * from->stride + number]);
        if (kind == HTTP_SUM)
            all += one;
        else if (one > all)
            all = one;
    }
    return all;
}

/**
 * Writes the JSON text of /stats.
 *
 * @param[out] to  site->stats_bytes bytes
 * @return how many bytes it has
 */
WEFTIO_FN weftio_u32 http_write_stats(const WEFTIO_GLOBAL struct http_site* site,
                                      const WEFTIO_GLOBAL struct http_values* values, WEFTIO_GLOBAL weftio_u8* to)
{
    const WEFTIO_GLOBAL struct http_counter* counters =
        (const WEFTIO_GLOBAL struct http_counter*)http_site_bytes(site, site->counters);
    weftio_u32 bytes = 0;

    for (weftio_u32 i = 0;; ++i) {
        http_copy_bytes(to + bytes, http_site_bytes(site, counters[i].text), counters[i].text_bytes);
        bytes += counters[i].text_bytes;
        if (i == site->counter_count)
            return bytes;
        bytes += http_write_decimal(to + bytes, http_value(values, i, counters[i].kind));
    }
}

/** Takes a snapshot into memory that no response needs. */
WEFTIO_FN void http_take_snapshot(const WEFTIO_GLOBAL struct http_site* site,
                                  const WEFTIO_GLOBAL struct http_values* values, weftio_u64 now,
                                  WEFTIO_GLOBAL struct http_snapshot* snapshot)
{
    const WEFTIO_GLOBAL struct http_item* item = http_item_at(site, HTTP_STATS);

    snapshot->taken_ns = now;
    snapshot->body_bytes = http_write_stats(site, values, http_snapshot_body(snapshot));
    for (weftio_u32 variant = 0; variant < 2; ++variant) {
        WEFTIO_GLOBAL weftio_u8* head = http_snapshot_head(snapshot, variant);
        weftio_u32 bytes = item->head_bytes[variant];
        http_copy_bytes(head, http_site_bytes(site, item->heads[variant]), bytes);
        bytes += http_write_decimal(head + bytes, snapshot->body_bytes);
        for (weftio_u32 i = 0; i < 4; ++i)
            head[bytes++] = i & 1 ? '\n' : '\r';
        snapshot->head_bytes[variant] = bytes;
    }
}

/**
 * A snapshot for one more response: a new one, or the newest one if no other is free and it is young enough.
 *
 * @return its number + 1; 0: there is none. http_release_snapshot() returns it
 */
WEFTIO_FN weftio_u32 http_claim_snapshot(const WEFTIO_GLOBAL struct http_site* site,
                                         const WEFTIO_GLOBAL struct http_values* values, weftio_u64 now,
                                         WEFTIO_GLOBAL struct http_snapshots* snapshots)
{
    weftio_u32 number = 0;

    while (number < snapshots->count && http_snapshot_at(snapshots, number)->users != 0)
        ++number;
    if (number < snapshots->count) {
        http_take_snapshot(site, values, now, http_snapshot_at(snapshots, number));
        snapshots->newest = number + 1;
    }
    if (snapshots->newest == 0 ||
        now - http_snapshot_at(snapshots, snapshots->newest - 1)->taken_ns > HTTP_SNAPSHOT_SHARED_NS)
        return 0;
    ++http_snapshot_at(snapshots, snapshots->newest - 1)->users;
    return snapshots->newest;
}

/** A response needs a snapshot no longer. 0: it had none. */
WEFTIO_FN void http_release_snapshot(WEFTIO_GLOBAL struct http_snapshots* snapshots, weftio_u32 claimed)
{
    if (claimed != 0)
        --http_snapshot_at(snapshots, claimed - 1)->users;
}
