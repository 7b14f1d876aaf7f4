/**
 * A send queue inside a kernel, of any kind: Ethernet frames (eth_txq.h), memory copies (dma.h), file operations
 * (file.h) or RDMA requests (rdma.h). The receive entries of RDMA (rdma/receive.h) are enqueued and committed in the
 * same way.
 *
 * Life of an entry: *enqueue* writes it, in the way of each kind of queue. *Commit* publishes entries. *Push* rings the
 * doorbell, which wakes a sleeping NIC. The NIC executes entries and completes them in order. *Strong* functions find a
 * free position themselves; any lane of any block may call them. *Weak* functions are given the position by the caller
 * and use no atomics. A queue is used in one of the two modes at a time. In strong mode, a warp or a block may also
 * reserve positions for all its lanes, which then write with the weak functions (queue/reserve.h).
 */
#pragma once

#include "weftio/device/clock.h"
#include "weftio/device/handle.h"
#include "weftio/device/queue/control.h"
#include "weftio/device/queue/scope.h"
#include "weftio/device/queue/send_ring.h"

/** The part of a handle that all kinds of send queues have. */
struct weftio_dev_send_queue {
    weftio_u32 abi;     /**< WEFTIO_DEV_ABI_*, of the kind of queue */
    weftio_u32 scratch; /**< for platforms whose block sum needs memory */
    struct weftio_dev_send_ring ring;
    WEFTIO_GLOBAL struct weftio_dev_control *control;
    const WEFTIO_GLOBAL struct weftio_dev_clock *clock;
    weftio_u64 turn; /**< inline mode on a CPU: function that runs the engine once, else 0 */
    weftio_u64 turn_context;
    weftio_u32 beats; /**< as in the trace */
    weftio_u32 seen;  /**< where the host is far: state of the queue and when it was looked at (weftio_dev_send_look) */
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_send_queue) == 128, "host and device share this layout");

/** Whether the handle belongs to a ring of entries of any kind: as weftio_dev_is_handle. */
WEFTIO_FN weftio_u32 weftio_dev_is_send_queue(const WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    return weftio_dev_is_handle(queue->abi, WEFTIO_DEV_ABI_ETH_TXQ) ||
           weftio_dev_is_handle(queue->abi, WEFTIO_DEV_ABI_DMA) ||
           weftio_dev_is_handle(queue->abi, WEFTIO_DEV_ABI_RDMA) ||
           weftio_dev_is_handle(queue->abi, WEFTIO_DEV_ABI_RDMA_RECV) ||
           weftio_dev_is_handle(queue->abi, WEFTIO_DEV_ABI_FILE_QUEUE);
}

/** Flags of every enqueue call. Each kind of queue has more, from 0x2 on. */
#define WEFTIO_DEV_SEND_NONE 0x0u
#define WEFTIO_DEV_SEND_NOTIFY 0x1u /**< notifies the host's progress_engine when the entry is done */

WEFTIO_FN weftio_u32 weftio_dev_completion_mode(weftio_u32 flags)
{
    return flags & WEFTIO_DEV_SEND_NOTIFY ? WEFTIO_CE_ALWAYS_AND_EVENT : WEFTIO_CE_ALWAYS;
}

/**
 * Writes the control segment, the first of an entry. It is written last: an entry with the right index is complete.
 *
 * @param modes         completion and fence mode: byte fm_ce_se
 * @param immediate_be  last word of the segment
 */
WEFTIO_FN void weftio_dev_write_control_modes(WEFTIO_GLOBAL weftio_u32 *block, weftio_u32 index, weftio_u32 opcode,
                                              weftio_u32 queue_ds, weftio_u32 modes, weftio_u32 immediate_be)
{
    weftio_u32 opmod_index_opcode = (opcode & 0xff00u) << 16 | (index & 0xffffu) << 8 | (opcode & 0xffu);
    weftio_u64 start_be = weftio_swap64((weftio_u64)opmod_index_opcode << 32 | queue_ds);

    weftio_store_x4(block, (weftio_u32)start_be, (weftio_u32)(start_be >> 32), modes << 24, immediate_be);
}

