/*
 * Kernels of the benchmark of GPU-initiated communication: all-to-all and transposition. A block is an end; ends
 * exchange bytes in lockstep, and behind them a number that the peer waits for. There are two buffers of everything: an
 * iteration writes one while the NIC and the peer may still read the other.
 */
#pragma once

#include "initiated/post.h"

#define INITIATED_MOST_ENDS 16u
#define INITIATED_ORDER 1024u /* rows and columns of the matrix */

/* What all ends have in common. */
struct initiated_exchange_plan {
    weftio_u32 ends;       /* at most INITIATED_MOST_ENDS */
    weftio_u32 iterations; /* beside the first, which is not measured */
    weftio_u32 bytes;      /* of a piece, a multiple of 4; all-to-all only */
    weftio_u32 stride;     /* distance of the two buffers of a piece; all-to-all only */
    weftio_u32 first;      /* end of block 0: a kernel on a second device has the rest of the ends */
};

/* What an end has done. A line each. */
struct initiated_exchange_result {
    weftio_u64 begin_ns, end_ns;
    weftio_s32 status;
    weftio_u32 iterations;
    weftio_u32 reserved[10];
};
WEFTIO_STATIC_ASSERT(sizeof(struct initiated_exchange_result) == 64, "host and device share this layout");

/* Word `word` of the piece of `from` for `to` in an iteration. */
WEFTIO_FN weftio_u32 initiated_piece_word(weftio_u32 from, weftio_u32 to, weftio_u32 iteration, weftio_u32 word)
{
    return (iteration + 1) * 0x9e3779b1u ^ (from << 24 | to << 16 | word);
}

/* Waits until the peer's number is `value` or more. */
WEFTIO_FN weftio_s32 initiated_wait_number(const WEFTIO_GLOBAL weftio_u8* number, weftio_u64 value,
                                           const WEFTIO_GLOBAL struct weftio_dev_clock* clock)
{
    const weftio_u64 begin_ns = weftio_dev_clock_ns(clock);

    for (weftio_u32 attempt = 0;; ++attempt) {
        /* Acquire, pairs with the NIC's release: the bytes behind which the number was written are visible. */
        if (weftio_load_acquire_sys_u64((const WEFTIO_GLOBAL weftio_u64*)number) >= value)
            return WEFTIO_DEV_OK;
        if (weftio_dev_clock_ns(clock) - begin_ns >= INITIATED_PATIENCE_NS)
            return WEFTIO_DEV_TIMEOUT;
        weftio_relax(attempt);
    }
}

/* The way from one end to another. Ways to itself are not used. */
WEFTIO_FN weftio_u32 initiated_way_number(struct initiated_exchange_plan plan, weftio_u32 from, weftio_u32 to)
{
    return from * plan.ends + to;
}

/* Bytes of a way of all-to-all: two buffers, and the number on a line of its own. */
WEFTIO_FN weftio_u32 initiated_piece_area(struct initiated_exchange_plan plan)
{
    return 2 * plan.stride + 64;
}

/*
 * Posts the two WRITEs of a lane: its piece, and behind it the number. If the kernel posts, each lane uses a queue of
 * its own; for a proxy, all lanes use the ring of the block.
 *
 * @param sends  the lane has a peer; `rank` counts those lanes
 */
