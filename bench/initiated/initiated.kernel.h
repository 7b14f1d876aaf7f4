/* Kernels of the benchmark of GPU-initiated communication: streams of WRITEs. */
#pragma once

#include "initiated/post.h"

/* What all ways of a stream have in common. */
struct initiated_stream_plan {
    weftio_u64 duration_ns;
    weftio_u32 ways;
    weftio_u32 bytes;       /* of a message */
    weftio_u32 slots;       /* places at the peer that messages go to in turn; a power of two */
    weftio_u32 stride;      /* distance of slots */
    weftio_u32 batch;       /* messages of one commit */
    weftio_u32 in_flight;   /* most messages that are not done; `batch` or more */
    weftio_u32 values;      /* 1: messages are values, which travel in the entry */
    weftio_u32 whole_block; /* 1: a block owns a way; 0: a lane does */
};

/* What a way has done. A line each. */
struct initiated_stream_result {
    weftio_u64 messages;
    weftio_u64 begin_ns, end_ns;
    weftio_s32 status;
    weftio_u32 reserved[9];
};
WEFTIO_STATIC_ASSERT(sizeof(struct initiated_stream_result) == 64, "host and device share this layout");

/* Message `number` of a way. */
WEFTIO_FN struct initiated_write initiated_message(struct initiated_stream_plan plan, weftio_u32 queue,
                                                   weftio_u64 number)
{
    const weftio_u32 offset = (weftio_u32)(number & (plan.slots - 1)) * plan.stride;

    if (plan.values)
        return initiated_write_value(queue, offset, number + 1);
    return initiated_write_of(queue, offset, plan.bytes, offset);
}

/* Waits for room for a batch. A word for the whole scope: 0: go on; 1: the time is over; else 1 less a status. */
WEFTIO_FN weftio_u32 initiated_next(const WEFTIO_GLOBAL struct initiated_way* way,
                                    const WEFTIO_GLOBAL struct weftio_dev_clock* clock,
                                    struct initiated_stream_plan plan, struct initiated_place* place,
                                    weftio_u64 begin_ns)
{
    const weftio_s32 status = initiated_wait(way, clock, place, plan.in_flight - plan.batch);

    if (status != WEFTIO_DEV_OK)
        return 1 + (weftio_u32)-status;
    return weftio_dev_clock_ns(clock) - begin_ns >= plan.duration_ns;
}

/* Behind the last message: their number, as one more. Then waits until all are done. */
WEFTIO_FN weftio_s32 initiated_finish(const WEFTIO_GLOBAL struct initiated_way* way,
                                      const WEFTIO_GLOBAL struct weftio_dev_clock* clock,
                                      struct initiated_stream_plan plan, struct initiated_place* place,
                                      weftio_u64 messages)
{
    weftio_s32 status =
        initiated_put(way, place->position, initiated_write_value(way->number, plan.slots * plan.stride, messages));

    if (status == WEFTIO_DEV_OK)
        status = initiated_submit(way, place, 1);
    return status == WEFTIO_DEV_OK ? initiated_wait(way, clock, place, 0) : status;
}

/*
 * Streams messages until the time is over, and waits until all are done. Each way belongs to a lane, or to a block.
 *
 * @param scratch  a word for each block
 */
WEFTIO_KERNEL void initiated_stream(const WEFTIO_GLOBAL struct initiated_way* ways,
                                    const WEFTIO_GLOBAL struct initiated_stream_plan* plans,
                                    const WEFTIO_GLOBAL struct weftio_dev_clock* clock,
                                    WEFTIO_GLOBAL struct initiated_stream_result* results,
                                    WEFTIO_GLOBAL weftio_u32* scratch)
{
    const struct initiated_stream_plan plan = *plans;
    const weftio_u32 mine = plan.whole_block ? weftio_block() : weftio_block() * weftio_block_lanes() + weftio_lane();
    const weftio_u32 lane = plan.whole_block ? weftio_lane() : 0, lanes = plan.whole_block ? weftio_block_lanes() : 1;
    const enum weftio_dev_scope scope = plan.whole_block ? WEFTIO_DEV_SCOPE_BLOCK : WEFTIO_DEV_SCOPE_THREAD;
    weftio_s32 status = WEFTIO_DEV_OK;
    weftio_u64 messages = 0;
    weftio_u32 word = 0;

    if (mine >= plan.ways)
        return;
    const WEFTIO_GLOBAL struct initiated_way* way = ways + mine;
    struct initiated_place place = initiated_begin(way);
    const weftio_u64 begin_ns = weftio_dev_clock_ns(clock);

    for (;;) {
        if (lane == 0)
            word =
                status == WEFTIO_DEV_OK ? initiated_next(way, clock, plan, &place, begin_ns) : 1 + (weftio_u32)-status;
        word = (weftio_u32)weftio_dev_scope_first(scope, word, scratch + weftio_block());
        if (word)
            break;
        const weftio_u32 position = place.position; /* of lane 0; the others follow */
        for (weftio_u32 each = lane; each < plan.batch; each += lanes)
            if (initiated_put(way, position + each, initiated_message(plan, way->number, messages + each)) !=
                WEFTIO_DEV_OK)
                status = WEFTIO_DEV_INVALID_ARGUMENT;
        weftio_dev_scope_barrier(scope);
        messages += plan.batch;
        if (lane == 0)
            status = initiated_submit(way, &place, plan.batch);
        else
            place.position += plan.batch;
    }
    if (lane != 0)
        return;
    status = word > 1 ? -(weftio_s32)(word - 1) : initiated_finish(way, clock, plan, &place, messages);
    results[mine].messages = messages;
    results[mine].begin_ns = begin_ns;
    results[mine].end_ns = weftio_dev_clock_ns(clock);
    results[mine].status = status;
}