/** The same, with the modes that `flags` ask for and no immediate. */
WEFTIO_FN void weftio_dev_write_control(WEFTIO_GLOBAL weftio_u32 *block, weftio_u32 index, weftio_u32 opcode,
                                        weftio_u32 queue_ds, weftio_u32 flags)
{
    weftio_dev_write_control_modes(block, index, opcode, queue_ds, weftio_dev_completion_mode(flags), 0);
}

/** Position of the next entry and mask of positions, for weak mode. Never blocks. Any lane, while no lane enqueues. */
WEFTIO_FN void weftio_dev_send_queue_get_info(const WEFTIO_GLOBAL struct weftio_dev_send_queue *queue,
                                              weftio_u32 *position, weftio_u32 *mask)
{
    const weftio_u32 is_queue = weftio_dev_is_send_queue(queue);

    *position = is_queue ? weftio_load_relaxed_u32(&queue->ring.reserved) : 0;
    *mask = is_queue ? queue->ring.mask : 0;
}

/**
 * Number of entries that the NIC is done with, executed or failed, as a free-running index: all entries below it are
 * done. Never blocks; any lane.
 */
WEFTIO_FN weftio_u32 weftio_dev_send_queue_completed(const WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    return weftio_dev_is_send_queue(queue) ? weftio_dev_send_completed(&queue->ring) : 0;
}

/**
 * The next position to enqueue at whose slot is `masked`, for kernels that count modulo the depth. Never blocks; any
 * lane.
 */
WEFTIO_FN weftio_u32 weftio_dev_send_queue_unmask(const WEFTIO_GLOBAL struct weftio_dev_send_queue *queue,
                                                  weftio_u32 masked)
{
    if (!weftio_dev_is_send_queue(queue))
        return 0;
    weftio_u32 ready = weftio_load_relaxed_u32(&queue->ring.ready);

    return ready + ((masked - ready) & queue->ring.mask);
}

/**
 * Whether a weak entry may be written at `position`: it has not been committed, and is less than the depth of the ring
 * beyond the next one to commit.
 */
WEFTIO_FN weftio_u32 weftio_dev_weak_fits(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 position)
{
    return position - weftio_load_quiet_u32(&ring->ready) <= weftio_load_constant_u32(&ring->mask);
}

/** The words that give the status of a queue. Load them early, use them late: a load may take a bus round trip. */
struct weftio_dev_send_signs {
    weftio_u32 abort;
    weftio_u32 publication;
};
WEFTIO_FN struct weftio_dev_send_signs
weftio_dev_send_queue_signs(const WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    struct weftio_dev_send_signs signs;

    signs.abort = weftio_load_relaxed_u32(&queue->control->abort);
    signs.publication = weftio_load_relaxed_u32(&queue->ring.completion->publication);
    return signs;
}
WEFTIO_FN weftio_s32 weftio_dev_send_status(struct weftio_dev_send_signs signs)
{
    if (weftio_cqe_opcode(signs.publication) == WEFTIO_CQE_OPCODE_REQUESTER_ERROR)
        return WEFTIO_DEV_QUEUE_ERROR;
    return signs.abort ? WEFTIO_DEV_ABORTED : WEFTIO_DEV_OK;
}

/**
 * Status of the queue as functions that run often report it. Where a load from the memory of the host is a round trip
 * over a bus, and those of many lanes wait for each other, one lane loads every 33 us, and leaves what it has seen for
 * the others.
 *
 * @param seen  `seen` of the queue, loaded early: a time, and the status then in the lower 4 bits
 */
WEFTIO_FN weftio_s32 weftio_dev_send_look(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue, weftio_u32 seen)
{
#if WEFTIO_HOST_IS_FAR
    weftio_u32 now = (weftio_u32)(weftio_timer_ns() >> 15) << 4, status = seen & 15;

    if ((seen ^ now) < 16)
        return -(weftio_s32)status;
    /* A status other than OK may be that of an earlier kernel: everyone looks. */
    if (status == 0 && weftio_compare_exchange_acquire_u32(&queue->seen, seen, now) != seen)
        return WEFTIO_DEV_OK;
    status = (weftio_u32)-weftio_dev_send_status(weftio_dev_send_queue_signs(queue));
    weftio_store_relaxed_u32(&queue->seen, now | status);
    return -(weftio_s32)status;
#else
    (void)seen;
    return weftio_dev_send_status(weftio_dev_send_queue_signs(queue));
#endif
}

