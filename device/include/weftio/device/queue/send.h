/**
 * A send queue inside a kernel, whatever it sends: frames (eth_txq.h), copies of memory (dma.h), reads and
 * writes of files (file.h) or RDMA (rdma.h). The
 * receive entries of RDMA (rdma/receive.h) are enqueued and committed in the same way.
 *
 * Life of an entry: *enqueue* writes it, which each kind of queue does in its own way; *commit* publishes entries;
 * *push* makes the NIC look; the NIC executes them in order and completes. *Strong* functions find the position
 * themselves, from any lane of any block. *Weak* ones are told the position and use no atomics. A queue is used in one
 * mode at a time.
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

/** Whether the handle is that of a ring of entries, of whatever kind: as weftio_dev_is_handle. */
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
#define WEFTIO_DEV_SEND_NOTIFY 0x1u /**< tell the host's progress_engine when it is done */

WEFTIO_FN weftio_u32 weftio_dev_completion_mode(weftio_u32 flags)
{
    return flags & WEFTIO_DEV_SEND_NOTIFY ? WEFTIO_CE_ALWAYS_AND_EVENT : WEFTIO_CE_ALWAYS;
}

/**
 * Control segment, at the start of an entry: written last, so that the body is there when its index is.
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

/** Where the next entry goes, and the mask of positions: for weak mode. Never blocks; any lane, while none enqueues. */
WEFTIO_FN void weftio_dev_send_queue_get_info(const WEFTIO_GLOBAL struct weftio_dev_send_queue *queue,
                                              weftio_u32 *position, weftio_u32 *mask)
{
    const weftio_u32 is_queue = weftio_dev_is_send_queue(queue);

    *position = is_queue ? weftio_load_relaxed_u32(&queue->ring.reserved) : 0;
    *mask = is_queue ? queue->ring.mask : 0;
}

/** Free-running index behind the last entry that the NIC is done with, executed or failed. Never blocks; any lane. */
WEFTIO_FN weftio_u32 weftio_dev_send_queue_completed(const WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    return weftio_dev_is_send_queue(queue) ? weftio_dev_send_completed(&queue->ring) : 0;
}

/**
 * The position to enqueue at that lies in slot `masked` of the ring, for who counts modulo the depth. Never blocks; any
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
 * Whether a weak entry may be written at `position`: it is not committed, and within the ring's depth of the next one.
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
 * WEFTIO_DEV_QUEUE_ERROR, WEFTIO_DEV_ABORTED or WEFTIO_DEV_OK; WEFTIO_DEV_INVALID_ARGUMENT as
 * weftio_dev_send_queue_commit_strong. Never blocks; any lane.
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_status(const WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    if (!weftio_dev_is_send_queue(queue))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    return weftio_dev_send_status(weftio_dev_send_queue_signs(queue));
}

/**
 * Whether the host asks the kernel to end: 1 or 0. Never blocks; any lane. With WEFTIO_DEV_CHECKS also 1 of what is no
 * send queue.
 */
WEFTIO_FN weftio_u32 weftio_dev_send_queue_aborted(const WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    return !weftio_dev_is_send_queue(queue) || weftio_dev_aborted(queue->control);
}

/**
 * Waits for the other blocks that are in a commit or a push, a few instructions each. Returns 0 when the host wants an
 * end.
 */
WEFTIO_FN weftio_u32 weftio_dev_send_queue_lock(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    /* A look at the lock is quick; one at the abort flag may be a round trip over a bus. */
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

/** Publishes the strong entries that are filled without a gap. @pre the lock is held. Returns the end of those. */
WEFTIO_FN weftio_u32 weftio_dev_send_queue_publish(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    weftio_u32 ready = weftio_load_relaxed_u32(&queue->ring.ready);
    weftio_u32 filled = weftio_dev_send_scan(&queue->ring, ready);

    if (filled != ready)
        weftio_dev_send_publish(&queue->ring, filled);
    return filled;
}

/**
 * Publishes the strong entries that are filled without a gap; the NIC may execute them from now on. One lane of a scope,
 * after a barrier; several blocks may commit at once. Waits while another block is in the same few instructions.
 *
 * Entries behind one that another block has claimed but not filled are published by that block's commit. With nothing
 * enqueued nothing happens.
 *
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_QUEUE_ERROR the queue is in error and what was enqueued will be flushed;
 *         WEFTIO_DEV_ABORTED the host asked the kernel to end (what was enqueued before is published all the same,
 *         unless another block is at it); WEFTIO_DEV_INVALID_ARGUMENT with WEFTIO_DEV_CHECKS (handle.h), here and in the
 *         functions beside it: `queue` is no send queue, or another version's
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_commit_strong(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    if (!weftio_dev_is_send_queue(queue))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (!weftio_dev_send_queue_lock(queue))
        return WEFTIO_DEV_ABORTED;
    weftio_u32 filled = weftio_dev_send_queue_publish(queue);
    /* Loads and stores that cross a bus start before the unlock, whose wait covers them all. */
    struct weftio_dev_send_signs signs = weftio_dev_send_queue_signs(queue);
    weftio_dev_beat(queue->control, &queue->beats, WEFTIO_DEV_FUNCTION_COMMIT, filled, WEFTIO_DEV_OK);
    weftio_dev_send_queue_unlock(queue);
    return weftio_dev_send_status(signs);
}