WEFTIO_FN weftio_s32 initiated_post_piece(const WEFTIO_GLOBAL struct initiated_way* way,
                                          const WEFTIO_GLOBAL struct weftio_dev_clock* clock,
                                          struct initiated_exchange_plan plan, struct initiated_place* place,
                                          weftio_u32 iteration, weftio_u32 sends, weftio_u32 rank,
                                          WEFTIO_GLOBAL weftio_u32* scratch)
{
    const weftio_u32 offset = iteration % 2 * plan.stride;
    const struct initiated_write piece = initiated_write_of(way->number, offset, plan.bytes, offset);
    const struct initiated_write number = initiated_write_value(way->number, 2 * plan.stride, iteration + 1);
    const weftio_u32 owns = way->queue ? sends : weftio_lane() == 0, count = way->queue ? 2 : 2 * (plan.ends - 1);
    weftio_s32 status = owns ? initiated_wait(way, clock, place, way->depth - count) : WEFTIO_DEV_OK;

    if (!way->queue) /* also a barrier: lane 0 has found room */
        status = -(weftio_s32)weftio_block_first_u64((weftio_u32)-status, scratch);
    const weftio_u32 position = place->position + (way->queue ? 0 : 2 * rank);
    if (status == WEFTIO_DEV_OK && sends)
        status = initiated_put(way, position, piece);
    if (status == WEFTIO_DEV_OK && sends)
        status = initiated_put(way, position + 1, number);
    if (!way->queue)
        weftio_block_barrier();
    if (status == WEFTIO_DEV_OK && owns)
        return initiated_submit(way, place, count);
    place->position += count;
    return status;
}

/*
 * All-to-all: each end sends a piece to each other end, again and again. A lane for each peer.
 *
 * @param sent, written  way n has initiated_piece_area() bytes of each, from n times that on
 * @param scratch        a word for each block
 */
WEFTIO_KERNEL void initiated_all_to_all(const WEFTIO_GLOBAL struct initiated_way* ways,
                                        const WEFTIO_GLOBAL struct initiated_exchange_plan* plans,
                                        const WEFTIO_GLOBAL struct weftio_dev_clock* clock,
                                        WEFTIO_GLOBAL weftio_u8* sent, const WEFTIO_GLOBAL weftio_u8* written,
                                        WEFTIO_GLOBAL struct initiated_exchange_result* results,
                                        WEFTIO_GLOBAL weftio_u32* scratch)
{
    const struct initiated_exchange_plan plan = *plans;
    const weftio_u32 end = plan.first + weftio_block(), area = initiated_piece_area(plan);
    const weftio_u32 sends = weftio_lane() < plan.ends && weftio_lane() != end;
    const weftio_u32 peer = sends ? weftio_lane() : end, rank = peer - (peer > end);
    const WEFTIO_GLOBAL struct initiated_way* way = ways + initiated_way_number(plan, end, peer);
    const WEFTIO_GLOBAL weftio_u8* number = written + initiated_way_number(plan, peer, end) * area + 2 * plan.stride;
    WEFTIO_GLOBAL weftio_u8* out = sent + initiated_way_number(plan, end, peer) * area;
    struct initiated_place place = initiated_begin(way);
    weftio_u64 begin_ns = 0;
    weftio_u32 failed = 0, iteration = 0;
    weftio_s32 status = WEFTIO_DEV_OK;

    for (; iteration <= plan.iterations && !failed; ++iteration) {
        WEFTIO_GLOBAL weftio_u32* piece = (WEFTIO_GLOBAL weftio_u32*)(out + iteration % 2 * plan.stride);
        for (weftio_u32 word = 0; sends && word < plan.bytes / 4; ++word)
            piece[word] = initiated_piece_word(end, peer, iteration, word);
        status = initiated_post_piece(way, clock, plan, &place, iteration, sends, rank, scratch + end);
        if (status == WEFTIO_DEV_OK && sends)
            status = initiated_wait_number(number, iteration + 1, clock);
        failed = weftio_block_sum_u32(status != WEFTIO_DEV_OK, scratch + end);
        if (iteration == 0)
            begin_ns = weftio_dev_clock_ns(clock);
    }
    if (status != WEFTIO_DEV_OK)
        results[end].status = status;
    if (weftio_lane() != 0)
        return;
    results[end].begin_ns = begin_ns;
    results[end].end_ns = weftio_dev_clock_ns(clock);
    results[end].iterations = iteration;
}

/*
 * Transposition. End e has rows [e * rows, (e + 1) * rows) of the matrix in memory of the device, and gets the same
 * rows of the transposed one. The tile of a peer is transposed into memory that the NIC reads, and each of its rows is
 * a WRITE.
 */