/**
 * Status of the queue. Never blocks; any lane.
 *
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_QUEUE_ERROR an entry has failed or the queue was stopped; WEFTIO_DEV_ABORTED the
 *         host asks the kernel to end; WEFTIO_DEV_INVALID_ARGUMENT as weftio_dev_send_queue_commit_strong
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_status(const WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    if (!weftio_dev_is_send_queue(queue))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    return weftio_dev_send_status(weftio_dev_send_queue_signs(queue));
}

/**
 * Whether the host asks the kernel to end: 1 or 0, on a GPU up to 33 us late. Never blocks; any lane. With
 * WEFTIO_DEV_CHECKS also 1 if `queue` is no send queue, so that the loop ends.
 */
WEFTIO_FN weftio_u32 weftio_dev_send_queue_aborted(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    if (!weftio_dev_is_send_queue(queue))
        return 1;
    if (WEFTIO_HOST_IS_FAR && weftio_dev_send_look(queue, weftio_load_relaxed_u32(&queue->seen)) == WEFTIO_DEV_OK)
        return 0;
    return weftio_dev_aborted(queue->control);
}

/**
 * Strong commits do not wait for each other: who finds another one under way leaves its entries behind, and that one
 * publishes them too. `commits` counts those under way; this bit of it is set while the publisher, who has done much
 * for others, offers his part to the next one that comes.
 */
#define WEFTIO_DEV_COMMITS_OFFERED 0x80000000u

/**
 * Removes the offer. Returns whether it was still there, and the caller is the publisher of `*seen` commits: all under
 * way.
 */
WEFTIO_FN weftio_u32 weftio_dev_send_take_offer(WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 commits,
                                                weftio_u32 *seen)
{
    while (commits & WEFTIO_DEV_COMMITS_OFFERED) {
        weftio_u32 before =
            weftio_compare_exchange_acquire_u32(&ring->commits, commits, commits & ~WEFTIO_DEV_COMMITS_OFFERED);
        *seen = commits & ~WEFTIO_DEV_COMMITS_OFFERED;
        if (before == commits)
            return 1;
        commits = before;
    }
    return 0;
}

/**
 * Joins the commits under way, with marks that the publisher may take from now on. Returns whether the caller is the
 * publisher, of `*seen` commits.
 */
WEFTIO_FN weftio_u32 weftio_dev_send_join_commits(WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 *seen)
{
    /* Release: the publisher sees the marks that were made before. Acquire: what the publisher before has written. */
    weftio_u32 others = weftio_fetch_add_u32(&ring->commits, 1);

    *seen = 1;
    return others == 0 || weftio_dev_send_take_offer(ring, others + 1, seen);
}

/**
 * The publisher has published `*seen` commits. Returns whether he has to go on, because `*seen` more have come
 * meanwhile.
 *
 * @param rung    the doorbell has just been rung, behind a fence that orders what was written
 * @param passes  how often he was here before
 */
WEFTIO_FN weftio_u32 weftio_dev_send_leave_commits(WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 rung,
                                                   weftio_u32 passes, weftio_u32 *seen)
{
    weftio_u32 left = rung ? weftio_fetch_add_acquire_u32(&ring->commits, 0u - *seen)
                           : weftio_fetch_add_u32(&ring->commits, 0u - *seen);

    *seen = left - *seen;
    if (*seen == 0 || passes < 4)
        return *seen != 0;
    left = weftio_fetch_add_acquire_u32(&ring->commits, WEFTIO_DEV_COMMITS_OFFERED) | WEFTIO_DEV_COMMITS_OFFERED;
    return weftio_dev_send_take_offer(ring, left, seen);
}