/**
 * Publishes the next `count` weak entries. One lane, after a barrier behind all enqueues. Never blocks.
 *
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_INVALID_ARGUMENT more than the ring holds (nothing is published);
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
 * Makes a NIC that sleeps look at what has been committed. One lane of a scope; several blocks may push at once. Waits while
 * another block is in the same few instructions; in inline mode the NIC runs inside this call. With WEFTIO_DEV_CHECKS
 * what is no send queue is left alone.
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
 * Whether the entry at free-running index `position` is done: executed, its buffer free. Never
 * blocks; any lane.
 *
 * @pre `position` was committed, and not more than 2^15 positions ago
 * @param[out] completed_ns  UTC of the latest completion of the queue, when that is not older; unchanged unless OK
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_NOT_FOUND not yet; WEFTIO_DEV_QUEUE_ERROR it failed, was flushed, or was done
 *         before a later entry failed: the host's progress_engine knows which
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
    /* Second 0 is none: the NIC is about to publish an error, and its syndrome is there already. */
    if (weftio_dev_send_failed(&queue->ring) || !(timestamp >> 32))
        return WEFTIO_DEV_QUEUE_ERROR;
    *completed_ns = weftio_real_time_to_ns(timestamp);
    return WEFTIO_DEV_OK;
}

/**
 * What a wait on a queue does when it has found nothing. WEFTIO_DEV_TIMEOUT: `timeout_ns` have passed since its first
 * call.
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
 * Waits until at least `count` positions are free, bounded by `timeout_ns` (0: by the abort flag only). One lane.
 *
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_TIMEOUT; WEFTIO_DEV_ABORTED or WEFTIO_DEV_QUEUE_ERROR, also when there is room;
 *         WEFTIO_DEV_INVALID_ARGUMENT `count` is more than the ring has
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
 * Waits until the entry at free-running index `position` is done, as weftio_dev_send_queue_poll_completion tells, bounded
 * by `timeout_ns` (0: by the abort flag only). Any lane, several at once.
 *
 * @pre `position` is at most 2^15 behind the last one committed. One that nobody has committed yet may be waited for,
 *      if somebody else will
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_TIMEOUT; WEFTIO_DEV_ABORTED, also when the entry is done; WEFTIO_DEV_QUEUE_ERROR as
 *         weftio_dev_send_queue_poll_completion
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
 * As weftio_dev_send_queue_wait_room, for a block: all its lanes call, all get the same status. Brings its own barriers.
 *
 * @pre one block uses the queue
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_wait_room_block(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue,
                                                           weftio_u32 count, weftio_u64 timeout_ns)
{
    weftio_u32 failure =
        weftio_lane() == 0 ? (weftio_u32)-weftio_dev_send_queue_wait_room(queue, count, timeout_ns) : 0;

    return -(weftio_s32)weftio_block_sum_u32(failure, &queue->scratch);
}

/**
 * Commits strong entries and pushes, as weftio_dev_send_queue_commit_strong and weftio_dev_send_queue_push. One lane
 * of a scope, after a barrier.
 */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_submit(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue)
{
    weftio_s32 status = weftio_dev_send_queue_commit_strong(queue);

    weftio_dev_send_queue_push(queue);
    return status;
}

/** The same for the next `count` weak entries, as weftio_dev_send_queue_commit_weak. */
WEFTIO_FN weftio_s32 weftio_dev_send_queue_submit_weak(WEFTIO_GLOBAL struct weftio_dev_send_queue *queue,
                                                       weftio_u32 count)
{
    weftio_s32 status = weftio_dev_send_queue_commit_weak(queue, count);

    weftio_dev_send_queue_push(queue);
    return status;
}

/**
 * Commits strong entries, pushes, and waits until everything that was committed is done, bounded by `timeout_ns` (0: by
 * the abort flag only). One lane of a scope; what other blocks commit meanwhile may be waited for too.
 *
 * @pre each entry takes one position
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_TIMEOUT; WEFTIO_DEV_ABORTED; WEFTIO_DEV_QUEUE_ERROR; WEFTIO_DEV_INVALID_ARGUMENT
 *         as weftio_dev_send_queue_commit_strong
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