/* Rows of an end. */
WEFTIO_FN weftio_u32 initiated_rows(struct initiated_exchange_plan plan)
{
    return INITIATED_ORDER / plan.ends;
}
/* Bytes that an end gets: two buffers, and a line for the number of each peer. */
WEFTIO_FN weftio_u32 initiated_rows_area(struct initiated_exchange_plan plan)
{
    return 2 * initiated_rows(plan) * INITIATED_ORDER * 8 + INITIATED_MOST_ENDS * 64;
}
/* Bytes that are staged for a peer: two buffers. */
WEFTIO_FN weftio_u32 initiated_tile_area(struct initiated_exchange_plan plan)
{
    return 2 * initiated_rows(plan) * initiated_rows(plan) * 8;
}
/* Where element `column` of row `row` of the transposed matrix lies at its end. */
WEFTIO_FN weftio_u32 initiated_row_offset(struct initiated_exchange_plan plan, weftio_u32 iteration, weftio_u32 row,
                                          weftio_u32 column)
{
    return ((iteration % 2 * initiated_rows(plan) + row) * INITIATED_ORDER + column) * 8;
}
WEFTIO_FN weftio_u32 initiated_number_offset(struct initiated_exchange_plan plan, weftio_u32 from)
{
    return 2 * initiated_rows(plan) * INITIATED_ORDER * 8 + from * 64;
}

/* One end's share of a transposition, in one kernel. */
struct initiated_transposition {
    struct initiated_exchange_plan plan;
    const WEFTIO_GLOBAL weftio_u64* matrix; /* rows of this end */
    WEFTIO_GLOBAL weftio_u8* staged;        /* tiles of this end */
    WEFTIO_GLOBAL weftio_u8* own;           /* rows that this end gets */
    weftio_u32 end, iteration;
};

/* The lanes of a warp write `count` rows of a tile, from row `first` of the peer on, `distance` bytes apart. */
WEFTIO_FN void initiated_stage(struct initiated_transposition work, weftio_u32 peer, weftio_u32 first, weftio_u32 count,
                               WEFTIO_GLOBAL weftio_u8* to, weftio_u32 distance)
{
    const weftio_u32 rows = initiated_rows(work.plan);

    for (weftio_u32 row = 0; row < count; ++row) {
        const WEFTIO_GLOBAL weftio_u64* column = work.matrix + peer * rows + first + row;
        WEFTIO_GLOBAL weftio_u64* out = (WEFTIO_GLOBAL weftio_u64*)(to + row * distance);
        for (weftio_u32 each = weftio_warp_lane(); each < rows; each += weftio_warp_lanes())
            out[each] = column[each * INITIATED_ORDER] + work.iteration;
    }
}

#define INITIATED_ROWS_AT_ONCE 32u /* rows of one commit */

/* A warp stages and sends the tile of a peer; behind it, the number. */
WEFTIO_FN weftio_s32 initiated_send_tile(const WEFTIO_GLOBAL struct initiated_way* way,
                                         const WEFTIO_GLOBAL struct weftio_dev_clock* clock,
                                         struct initiated_transposition work, weftio_u32 peer,
                                         struct initiated_place* place)
{
    const weftio_u32 rows = initiated_rows(work.plan), bytes = rows * 8, leads = weftio_warp_lane() == 0;

    for (weftio_u32 first = 0; first < rows; first += INITIATED_ROWS_AT_ONCE) {
        const weftio_u32 count = weftio_min_u32(INITIATED_ROWS_AT_ONCE, rows - first);
        const weftio_u32 last = first + count == rows, local = (work.iteration % 2 * rows + first) * bytes;
        weftio_u32 failure = leads ? (weftio_u32)-initiated_wait(way, clock, place, way->depth - count - last) : 0;

        failure = (weftio_u32)weftio_warp_first_u64(failure);
        if (failure)
            return -(weftio_s32)failure;
        initiated_stage(work, peer, first, count, work.staged + peer * initiated_tile_area(work.plan) + local, bytes);
        for (weftio_u32 each = weftio_warp_lane(); each < count; each += weftio_warp_lanes())
            initiated_put(
                way, place->position + each,
                initiated_write_of(way->number,
                                   initiated_row_offset(work.plan, work.iteration, first + each, work.end * rows),
                                   bytes, local + each * bytes));
        if (last && leads)
            initiated_put(
                way, place->position + count,
                initiated_write_value(way->number, initiated_number_offset(work.plan, work.end), work.iteration + 1));
        weftio_warp_barrier();
        if (leads)
            initiated_submit(way, place, count + last);
        else
            place->position += count + last;
    }
    return WEFTIO_DEV_OK;
}