/**
 * Publishes the strong entries that are filled without a gap, or has the publisher do it that is under way, and rings
 * the doorbell for those that others left. Blocks only while it publishes for others.
 *
 * @param first, count  entries that the caller has filled and not marked; 0, 0: all are marked
 * @param rings         rings the doorbell in any case
 */
WEFTIO_FN void weftio_dev_send_queue_publish(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue, weftio_u32 first,
                                             weftio_u32 count, weftio_u32 rings)
{
    const struct weftio_dev_send_parts ring = weftio_dev_send_parts_of(&queue->ring);
    WEFTIO_GLOBAL struct weftio_dev_control *const control = queue->control;
    WEFTIO_GLOBAL weftio_u32 *const mark = &ring.filled[first & ring.mask];
    weftio_u32 early = weftio_load_relaxed_u32(&queue->ring.ready), beats = weftio_load_relaxed_u32(&queue->beats);
    weftio_u32 seen = 1, passes = 0;
    const weftio_u32 alone = weftio_compare_exchange_acquire_u32(&queue->ring.commits, 0, 1) == 0;
    /* Nobody moves `ready` beyond `first` before it is marked, so that an early load that finds it there is right. */
    weftio_u32 next = alone && count && early == first;

    if (alone && count && !next)
        weftio_store_relaxed_u32(mark, count);
    if (!alone) {
        /* Release, as in weftio_dev_send_fill: the publisher may take it at once. */
        if (count)
            weftio_store_release_u32(mark, count);
        if (!weftio_dev_send_join_commits(&queue->ring, &seen))
            return;
    }
    do {
        const weftio_u32 ready = next ? first : weftio_load_relaxed_u32(&queue->ring.ready);
        /* Behind the caller's entries, too: who has filled those there may have found this gap, and left. */
        const weftio_u32 filled = weftio_dev_send_scan(ring, next ? first + count : ready);
        next = 0;
        if (filled != ready)
            weftio_dev_send_publish_at(&queue->ring, ring.dbrec, filled);
        if (rings | passes)
            weftio_dev_send_doorbell_at(ring, filled);
        weftio_store_relaxed_u32(&queue->beats, ++beats);
        weftio_dev_trace(control, beats, WEFTIO_DEV_FUNCTION_COMMIT, filled, WEFTIO_DEV_OK);
    } while (weftio_dev_send_leave_commits(&queue->ring, rings | passes, passes, &seen) && ++passes);
}

/**
 * Publishes the strong entries that are filled without a gap; the NIC may execute them from now on. One lane of a
 * scope, after a barrier; several blocks may commit at once. Without enqueued entries nothing happens.
 *
 * Does not wait for other commits: if one is under way, it publishes these entries as well, soon after. If another
 * block has claimed a position and not filled it yet, the entries behind that position are published by the commit of
 * that block.
 *
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_QUEUE_ERROR the queue is in error, and the entries will be flushed;
 *         WEFTIO_DEV_ABORTED the host asks the kernel to end (the entries are published all the same), both on a GPU up
 *         to 33 us late; WEFTIO_DEV_INVALID_ARGUMENT with WEFTIO_DEV_CHECKS (handle.h), here and in all functions of
 *         this file: `queue` is no send queue, or another version's
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_commit_strong(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    if (!weftio_dev_is_send_queue(queue))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_s32 status = weftio_dev_send_look(queue, weftio_load_relaxed_u32(&queue->seen));

    weftio_dev_send_queue_publish(queue, 0, 0, 0);
    return status;
}

/** weftio_dev_send_queue_commit_weak, or weftio_dev_send_queue_submit_weak if `rings`. */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_publish_weak(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue,
                                                        weftio_u32 count, weftio_u32 rings)
{
    const struct weftio_dev_send_parts ring = weftio_dev_send_parts_of(&queue->ring);
    WEFTIO_GLOBAL struct weftio_dev_control *const control = queue->control;
    weftio_u32 ready = weftio_load_quiet_u32(&queue->ring.ready) + count;
    weftio_u32 beats = weftio_load_relaxed_u32(&queue->beats) + 1;
    weftio_s32 status = weftio_dev_send_look(queue, weftio_load_relaxed_u32(&queue->seen));

    if (count > ring.mask + 1)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (count) {
        weftio_store_relaxed_u32(&queue->ring.reserved, ready);
        weftio_store_relaxed_u32(&queue->ring.asked, ready);
        weftio_dev_send_publish_at(&queue->ring, ring.dbrec, ready);
    }
    if (rings)
        weftio_dev_send_doorbell_at(ring, ready);
    if (count | rings) {
        weftio_store_relaxed_u32(&queue->beats, beats);
        weftio_dev_trace(control, beats, WEFTIO_DEV_FUNCTION_COMMIT, ready, WEFTIO_DEV_OK);
    }
    return status;
}

