/**
 * A send queue inside a kernel, of any kind: Ethernet frames (eth_txq.h), memory copies (dma.h), file operations
 * (file.h) or RDMA requests (rdma.h). The receive entries of RDMA (rdma/receive.h) are enqueued and committed in the
 * same way.
 *
 * Life of an entry: *enqueue* writes it, in the way of each kind of queue. *Commit* publishes entries. *Push* rings the
 * doorbell, which wakes a sleeping NIC. The NIC executes entries and completes them in order. *Strong* functions find a
 * free position themselves; any lane of any block may call them. *Weak* functions are given the position by the caller
 * and use no atomics. A queue is used in one of the two modes at a time.
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
    weftio_u32 reserved[3];
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
    return position - weftio_load_relaxed_u32(&ring->ready) <= ring->mask;
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
 * Whether the host asks the kernel to end: 1 or 0. Never blocks; any lane. With WEFTIO_DEV_CHECKS also 1 if `queue` is
 * no send queue, so that the loop ends.
 */
WEFTIO_FN weftio_u32 weftio_dev_send_queue_aborted(const WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    return !weftio_dev_is_send_queue(queue) || weftio_dev_aborted(queue->control);
}

/**
 * Takes the lock of strong commits and pushes. Blocks while another block holds it, for a few instructions each.
 * Returns 1; or 0, without the lock, when the host asks the kernel to end.
 */
WEFTIO_FN weftio_u32 weftio_dev_send_queue_lock(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    /*
     * A load of the lock is fast; a load of the abort flag may be a round trip over a bus, so only every 64th attempt
     * reads it.
     */
    for (weftio_u32 attempt = 0; weftio_compare_exchange_u32(&queue->ring.lock, 0, 1) != 0;) {
        do {
            if (++attempt % 64 == 0 && weftio_dev_aborted(queue->control))
                return 0;
            weftio_relax(attempt);
        } while (weftio_load_relaxed_u32(&queue->ring.lock));
    }
    return 1;
}
WEFTIO_FN void weftio_dev_send_queue_unlock(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    weftio_store_release_u32(&queue->ring.lock, 0);
}

/**
 * Publishes the strong entries that are filled without a gap. Returns the index after the last of them.
 *
 * @pre the lock is held
 */
WEFTIO_FN weftio_u32 weftio_dev_send_queue_publish(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    weftio_u32 ready = weftio_load_relaxed_u32(&queue->ring.ready);
    weftio_u32 filled = weftio_dev_send_scan(&queue->ring, ready);

    if (filled != ready)
        weftio_dev_send_publish(&queue->ring, filled);
    return filled;
}

/**
 * Publishes the strong entries that are filled without a gap; the NIC may execute them from now on. One lane of a
 * scope, after a barrier; several blocks may commit at once. Blocks only while another block is in the few instructions
 * of its commit. Without enqueued entries nothing happens.
 *
 * If another block has claimed a position and not filled it yet, the entries behind that position are published by the
 * commit of that block.
 *
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_QUEUE_ERROR the queue is in error, and the entries will be flushed;
 *         WEFTIO_DEV_ABORTED the host asks the kernel to end (the entries are published all the same, unless another
 *         block held the lock); WEFTIO_DEV_INVALID_ARGUMENT with WEFTIO_DEV_CHECKS (handle.h), here and in all
 *         functions of this file: `queue` is no send queue, or another version's
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_commit_strong(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    if (!weftio_dev_is_send_queue(queue))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (!weftio_dev_send_queue_lock(queue))
        return WEFTIO_DEV_ABORTED;
    weftio_u32 filled = weftio_dev_send_queue_publish(queue);
    /* Loads and stores that cross a bus start before the unlock: its release then waits once for all of them. */
    struct weftio_dev_send_signs signs = weftio_dev_send_queue_signs(queue);
    weftio_dev_beat(queue->control, &queue->beats, WEFTIO_DEV_FUNCTION_COMMIT, filled, WEFTIO_DEV_OK);
    weftio_dev_send_queue_unlock(queue);
    return weftio_dev_send_status(signs);
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
    struct weftio_dev_send_signs signs = weftio_dev_send_queue_signs(queue);

    if (count > queue->ring.mask + 1)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (count) {
        weftio_u32 ready = weftio_load_relaxed_u32(&queue->ring.ready) + count;
        weftio_store_relaxed_u32(&queue->ring.reserved, ready);
        weftio_store_relaxed_u32(&queue->ring.asked, ready);
        weftio_dev_send_publish(&queue->ring, ready);
        weftio_dev_beat(queue->control, &queue->beats, WEFTIO_DEV_FUNCTION_COMMIT, ready, WEFTIO_DEV_OK);
    }
    return weftio_dev_send_status(signs);
}

