/* The kernel of the pacing benchmark: one wait and one frame per interval, never far ahead of the clock. */
#pragma once

#include "weftio/device/eth_txq.h"

#define FRAME_BYTES 64
#define FRAME_SEQUENCE_AT 16 /* 4 bytes, little-endian, behind the Ethernet header and 2 bytes of padding */

/*
 * The CPU waits for `running` before it sets `start`, because compiling a kernel may take longer than the lead time.
 * The kernel waits for `start`.
 */
struct schedule {
    weftio_u32 running;
    weftio_u32 count;       /* frames */
    weftio_u64 start;       /* value of the first wait, 0 until it is known */
    weftio_u64 interval_ns; /* less than a second */
    weftio_u32 ahead;       /* pairs of wait and frame that may be in flight at once */
    weftio_u32 batch;       /* pairs between two pushes, at most `ahead` */
    weftio_u32 enqueued;    /* written at the end: pairs enqueued */
    weftio_s32 status;      /* status of the call that ended the kernel early, or WEFTIO_DEV_OK */
};

/*
 * Enqueues pairs `first` .. `first + pairs - 1` of the schedule at `position`. Returns the time of the next pair.
 */
WEFTIO_FN weftio_u64 enqueue_pairs(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                                   const WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, weftio_u64 interval_ns,
                                   weftio_u32 first, weftio_u32 pairs, weftio_u32 position, weftio_u64 when)
{
    for (weftio_u32 pair = first; pair < first + pairs; ++pair, position += 2) {
        /* There are `ahead` buffers: the earlier frame of a buffer has been sent before the buffer is reused. */
        struct weftio_dev_buf frame = weftio_dev_buf_get(frames, pair);

        *(WEFTIO_GLOBAL weftio_u32*)(frame.address + FRAME_SEQUENCE_AT) = pair;
        weftio_dev_eth_txq_wait_time_enqueue_weak(txq, when, position, WEFTIO_DEV_SEND_NONE);
        weftio_dev_eth_txq_send_enqueue_weak(txq, frame, FRAME_BYTES, position + 1, WEFTIO_DEV_SEND_NOTIFY);
        when = weftio_dev_timestamp_add(when, interval_ns);
    }
    return when;
}

/* One lane. Ends when all pairs are enqueued; the NIC sends them at their times. */
WEFTIO_KERNEL void pacing(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq, WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames,
                          WEFTIO_GLOBAL struct schedule* schedule)
{
    weftio_u32 position, mask, pairs, done = 0;
    weftio_s32 status = WEFTIO_DEV_OK;

    weftio_store_release_sys_u32(&schedule->running, 1);
    for (weftio_u32 attempt = 0; !weftio_load_acquire_sys_u64(&schedule->start) && !weftio_dev_eth_txq_aborted(txq);
         ++attempt)
        weftio_relax(attempt);
    weftio_u64 when = weftio_load_acquire_sys_u64(&schedule->start);

    weftio_dev_eth_txq_get_info(txq, &position, &mask);
    for (; done < schedule->count && status == WEFTIO_DEV_OK; done += pairs, position += 2 * pairs) {
        pairs = weftio_min_u32(schedule->batch, schedule->count - done);
        status = weftio_dev_eth_txq_wait_room(txq, mask + 1 - 2 * schedule->ahead + 2 * pairs, 0);
        if (status != WEFTIO_DEV_OK)
            break;
        when = enqueue_pairs(txq, frames, schedule->interval_ns, done, pairs, position, when);
        status = weftio_dev_eth_txq_commit_weak(txq, 2 * pairs);
        weftio_dev_eth_txq_push(txq);
    }
    schedule->enqueued = done;
    schedule->status = status;
}