/*
 * Transposes again and again; each iteration adds its number to all elements. A warp for each peer, or for several.
 *
 * @param matrix   of all ends, one behind the other
 * @param sent     initiated_tile_area() bytes for each way
 * @param written  initiated_rows_area() bytes for each end
 */
WEFTIO_KERNEL void initiated_transpose(const WEFTIO_GLOBAL struct initiated_way* ways,
                                       const WEFTIO_GLOBAL struct initiated_exchange_plan* plans,
                                       const WEFTIO_GLOBAL struct weftio_dev_clock* clock,
                                       const WEFTIO_GLOBAL weftio_u64* matrix, WEFTIO_GLOBAL weftio_u8* sent,
                                       WEFTIO_GLOBAL weftio_u8* written,
                                       WEFTIO_GLOBAL struct initiated_exchange_result* results,
                                       WEFTIO_GLOBAL weftio_u32* scratch)
{
    struct initiated_transposition work;
    struct initiated_place places[INITIATED_MOST_ENDS];
    const weftio_u32 warps = (weftio_block_lanes() + WEFTIO_WARP_LANES - 1) / WEFTIO_WARP_LANES;
    const weftio_u32 warp = weftio_lane() / WEFTIO_WARP_LANES;
    weftio_u64 begin_ns = 0;
    weftio_u32 failed = 0;
    weftio_s32 status = WEFTIO_DEV_OK;

    work.plan = *plans;
    work.end = work.plan.first + weftio_block();
    work.matrix = matrix + work.end * initiated_rows(work.plan) * INITIATED_ORDER;
    work.staged = sent + initiated_way_number(work.plan, work.end, 0) * initiated_tile_area(work.plan);
    work.own = written + work.end * initiated_rows_area(work.plan);
    ways += initiated_way_number(work.plan, work.end, 0);
    for (weftio_u32 peer = warp; peer < work.plan.ends; peer += warps)
        places[peer] = initiated_begin(ways + peer);
    for (work.iteration = 0; work.iteration <= work.plan.iterations && !failed; ++work.iteration) {
        for (weftio_u32 peer = warp; peer < work.plan.ends && status == WEFTIO_DEV_OK; peer += warps) {
            if (peer != work.end)
                status = initiated_send_tile(ways + peer, clock, work, peer, &places[peer]);
            else
                initiated_stage(
                    work, peer, 0, initiated_rows(work.plan),
                    work.own + initiated_row_offset(work.plan, work.iteration, 0, work.end * initiated_rows(work.plan)),
                    INITIATED_ORDER * 8);
        }
        for (weftio_u32 peer = warp; peer < work.plan.ends && status == WEFTIO_DEV_OK; peer += warps)
            if (peer != work.end && weftio_warp_lane() == 0)
                status = initiated_wait_number(work.own + initiated_number_offset(work.plan, peer), work.iteration + 1,
                                               clock);
        failed = weftio_block_sum_u32(status != WEFTIO_DEV_OK, scratch + work.end);
        if (work.iteration == 0)
            begin_ns = weftio_dev_clock_ns(clock);
    }
    if (status != WEFTIO_DEV_OK)
        results[work.end].status = status;
    if (weftio_lane() != 0)
        return;
    results[work.end].begin_ns = begin_ns;
    results[work.end].end_ns = weftio_dev_clock_ns(clock);
    results[work.end].iterations = work.iteration;
}