/**
 * Rings the doorbell: a sleeping NIC wakes up and reads the doorbell record. One lane of a scope; several blocks may
 * push at once. Blocks only while another block is in the few instructions of its commit or push; in inline mode this
 * call runs the engine. With WEFTIO_DEV_CHECKS it does nothing if `queue` is no send queue.
 */
WEFTIO_FN void weftio_dev_send_queue_push(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    if (!weftio_dev_is_send_queue(queue))
        return;
    weftio_u32 locked = weftio_dev_send_queue_lock(queue);

    weftio_dev_send_doorbell(&queue->ring);
    weftio_dev_beat(queue->control, &queue->beats, WEFTIO_DEV_FUNCTION_PUSH,
                    weftio_load_relaxed_u32(&queue->ring.ready), WEFTIO_DEV_OK);
    if (locked)
        weftio_dev_send_queue_unlock(queue);
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
        weftio_s32 status = weftio_dev_send_queue_status(queue);
        if (status != WEFTIO_DEV_OK || weftio_dev_send_room(&queue->ring, count) >= count)
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

    return -(weftio_s32)weftio_block_sum_u32(failure, &queue->scratch);
}

/**
 * Commits strong entries and rings the doorbell: weftio_dev_send_queue_commit_strong followed by
 * weftio_dev_send_queue_push. One lane of a scope, after a barrier. Returns the status of the commit.
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_submit(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    weftio_s32 status = weftio_dev_send_queue_commit_strong(queue);

    weftio_dev_send_queue_push(queue);
    return status;
}

/**
 * The same for the next `count` weak entries: weftio_dev_send_queue_commit_weak followed by weftio_dev_send_queue_push.
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_submit_weak(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue,
                                                       weftio_u32 count)
{
    weftio_s32 status = weftio_dev_send_queue_commit_weak(queue, count);

    weftio_dev_send_queue_push(queue);
    return status;
}

/**
 * Commits strong entries, rings the doorbell, and waits until all committed entries are done. Blocks until then, for
 * `timeout_ns` at most (0: no time bound). One lane of a scope, after a barrier. The wait may include entries that
 * other blocks commit meanwhile.
 *
 * @pre each entry takes one position
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_TIMEOUT; WEFTIO_DEV_ABORTED; WEFTIO_DEV_QUEUE_ERROR; WEFTIO_DEV_INVALID_ARGUMENT as
 *         weftio_dev_send_queue_commit_strong
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_submit_wait(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue,
                                                       weftio_u64 timeout_ns)
{
    weftio_s32 status = weftio_dev_send_queue_submit(queue);

    if (status != WEFTIO_DEV_OK)
        return status;
    weftio_u32 ready = weftio_load_relaxed_u32(&queue->ring.ready);
    if (weftio_dev_send_completed(&queue->ring) == ready) /* also when nothing has ever been committed */
        return weftio_dev_send_queue_status(queue);
    return weftio_dev_send_queue_wait_completed(queue, ready - 1, timeout_ns);
}
