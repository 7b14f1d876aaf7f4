/**
 * A completion queue inside a kernel: one ring in which the NIC completes send entries and receives of several queues.
 *
 * *Poll* hands out the completions that have been published. *At* returns one, in the format of docs/formats.md,
 * section "Completions". *Consume* returns their slots in the ring to the NIC, oldest first. The NIC does not overwrite
 * a completion that has not been consumed, except with completion_overrun::ignore.
 *
 * One scope (a thread, a warp or a block) polls at a time; the next call may come from another scope.
 */
#pragma once

#include "weftio/device/clock.h"
#include "weftio/device/cqe.h"
#include "weftio/device/handle.h"
#include "weftio/device/queue/control.h"
#include "weftio/device/queue/scope.h"

/** Made by the host class `completion_queue`. Kernels use it through the functions below only. */
struct weftio_dev_completion_queue {
    weftio_u32 abi;                   /**< WEFTIO_DEV_ABI_COMPLETION_QUEUE */
    weftio_u32 mask;                  /**< depth - 1 */
    WEFTIO_GLOBAL weftio_u8 *entries; /**< the 64 used bytes of the first completion */
    weftio_u32 log_depth;
    weftio_u32 log_stride;            /**< 6 or 7: completions are 64 or 128 bytes apart */
    WEFTIO_GLOBAL weftio_u32 *record; /**< consumer index, 24 bits, then the arming word; big-endian */
    WEFTIO_GLOBAL struct weftio_dev_control *control;
    const WEFTIO_GLOBAL struct weftio_dev_clock *clock;
    weftio_u64 turn;         /**< inline mode on a CPU: function that runs the engine once, else 0 */
    weftio_u64 turn_context; /**< its argument */
    weftio_u32 polled;       /**< next index to hand out */
    weftio_u32 consumed;     /**< next index to consume */
    weftio_u32 scratch;      /**< word of weftio_block_sum_u32 */
    weftio_u32 number;       /**< number of the queue at its NIC */
    weftio_u32 beats;        /**< calls, and rounds of waits, so far (queue_trace::beats) */
    weftio_u32 reserved[11];
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_completion_queue) == (WEFTIO_DEV_ABI_COMPLETION_QUEUE & 0xffffu),
                     "host and device share this layout");

/** Whether `queue` is a completion queue: as weftio_dev_is_handle. */
WEFTIO_FN weftio_u32 weftio_dev_is_completion_queue(const WEFTIO_GLOBAL struct weftio_dev_completion_queue *queue)
{
    return weftio_dev_is_handle(queue->abi, WEFTIO_DEV_ABI_COMPLETION_QUEUE);
}

/**
 * Address of completion `index`. Never blocks; any lane.
 *
 * @pre a poll has handed `index` out, and it has not been consumed
 * @return the address; 0 with WEFTIO_DEV_CHECKS if `queue` is no completion queue
 */
WEFTIO_FN const WEFTIO_GLOBAL struct weftio_cqe *
weftio_dev_completion_queue_at(const WEFTIO_GLOBAL struct weftio_dev_completion_queue *queue, weftio_u32 index)
{
    if (!weftio_dev_is_completion_queue(queue))
        return 0;
    return (const WEFTIO_GLOBAL struct weftio_cqe *)(queue->entries +
                                                     ((weftio_u64)(index & queue->mask) << queue->log_stride));
}

/**
 * Counts the published completions among `first + lane`, `first + lane + lanes`, ... below `first + limit`. The NIC
 * publishes in order, so the first unpublished one ends the count.
 */
WEFTIO_FN weftio_u32 weftio_dev_completion_queue_count(const WEFTIO_GLOBAL struct weftio_dev_completion_queue *queue,
                                                       weftio_u32 first, weftio_u32 limit, weftio_u32 lane,
                                                       weftio_u32 lanes)
{
    weftio_u32 at = lane;

    for (; at < limit; at += lanes) {
        /*
         * Acquire, pairs with the NIC's release: bytes 0..59 of the completion, and received data, are visible
         * afterwards.
         */
        weftio_u32 publication =
            weftio_load_acquire_sys_u32(&weftio_dev_completion_queue_at(queue, first + at)->publication);
        if (!weftio_cqe_is_published(publication, (first + at) >> queue->log_depth))
            break;
    }
    return (at - lane) / lanes;
}

/** Why a poll ends without a completion. The values lie above the bits that the sum of all counts can reach. */
#define WEFTIO_DEV_POLL_LATE (1u << 24)
#define WEFTIO_DEV_POLL_ABORT (2u << 24)

/** Lane 0: in inline mode runs the engine once. Returns WEFTIO_DEV_POLL_* if the poll must end, else 0. */
WEFTIO_FN weftio_u32 weftio_dev_completion_queue_stop(WEFTIO_GLOBAL struct weftio_dev_completion_queue *queue,
                                                      weftio_u64 timeout_ns, weftio_u64 *deadline_ns)
{
    weftio_dev_nic_turn(queue->turn, queue->turn_context);
    if (weftio_load_relaxed_u32(&queue->control->abort))
        return WEFTIO_DEV_POLL_ABORT;
    if (!timeout_ns)
        return 0;
    weftio_u64 now_ns = weftio_dev_clock_ns(queue->clock);
    if (!*deadline_ns)
        *deadline_ns = weftio_dev_deadline_ns(now_ns, timeout_ns);
    return now_ns >= *deadline_ns ? WEFTIO_DEV_POLL_LATE : 0;
}