/**
 * Publishes the next `count` weak entries. Never blocks. One lane, after a barrier behind the last enqueue of any lane.
 *
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_INVALID_ARGUMENT `count` is above the depth of the ring (nothing is published);
 *         WEFTIO_DEV_QUEUE_ERROR and WEFTIO_DEV_ABORTED as weftio_dev_send_queue_commit_strong
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_commit_weak(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue,
                                                       weftio_u32 count)
{
    if (!weftio_dev_is_send_queue(queue))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    return weftio_dev_send_queue_publish_weak(queue, count, 0);
}

/**
 * Rings the doorbell: a sleeping NIC wakes up and reads the doorbell record. One lane of a scope; several blocks may
 * push at once. Never blocks; in inline mode this call runs the engine. With WEFTIO_DEV_CHECKS it does nothing if
 * `queue` is no send queue.
 */
WEFTIO_FN void weftio_dev_send_queue_push(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    if (!weftio_dev_is_send_queue(queue))
        return;
    weftio_u32 ready = weftio_load_relaxed_u32(&queue->ring.ready);

    weftio_dev_send_doorbell_at(weftio_dev_send_parts_of(&queue->ring), ready);
    weftio_dev_beat(queue->control, &queue->beats, WEFTIO_DEV_FUNCTION_PUSH, ready, WEFTIO_DEV_OK);
    weftio_dev_nic_turn(queue->turn, queue->turn_context);
}

/**
 * Whether the entry at free-running index `position` is done: the NIC has executed it and no longer uses its buffer.
 * Never blocks; any lane.
 *
 * @pre `position` was committed, and not more than 2^15 positions ago
 * @param[out] completed_ns  UTC of the queue's latest completion, which is that of the entry or a later one; unchanged
 *                           unless OK
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_NOT_FOUND not yet; WEFTIO_DEV_QUEUE_ERROR the entry failed, was flushed, or was
 *         done before a later entry failed: the host's progress_engine reports the entry that failed
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_poll_completion(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue,
                                                           weftio_u32 position, weftio_u64 *completed_ns)
{
    if (!weftio_dev_is_send_queue(queue))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_u32 completed = weftio_dev_send_completed(&queue->ring);

    if (completed - position - 1 >= 0x80000000u)
        return WEFTIO_DEV_NOT_FOUND;
    weftio_u64 timestamp = weftio_swap64(weftio_load_acquire_sys_u64(&queue->ring.completion->timestamp_be));
    /* Seconds 0 are no time: the NIC is publishing an error, whose syndrome already lies in these bytes. */
    if (weftio_dev_send_failed(&queue->ring) || !(timestamp >> 32))
        return WEFTIO_DEV_QUEUE_ERROR;
    *completed_ns = weftio_real_time_to_ns(timestamp);
    return WEFTIO_DEV_OK;
}

/**
 * One iteration of a wait that has not found what it waits for: leaves the trace and, in inline mode, runs the engine.
 *
 * @param attempt           0 in the first call, which sets `start_ns`
 * @param[in,out] start_ns  time of the first call
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_TIMEOUT `timeout_ns` (0: no time bound) have passed since the first call
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_wait_on(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue,
                                                   weftio_u32 attempt, weftio_u64 timeout_ns, weftio_u64 *start_ns,
                                                   weftio_u32 index, weftio_s32 status)
{
    weftio_u64 now_ns = weftio_dev_clock_ns(queue->clock);

    if (!attempt)
        *start_ns = now_ns;
    if (timeout_ns && now_ns - *start_ns >= timeout_ns)
        return WEFTIO_DEV_TIMEOUT;
    /* Where the host is far, the traces of many that wait would fill the bus. */
    if (!WEFTIO_HOST_IS_FAR || attempt % 64 == 63)
        weftio_dev_beat(queue->control, &queue->beats, WEFTIO_DEV_FUNCTION_POLL, index, status);
    weftio_dev_nic_turn(queue->turn, queue->turn_context);
    weftio_relax(attempt);
    return WEFTIO_DEV_OK;
}

