/* Kernels that poll completion queues. */
#pragma once

#include "weftio/device/completion_queue.h"

/*
 * A thread, warp or block polls `wanted` completions, `most` at a time, of entries 0, 1, 2, ... `said`: the number of
 * completions; the number of wrong ones; the last status; the largest number that one poll handed out.
 */
WEFTIO_KERNEL void completions_take(WEFTIO_GLOBAL struct weftio_dev_completion_queue* queue, weftio_u32 scope,
                                    weftio_u32 most, weftio_u32 wanted, WEFTIO_GLOBAL weftio_u32* said)
{
    weftio_u32 count = 0, first = 0, taken = 0;
    weftio_s32 status = WEFTIO_DEV_OK;

    while (taken < wanted && status == WEFTIO_DEV_OK) {
        status = scope == WEFTIO_DEV_SCOPE_THREAD
                     ? weftio_dev_completion_queue_poll_thread(queue, most, 60000000000ul, &count, &first)
                 : scope == WEFTIO_DEV_SCOPE_WARP
                     ? weftio_dev_completion_queue_poll_warp(queue, most, 60000000000ul, &count, &first)
                     : weftio_dev_completion_queue_poll_block(queue, most, 60000000000ul, &count, &first);
        for (weftio_u32 each = weftio_lane(); each < count; each += weftio_block_lanes()) {
            const WEFTIO_GLOBAL struct weftio_cqe* cqe = weftio_dev_completion_queue_at(queue, first + each);
            weftio_u32 is_right = weftio_cqe_wqe_counter(cqe->publication) == taken + each &&
                                  weftio_cqe_opcode(cqe->publication) == WEFTIO_CQE_OPCODE_REQUESTER &&
                                  first + each == taken + each;
            weftio_fetch_add_u32(&said[is_right ? 0 : 1], 1);
        }
        weftio_block_barrier();
        if (weftio_lane() == 0) {
            if (weftio_dev_completion_queue_consume(queue, first, count) != WEFTIO_DEV_OK)
                weftio_fetch_add_u32(&said[1], 1);
            weftio_store_release_sys_u32(&said[2], (weftio_u32)status);
            weftio_store_release_sys_u32(&said[3], count > said[3] ? count : said[3]);
        }
        weftio_block_barrier();
        taken += count;
    }
}

/* One lane tests each limit of the functions with five published completions; `said`: statuses and counts. */
WEFTIO_KERNEL void completions_try_bounds(WEFTIO_GLOBAL struct weftio_dev_completion_queue* queue,
                                          WEFTIO_GLOBAL weftio_u32* said)
{
    weftio_u32 count = 0, first = 0;

    weftio_store_release_sys_u32(
        &said[0], (weftio_u32)weftio_dev_completion_queue_consume(queue, 0, 1)); /* none was handed out */
    weftio_store_release_sys_u32(&said[1],
                                 (weftio_u32)weftio_dev_completion_queue_poll_thread(queue, 2, 0, &count, &first));
    weftio_store_release_sys_u32(&said[2], count);
    weftio_store_release_sys_u32(&said[3], (weftio_u32)weftio_dev_completion_queue_consume(queue, first, 3));
    weftio_store_release_sys_u32(&said[4], (weftio_u32)weftio_dev_completion_queue_consume(queue, first + 1, 1));
    weftio_store_release_sys_u32(&said[5], (weftio_u32)weftio_dev_completion_queue_consume(queue, first, 1));
    weftio_store_release_sys_u32(&said[6],
                                 (weftio_u32)weftio_dev_completion_queue_poll_thread(queue, 0, 0, &count, &first));
    weftio_store_release_sys_u32(&said[7], count);
    weftio_store_release_sys_u32(&said[8], first);
    weftio_store_release_sys_u32(&said[9],
                                 (weftio_u32)weftio_dev_completion_queue_poll_thread(queue, 0, 1, &count, &first));
    weftio_store_release_sys_u32(&said[10], count);
    weftio_store_release_sys_u32(
        &said[11], (weftio_u32)weftio_dev_completion_queue_poll_thread(queue, 0, 1000000, &count, &first));
    weftio_store_release_sys_u32(&said[12], (weftio_u32)weftio_dev_completion_queue_consume(queue, 1, 4));
    weftio_store_release_sys_u32(&said[13], (weftio_u32)weftio_dev_completion_queue_poll_thread(
                                                queue, 0, 0, &count, &first)); /* the host ends the wait */
    weftio_store_release_sys_u32(&said[14], count);
    weftio_store_release_sys_u32(&said[15], 1);
}