/** The poll of every scope, for `lane` of `lanes`. Waits for the first completion only. */
WEFTIO_FN weftio_s32 weftio_dev_completion_queue_poll(WEFTIO_GLOBAL struct weftio_dev_completion_queue *queue,
                                                      weftio_u32 most, weftio_u64 timeout_ns, weftio_u32 *count,
                                                      weftio_u32 *first, enum weftio_dev_scope scope, weftio_u32 lane,
                                                      weftio_u32 lanes)
{
    weftio_u64 deadline_ns = 0;

    *count = 0;
    if (!weftio_dev_is_completion_queue(queue))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_u32 start = weftio_load_relaxed_u32(&queue->polled), sum = 0;
    weftio_u32 limit = most && most <= queue->mask ? most : queue->mask + 1;
    for (weftio_u32 attempt = 0; !sum; ++attempt) {
        weftio_u32 stop = lane == 0 ? weftio_dev_completion_queue_stop(queue, timeout_ns, &deadline_ns) : 0;
        sum = weftio_dev_scope_sum(scope, stop + weftio_dev_completion_queue_count(queue, start, limit, lane, lanes),
                                   &queue->scratch);
        if (!sum && lane == 0) {
            weftio_dev_beat(queue->control, &queue->beats, WEFTIO_DEV_FUNCTION_POLL, start, WEFTIO_DEV_NOT_FOUND);
            weftio_relax(attempt);
        }
    }
    *count = sum & (WEFTIO_DEV_POLL_LATE - 1);
    *first = start;
    weftio_s32 status = sum & WEFTIO_DEV_POLL_ABORT ? WEFTIO_DEV_ABORTED : *count ? WEFTIO_DEV_OK : WEFTIO_DEV_TIMEOUT;
    if (lane == 0) {
        weftio_store_relaxed_u32(&queue->polled, start + *count);
        weftio_dev_beat(queue->control, &queue->beats, WEFTIO_DEV_FUNCTION_POLL, start + *count, status);
    }
    weftio_dev_scope_barrier(scope);
    return status;
}

/**
 * Polls for one lane. Blocks until a completion has been published, `timeout_ns` has passed or the host asks the kernel
 * to end; in inline mode this call runs the engine. Hands out the published completions, `most` at most.
 *
 * Completions [first, first + count) are the caller's until it consumes them. Indices are consecutive and wrap at 2^32.
 *
 * @pre no other lane polls meanwhile
 * @param most        0: as many as the ring holds
 * @param timeout_ns  0: no time bound; 1: poll once
 * @param[out] count  completions handed out, whatever the status is
 * @param[out] first  index of the first; unchanged on INVALID_ARGUMENT
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_TIMEOUT `timeout_ns` have passed without a completion; WEFTIO_DEV_ABORTED the host
 *         asks the kernel to end (`count` may be above 0); WEFTIO_DEV_INVALID_ARGUMENT with WEFTIO_DEV_CHECKS
 *         (handle.h): `queue` is no completion queue of this version
 */
WEFTIO_FN weftio_s32 weftio_dev_completion_queue_poll_thread(WEFTIO_GLOBAL struct weftio_dev_completion_queue *queue,
                                                             weftio_u32 most, weftio_u64 timeout_ns, weftio_u32 *count,
                                                             weftio_u32 *first)
{
    return weftio_dev_completion_queue_poll(queue, most, timeout_ns, count, first, WEFTIO_DEV_SCOPE_THREAD, 0, 1);
}

/**
 * As weftio_dev_completion_queue_poll_thread, for a warp: all its lanes call with equal arguments, and all get the same
 * results. The call has its own barriers.
 */
WEFTIO_FN weftio_s32 weftio_dev_completion_queue_poll_warp(WEFTIO_GLOBAL struct weftio_dev_completion_queue *queue,
                                                           weftio_u32 most, weftio_u64 timeout_ns, weftio_u32 *count,
                                                           weftio_u32 *first)
{
    return weftio_dev_completion_queue_poll(queue, most, timeout_ns, count, first, WEFTIO_DEV_SCOPE_WARP,
                                            weftio_warp_lane(), weftio_warp_lanes());
}

/** As weftio_dev_completion_queue_poll_warp, for a block. */
WEFTIO_FN weftio_s32 weftio_dev_completion_queue_poll_block(WEFTIO_GLOBAL struct weftio_dev_completion_queue *queue,
                                                            weftio_u32 most, weftio_u64 timeout_ns, weftio_u32 *count,
                                                            weftio_u32 *first)
{
    return weftio_dev_completion_queue_poll(queue, most, timeout_ns, count, first, WEFTIO_DEV_SCOPE_BLOCK,
                                            weftio_lane(), weftio_block_lanes());
}

/**
 * Consumes the `count` oldest completions: the NIC may overwrite them at once. Never blocks. One lane calls it, after a
 * barrier behind the last use by any lane.
 *
 * @param first  index of the oldest completion that is not consumed
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_OUT_OF_ORDER `first` is not the oldest; WEFTIO_DEV_INVALID_ARGUMENT `count` is
 *         above the number of completions handed out and not consumed, or as weftio_dev_completion_queue_poll_thread.
 *         On error nothing is consumed.
 */
WEFTIO_FN weftio_s32 weftio_dev_completion_queue_consume(WEFTIO_GLOBAL struct weftio_dev_completion_queue *queue,
                                                         weftio_u32 first, weftio_u32 count)
{
    if (!weftio_dev_is_completion_queue(queue))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_u32 consumed = weftio_load_relaxed_u32(&queue->consumed);

    if (first != consumed)
        return WEFTIO_DEV_OUT_OF_ORDER;
    if (count > weftio_load_relaxed_u32(&queue->polled) - consumed)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_store_relaxed_u32(&queue->consumed, consumed + count);
    /* Release, pairs with the NIC's acquire of the record: the completions have been read. */
    weftio_store_release_sys_u32(queue->record, weftio_swap32((consumed + count) & 0xffffffu));
    return WEFTIO_DEV_OK;
}