/**
 * Waits until at least `count` positions are free. Blocks until then, for `timeout_ns` at most (0: no time bound); in
 * inline mode this call runs the engine. One lane.
 *
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_TIMEOUT `timeout_ns` have passed; WEFTIO_DEV_ABORTED or WEFTIO_DEV_QUEUE_ERROR,
 *         also when positions are free; WEFTIO_DEV_INVALID_ARGUMENT `count` is above the depth of the ring
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_wait_room(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue,
                                                     weftio_u32 count, weftio_u64 timeout_ns)
{
    weftio_u64 start_ns = 0;

    if (!weftio_dev_is_send_queue(queue) || count > queue->ring.mask + 1)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    for (weftio_u32 attempt = 0;; ++attempt) {
        weftio_u32 seen = weftio_load_relaxed_u32(&queue->seen), room = weftio_dev_send_room(&queue->ring, count);
        weftio_s32 status = weftio_dev_send_look(queue, seen);
        if (status != WEFTIO_DEV_OK || room >= count)
            return status;
        status = weftio_dev_send_queue_wait_on(queue, attempt, timeout_ns, &start_ns,
                                               weftio_load_relaxed_u32(&queue->ring.reserved), WEFTIO_DEV_FULL);
        if (status != WEFTIO_DEV_OK)
            return status;
    }
}

/**
 * Waits until the entry at free-running index `position` is done (see weftio_dev_send_queue_poll_completion). Blocks
 * until then, for `timeout_ns` at most (0: no time bound); in inline mode this call runs the engine. Any lane, several
 * at once.
 *
 * @pre `position` is at most 2^15 before the last committed one. A position that is not committed yet is allowed if
 *      another lane will commit it
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_TIMEOUT `timeout_ns` have passed; WEFTIO_DEV_ABORTED the host asks the kernel to
 *         end, also when the entry is done; WEFTIO_DEV_QUEUE_ERROR as weftio_dev_send_queue_poll_completion
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_wait_completed(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue,
                                                          weftio_u32 position, weftio_u64 timeout_ns)
{
    weftio_u64 start_ns = 0, completed_ns;

    if (!weftio_dev_is_send_queue(queue))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    for (weftio_u32 attempt = 0;; ++attempt) {
        weftio_s32 status = weftio_dev_send_queue_status(queue);
        if (status == WEFTIO_DEV_OK)
            status = weftio_dev_send_queue_poll_completion(queue, position, &completed_ns);
        if (status != WEFTIO_DEV_NOT_FOUND)
            return status;
        status = weftio_dev_send_queue_wait_on(queue, attempt, timeout_ns, &start_ns, position, WEFTIO_DEV_NOT_FOUND);
        if (status != WEFTIO_DEV_OK)
            return status;
    }
}

/**
 * As weftio_dev_send_queue_wait_room, for a block: all its lanes call with equal arguments, and all get the same
 * status. The call has its own barriers.
 *
 * @pre no other block uses the queue
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_wait_room_block(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue,
                                                           weftio_u32 count, weftio_u64 timeout_ns)
{
    weftio_u32 failure =
        weftio_lane() == 0 ? (weftio_u32)-weftio_dev_send_queue_wait_room(queue, count, timeout_ns) : 0;

    return -(weftio_s32)weftio_block_first_u64(failure, &queue->scratch);
}

/**
 * Commits strong entries and rings the doorbell: as weftio_dev_send_queue_commit_strong followed by
 * weftio_dev_send_queue_push, in fewer steps. One lane of a scope, after a barrier. Returns the status of the commit.
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_submit(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    if (!weftio_dev_is_send_queue(queue))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_s32 status = weftio_dev_send_look(queue, weftio_load_relaxed_u32(&queue->seen));

    weftio_dev_send_queue_publish(queue, 0, 0, 1);
    weftio_dev_nic_turn(queue->turn, queue->turn_context);
    return status;
}

/**
 * The same for the next `count` weak entries: as weftio_dev_send_queue_commit_weak followed by
 * weftio_dev_send_queue_push, in fewer steps.
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_submit_weak(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue,
                                                       weftio_u32 count)
{
    if (!weftio_dev_is_send_queue(queue))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_s32 status = weftio_dev_send_queue_publish_weak(queue, count, 1);

    weftio_dev_nic_turn(queue->turn, queue->turn_context);
    return status;
}

/**
 * As weftio_dev_send_queue_submit, and waits until all entries that were enqueued before are published: another commit
 * that is under way may do it only later. Blocks until then, for `*timeout_ns` at most (0: no time bound).
 *
 * @param[in,out] timeout_ns  in the end what is left of it
 * @param[out] end            position behind those entries
 * @return as weftio_dev_send_queue_submit_wait
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_submit_all(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue,
                                                      weftio_u64 *timeout_ns, weftio_u32 *end)
{
    weftio_u64 start_ns = 0;

    if (!weftio_dev_is_send_queue(queue))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    *end = weftio_load_relaxed_u32(&queue->ring.reserved);
    weftio_s32 status = weftio_dev_send_queue_submit(queue);

    for (weftio_u32 attempt = 0; status == WEFTIO_DEV_OK; ++attempt) {
        weftio_u32 ready = weftio_load_relaxed_u32(&queue->ring.ready);
        if (ready - *end < 0x80000000u) {
            if (attempt && *timeout_ns) {
                const weftio_u64 spent_ns = weftio_dev_clock_ns(queue->clock) - start_ns;
                *timeout_ns = spent_ns < *timeout_ns ? *timeout_ns - spent_ns : 1; /* 0 would be no bound */
            }
            return WEFTIO_DEV_OK;
        }
        /* Filled since, by a lane that may wait for this call before it commits. */
        if (!weftio_load_relaxed_u32(&queue->ring.commits) &&
            weftio_load_relaxed_u32(&queue->ring.filled[ready & queue->ring.mask]))
            weftio_dev_send_queue_publish(queue, 0, 0, 1);
        status = weftio_dev_send_queue_status(queue);
        if (status == WEFTIO_DEV_OK)
            status = weftio_dev_send_queue_wait_on(queue, attempt, *timeout_ns, &start_ns, ready, WEFTIO_DEV_NOT_FOUND);
    }
    return status;
}

