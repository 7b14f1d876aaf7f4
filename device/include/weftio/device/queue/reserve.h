/**
 * Positions of a send queue for all lanes of a scope: claimed at once and published at once.
 *
 * Life of a round: the scope *reserves* positions, its lanes write entries at them with the weak enqueue functions, and
 * the scope *submits* them. Any number of scopes may use a queue so, beside lanes that use its strong functions. It
 * costs what a lane's strong entry does, however many entries there are.
 */
#pragma once

#include "weftio/device/queue/send.h"

/** One lane of weftio_dev_send_queue_reserve. */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_reserve_lane(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue,
                                                        weftio_u32 count, weftio_u64 timeout_ns, weftio_u32 *first)
{
    weftio_u64 start_ns = 0;

    if (!weftio_dev_is_send_queue(queue) || count == 0 || count > queue->ring.mask + 1)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    for (weftio_u32 attempt = 0;; ++attempt) {
        weftio_s32 status = weftio_dev_send_look(queue, weftio_load_relaxed_u32(&queue->seen));
        if (status != WEFTIO_DEV_OK)
            return status;
        /* Those that wait only look: claims that are refused would have others refused beside them. */
        if ((attempt == 0 || weftio_dev_send_room(&queue->ring, count) >= count) &&
            weftio_dev_send_claim(&queue->ring, count, 1, first))
            return WEFTIO_DEV_OK;
        status = weftio_dev_send_queue_wait_on(queue, attempt, timeout_ns, &start_ns,
                                               weftio_load_relaxed_u32(&queue->ring.reserved), WEFTIO_DEV_FULL);
        if (status != WEFTIO_DEV_OK)
            return status;
    }
}

/**
 * Reserves `count` consecutive positions for the lanes of a scope. Blocks until that many are free, for `timeout_ns` at
 * most (0: no time bound); in inline mode this call runs the engine. All lanes of the scope call with equal arguments,
 * and all get the same result. The call has its own barriers.
 *
 * Each position needs an entry before weftio_dev_send_queue_submit_reserved: an entry that is missing stops the queue
 * for all.
 *
 * @param scratch     one word for each block that uses the queue, written by platforms whose blocks need memory for a
 *                    result; 0: only one block uses the queue
 * @param[out] first  free-running index of the first position; unchanged on error
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_TIMEOUT `timeout_ns` have passed; WEFTIO_DEV_ABORTED or WEFTIO_DEV_QUEUE_ERROR as
 *         weftio_dev_send_queue_commit_strong, also when positions are free; WEFTIO_DEV_INVALID_ARGUMENT `count` is 0
 *         or above the depth of the ring. On error nothing is reserved.
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_reserve(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue,
                                                   enum weftio_dev_scope scope, weftio_u32 count, weftio_u64 timeout_ns,
                                                   WEFTIO_GLOBAL weftio_u32 *scratch, weftio_u32 *first)
{
    weftio_u32 start = 0, failure = 0;

    /* All lanes are here: none waits for room of its own behind positions that it is to fill. */
    weftio_dev_scope_barrier(scope);
    if (weftio_dev_scope_lane(scope) == 0)
        failure = (weftio_u32)-weftio_dev_send_queue_reserve_lane(queue, count, timeout_ns, &start);
    const weftio_u64 got =
        weftio_dev_scope_first(scope, (weftio_u64)failure << 32 | start, scratch ? scratch : &queue->scratch);
    failure = (weftio_u32)(got >> 32);
    if (failure == 0)
        *first = (weftio_u32)got;
    return -(weftio_s32)failure;
}

/**
 * Publishes reserved positions and rings the doorbell, as weftio_dev_send_queue_submit. All lanes of the scope call
 * with equal arguments, each behind the entries that it has written. The call has a barrier at its beginning. The next
 * weftio_dev_send_queue_reserve reports the status of the queue.
 *
 * @param first, count  from weftio_dev_send_queue_reserve
 */
WEFTIO_FN void weftio_dev_send_queue_submit_reserved(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue,
                                                     enum weftio_dev_scope scope, weftio_u32 first, weftio_u32 count)
{
    weftio_dev_scope_barrier(scope);
    /* The lane that reserves: who publishes for others must not have a claim that its scope cannot fill meanwhile. */
    if (weftio_dev_scope_lane(scope) != 0 || !weftio_dev_is_send_queue(queue))
        return;
    weftio_dev_send_queue_publish(queue, first, count, 1);
    weftio_dev_nic_turn(queue->turn, queue->turn_context);
}