/** Whether all entries below `end` are done, also when nothing has ever been committed. Never blocks; any lane. */
WEFTIO_FN weftio_u32 weftio_dev_send_queue_done(const WEFTIO_GLOBAL struct weftio_dev_send_queue *queue, weftio_u32 end)
{
    return weftio_dev_send_completed(&queue->ring) - end < 0x80000000u;
}

/**
 * Commits strong entries, rings the doorbell, and waits until all entries that were enqueued before are done, also
 * those of other blocks. Blocks until then, for `timeout_ns` at most (0: no time bound). One lane of a scope, after a
 * barrier.
 *
 * @pre each entry takes one position
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_TIMEOUT; WEFTIO_DEV_ABORTED; WEFTIO_DEV_QUEUE_ERROR; WEFTIO_DEV_INVALID_ARGUMENT as
 *         weftio_dev_send_queue_commit_strong
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_submit_wait(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue,
                                                       weftio_u64 timeout_ns)
{
    weftio_u32 end;
    weftio_s32 status = weftio_dev_send_queue_submit_all(queue, &timeout_ns, &end);

    if (status != WEFTIO_DEV_OK)
        return status;
    if (weftio_dev_send_queue_done(queue, end))
        return weftio_dev_send_queue_status(queue);
    return weftio_dev_send_queue_wait_completed(queue, end - 1, timeout_ns);
}
