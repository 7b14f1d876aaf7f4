/**
 * The Ethernet send queue inside a kernel.
 *
 * Life of a frame: *enqueue* writes an entry that points at it; *commit* publishes entries; *push* makes the NIC look;
 * the NIC sends in order and completes. *Strong* functions find the position themselves, from any lane of any block.
 * *Weak* ones are told the position and use no atomics. A queue is used in one mode at a time.
 *
 * Anything a key covers may be sent: buffers of a buf_arr, and received packets where they lie
 * (weftio_dev_eth_rxq_buf).
 */
#pragma once

#include "weftio/device/buf.h"
#include "weftio/device/clock.h"
#include "weftio/device/control.h"
#include "weftio/device/eth_rxq.h"
#include "weftio/device/ring.h"
#include "weftio/device/wqe.h"

/** Made by the host class `eth_txq`. Kernels use it through the functions below only. */
struct weftio_dev_eth_txq {
    struct weftio_dev_send_ring ring;
    WEFTIO_GLOBAL struct weftio_dev_control *control;
    const WEFTIO_GLOBAL struct weftio_dev_clock *clock;
    weftio_u64 turn; /**< inline mode on a CPU: function that runs the engine once, else 0 */
    weftio_u64 turn_context;
    weftio_u32 scratch; /**< for platforms whose block sum needs memory */
    weftio_u32 beats;   /**< as in the trace */
    weftio_u64 reserved2[2];
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_eth_txq) == 128, "host and device share this layout");

/**
 * Flags of an enqueue call. A checksum field is sent as it is where the NIC cannot fill it in: no IPv4 header, or no
 * UDP or TCP header, that is whole behind at most four VLAN tags; of UDP and TCP also fragments, impossible lengths,
 * and segments left in an IPv6 routing header (docs/formats.md, section "Entries").
 */
#define WEFTIO_DEV_SEND_NONE 0x0u
#define WEFTIO_DEV_SEND_NOTIFY 0x1u      /**< tell the host's progress_engine when it has been sent */
#define WEFTIO_DEV_SEND_L3_CHECKSUM 0x2u /**< the NIC computes the IPv4 header checksum */
#define WEFTIO_DEV_SEND_L4_CHECKSUM 0x4u /**< the NIC computes the UDP or TCP checksum */

/** Longest frame that fits an entry itself: two blocks less control, Ethernet and inline heads. */
#define WEFTIO_DEV_INLINE_BYTES 92u

/** What a send entry says, apart from where the bytes are. */
WEFTIO_FN weftio_u32 weftio_dev_completion_mode(weftio_u32 flags)
{
    return flags & WEFTIO_DEV_SEND_NOTIFY ? WEFTIO_CE_ALWAYS_AND_EVENT : WEFTIO_CE_ALWAYS;
}
WEFTIO_FN weftio_u32 weftio_dev_checksum_flags(weftio_u32 flags)
{
    return (flags & WEFTIO_DEV_SEND_L3_CHECKSUM ? WEFTIO_ETH_L3_CHECKSUM : 0) |
           (flags & WEFTIO_DEV_SEND_L4_CHECKSUM ? WEFTIO_ETH_L4_CHECKSUM : 0);
}

/** Control segment, at the start of an entry: written last, so that the body is there when its index is. */
WEFTIO_FN void weftio_dev_write_control(WEFTIO_GLOBAL weftio_u32 *block, weftio_u32 index, weftio_u32 opcode,
                                        weftio_u32 queue_ds, weftio_u32 flags)
{
    weftio_u32 opmod_index_opcode = (opcode & 0xff00u) << 16 | (index & 0xffffu) << 8 | (opcode & 0xffu);
    weftio_u64 start_be = weftio_swap64((weftio_u64)opmod_index_opcode << 32 | queue_ds);

    weftio_store_x4(block, (weftio_u32)start_be, (weftio_u32)(start_be >> 32), weftio_dev_completion_mode(flags) << 24,
                    0);
}

/** The entry of one frame in memory: control, Ethernet, pointer. One block. */
WEFTIO_FN void weftio_dev_write_send(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 index,
                                     struct weftio_dev_buf buffer, weftio_u32 bytes, weftio_u32 flags)
{
    WEFTIO_GLOBAL weftio_u32 *block = weftio_dev_send_block(ring, index);
    weftio_u64 address_be = weftio_swap64((weftio_u64)buffer.address);

    weftio_store_x4(block + 4, 0, weftio_dev_checksum_flags(flags), 0, 0);
    weftio_store_x4(block + 8, weftio_swap32(bytes), buffer.lkey_be, (weftio_u32)address_be,
                    (weftio_u32)(address_be >> 32));
    weftio_dev_write_control(block, index, WEFTIO_OPCODE_SEND, ring->queue << 8 | 3, flags);
}

/** The entry of a wait until `value`. One block. */
WEFTIO_FN void weftio_dev_write_wait(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 index,
                                     weftio_u64 value, weftio_u32 flags)
{
    WEFTIO_GLOBAL weftio_u32 *block = weftio_dev_send_block(ring, index);

    weftio_store_x4(block + 4, weftio_swap32(WEFTIO_WAIT_CYCLIC_SMALLER), 0, 0, 0);
    weftio_store_x4(block + 8, weftio_swap32((weftio_u32)(value >> 32)), weftio_swap32((weftio_u32)value),
                    weftio_swap32((weftio_u32)(WEFTIO_REAL_TIME_MASK >> 32)),
                    weftio_swap32((weftio_u32)WEFTIO_REAL_TIME_MASK));
    weftio_dev_write_control(block, index, WEFTIO_OPCODE_WAIT | WEFTIO_WAIT_ON_TIME << 8, ring->queue << 8 | 3, flags);
}

/** Where the next entry goes, and the mask of positions: for weak mode. Never blocks; any lane, while none enqueues. */
WEFTIO_FN void weftio_dev_eth_txq_get_info(const WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq, weftio_u32 *position,
                                           weftio_u32 *mask)
{
    *position = weftio_load_relaxed_u32(&txq->ring.reserved);
    *mask = txq->ring.mask;
}

/**
 * Free-running index behind the last entry that the NIC is done with, sent or failed. Never blocks; any lane.
 *
 * For a kernel that sends received packets from where they lie: those of entries below it may be released.
 */
WEFTIO_FN weftio_u32 weftio_dev_eth_txq_completed(const WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq)
{
    return weftio_dev_send_completed(&txq->ring);
}

/**
 * The received packet `index` as a buffer, to be sent from where it lies. Do not release it before the send has
 * completed.
 */
WEFTIO_FN struct weftio_dev_buf weftio_dev_eth_rxq_buf(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq,
                                                       weftio_u32 index)
{
    struct weftio_dev_buf buffer;

    buffer.address = weftio_dev_eth_rxq_address(rxq, index);
    buffer.bytes = rxq->slot_bytes;
    buffer.lkey_be = rxq->lkey_be;
    return buffer;
}

/**
 * Enqueues one frame at the next free position and tells which that is. Never blocks. Any lane of any block, several at
 * once.
 *
 * The bytes are read when the NIC sends: leave the buffer alone until the entry has completed.
 *
 * @param bytes           frame length without FCS; frames below 60 bytes are padded on the wire
 * @param[out] position   free-running index of the entry, for weftio_dev_eth_txq_poll_completion() and
 *                        weftio_dev_eth_txq_wait_completed(); unchanged on error
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_FULL no free position (nothing is enqueued); WEFTIO_DEV_INVALID_ARGUMENT `bytes` is
 *         0 or more than the buffer has
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_send_enqueue_strong_position(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                                     struct weftio_dev_buf buffer, weftio_u32 bytes,
                                                                     weftio_u32 flags, weftio_u32 *position)
{
    weftio_u32 index;

    if (bytes == 0 || bytes > buffer.bytes)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (!weftio_dev_send_reserve(&txq->ring, 1, &index))
        return WEFTIO_DEV_FULL;
    weftio_dev_write_send(&txq->ring, index, buffer, bytes, flags);
    weftio_dev_send_fill(&txq->ring, index, 1);
    *position = index;
    return WEFTIO_DEV_OK;
}

/** As weftio_dev_eth_txq_send_enqueue_strong_position, for who need not know where. */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_send_enqueue_strong(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                            struct weftio_dev_buf buffer, weftio_u32 bytes,
                                                            weftio_u32 flags)
{
    weftio_u32 position;

    return weftio_dev_eth_txq_send_enqueue_strong_position(txq, buffer, bytes, flags, &position);
}

/**
 * Enqueues a barrier at the next free position: what follows is not sent before `value`, which the host's
 * eth_txq::timestamp() makes (weftio_dev_timestamp_add() moves it on). As weftio_dev_eth_txq_send_enqueue_strong
 * otherwise.
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_wait_time_enqueue_strong(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                                 weftio_u64 value, weftio_u32 flags)
{
    weftio_u32 index;

    if (!weftio_dev_send_reserve(&txq->ring, 1, &index))
        return WEFTIO_DEV_FULL;
    weftio_dev_write_wait(&txq->ring, index, value, flags);
    weftio_dev_send_fill(&txq->ring, index, 1);
    return WEFTIO_DEV_OK;
}

/** Four bytes from `at` as a word in memory order; bytes beyond `bytes` are 0. */
WEFTIO_FN weftio_u32 weftio_dev_gather(const WEFTIO_GLOBAL weftio_u8 *frame, weftio_u32 at, weftio_u32 bytes)
{
    weftio_u32 word = 0;

    for (weftio_u32 byte = 0; byte < 4 && at + byte < bytes; ++byte)
        word |= (weftio_u32)frame[at + byte] << (8 * byte);
    return word;
}

/**
 * Enqueues a small frame whose bytes travel inside the entry: `frame` may be used again at once. Takes one position up
 * to 28 bytes, else two. As weftio_dev_eth_txq_send_enqueue_strong otherwise.
 *
 * @param bytes  1 .. WEFTIO_DEV_INLINE_BYTES
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_send_inline_enqueue_strong(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                                   const WEFTIO_GLOBAL weftio_u8 *frame,
                                                                   weftio_u32 bytes, weftio_u32 flags)
{
    weftio_u32 index, segments = 2 + (4 + bytes + 15) / 16, blocks = (segments + 3) / 4;

    if (bytes == 0 || bytes > WEFTIO_DEV_INLINE_BYTES)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (!weftio_dev_send_reserve(&txq->ring, blocks, &index))
        return WEFTIO_DEV_FULL;
    weftio_dev_send_segment(&txq->ring, index, 1, 0, weftio_dev_checksum_flags(flags), 0, 0);
    weftio_dev_send_segment(&txq->ring, index, 2, weftio_swap32(WEFTIO_INLINE_SEGMENT | bytes),
                            weftio_dev_gather(frame, 0, bytes), weftio_dev_gather(frame, 4, bytes),
                            weftio_dev_gather(frame, 8, bytes));
    for (weftio_u32 segment = 3, at = 12; segment < segments; ++segment, at += 16)
        weftio_dev_send_segment(&txq->ring, index, segment, weftio_dev_gather(frame, at, bytes),
                                weftio_dev_gather(frame, at + 4, bytes), weftio_dev_gather(frame, at + 8, bytes),
                                weftio_dev_gather(frame, at + 12, bytes));
    weftio_dev_write_control(weftio_dev_send_block(&txq->ring, index), index, WEFTIO_OPCODE_SEND,
                             txq->ring.queue << 8 | segments, flags);
    weftio_dev_send_fill(&txq->ring, index, blocks);
    return WEFTIO_DEV_OK;
}

/**
 * The position to enqueue at that lies in slot `masked` of the ring, for who counts modulo the depth. Never blocks; any
 * lane.
 */
WEFTIO_FN weftio_u32 weftio_dev_eth_txq_unmask(const WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq, weftio_u32 masked)
{
    weftio_u32 ready = weftio_load_relaxed_u32(&txq->ring.ready);

    return ready + ((masked - ready) & txq->ring.mask);
}

/**
 * Whether a weak entry may be written at `position`: it is not committed, and within the ring's depth of the next one.
 */
WEFTIO_FN weftio_u32 weftio_dev_weak_fits(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 position)
{
    return position - weftio_load_relaxed_u32(&ring->ready) <= ring->mask;
}

/**
 * Writes the entry of one frame at `position`. Never blocks; lanes of one block, each its own positions, without gaps.
 *
 * Whether the NIC is done with what was in that place before is the caller's business: weftio_dev_eth_txq_wait_room().
 *
 * @param position  free-running, from get_info on; weftio_dev_eth_txq_unmask() makes one of a masked position
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_INVALID_ARGUMENT `position` has been committed, or is not within the ring's depth
 *         of the next one; `bytes` is 0 or more than the buffer has
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_send_enqueue_weak(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                          struct weftio_dev_buf buffer, weftio_u32 bytes,
                                                          weftio_u32 position, weftio_u32 flags)
{
    if (bytes == 0 || bytes > buffer.bytes || !weftio_dev_weak_fits(&txq->ring, position))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_dev_write_send(&txq->ring, position, buffer, bytes, flags);
    return WEFTIO_DEV_OK;
}

/**
 * Writes a wait at `position`; as weftio_dev_eth_txq_send_enqueue_weak and weftio_dev_eth_txq_wait_time_enqueue_strong.
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_wait_time_enqueue_weak(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                               weftio_u64 value, weftio_u32 position, weftio_u32 flags)
{
    if (!weftio_dev_weak_fits(&txq->ring, position))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_dev_write_wait(&txq->ring, position, value, flags);
    return WEFTIO_DEV_OK;
}

/** What tells how a queue stands, as it was when asked for: the words may be a round trip away, their use can wait. */
struct weftio_dev_send_signs {
    weftio_u32 abort;
    weftio_u32 publication;
};
WEFTIO_FN struct weftio_dev_send_signs weftio_dev_eth_txq_signs(const WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq)
{
    struct weftio_dev_send_signs signs;

    signs.abort = weftio_load_relaxed_u32(&txq->control->abort);
    signs.publication = weftio_load_relaxed_u32(&txq->ring.completion->publication);
    return signs;
}
WEFTIO_FN weftio_s32 weftio_dev_send_status(struct weftio_dev_send_signs signs)
{
    if (weftio_cqe_opcode(signs.publication) == WEFTIO_CQE_OPCODE_REQUESTER_ERROR)
        return WEFTIO_DEV_QUEUE_ERROR;
    return signs.abort ? WEFTIO_DEV_ABORTED : WEFTIO_DEV_OK;
}

/** WEFTIO_DEV_QUEUE_ERROR, WEFTIO_DEV_ABORTED or WEFTIO_DEV_OK. Never blocks; any lane. */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_status(const WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq)
{
    return weftio_dev_send_status(weftio_dev_eth_txq_signs(txq));
}

/**
 * Waits for the other blocks that are in a commit or a push, a few instructions each. Returns 0 when the host wants an
 * end.
 */
WEFTIO_FN weftio_u32 weftio_dev_eth_txq_lock(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq)
{
    /* A look at the lock is quick; one at the abort flag may be a round trip over a bus. */
    for (weftio_u32 attempt = 0; weftio_compare_exchange_u32(&txq->ring.lock, 0, 1) != 0;) {
        do {
            if (++attempt % 64 == 0 && weftio_dev_aborted(txq->control))
                return 0;
            weftio_relax(attempt);
        } while (weftio_load_relaxed_u32(&txq->ring.lock));
    }
    return 1;
}
WEFTIO_FN void weftio_dev_eth_txq_unlock(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq)
{
    weftio_store_release_u32(&txq->ring.lock, 0);
}

/**
 * Publishes the strong entries that are filled without a gap; the NIC does not look before a push. One lane of a scope,
 * after a barrier; several blocks may commit at once. Waits while another block is in the same few instructions.
 *
 * Entries behind one that another block has claimed but not filled are published by that block's commit. With nothing
 * enqueued nothing happens.
 *
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_QUEUE_ERROR the queue is in error and what was enqueued will be flushed;
 *         WEFTIO_DEV_ABORTED the host asked the kernel to end (what was enqueued before is published all the same,
 *         unless another block is at it)
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_commit_strong(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq)
{
    if (!weftio_dev_eth_txq_lock(txq))
        return WEFTIO_DEV_ABORTED;
    weftio_u32 ready = weftio_load_relaxed_u32(&txq->ring.ready);
    weftio_u32 filled = weftio_dev_send_scan(&txq->ring, ready);
    if (filled != ready)
        weftio_dev_send_publish(&txq->ring, filled);
    /* What goes over a bus is asked for, and said, in front of the one wait of the unlock. */
    struct weftio_dev_send_signs signs = weftio_dev_eth_txq_signs(txq);
    weftio_dev_beat(txq->control, &txq->beats, WEFTIO_DEV_FUNCTION_COMMIT, filled, WEFTIO_DEV_OK);
    weftio_dev_eth_txq_unlock(txq);
    return weftio_dev_send_status(signs);
}

/**
 * Publishes the next `count` weak entries. One lane, after a barrier behind all enqueues. Never blocks.
 *
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_INVALID_ARGUMENT more than the ring holds (nothing is published);
 *         WEFTIO_DEV_QUEUE_ERROR and WEFTIO_DEV_ABORTED as weftio_dev_eth_txq_commit_strong
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_commit_weak(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq, weftio_u32 count)
{
    struct weftio_dev_send_signs signs = weftio_dev_eth_txq_signs(txq);

    if (count > txq->ring.mask + 1)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (count) {
        weftio_u32 ready = weftio_load_relaxed_u32(&txq->ring.ready) + count;
        weftio_store_relaxed_u32(&txq->ring.reserved, ready);
        weftio_store_relaxed_u32(&txq->ring.asked, ready);
        weftio_dev_send_publish(&txq->ring, ready);
        weftio_dev_beat(txq->control, &txq->beats, WEFTIO_DEV_FUNCTION_COMMIT, ready, WEFTIO_DEV_OK);
    }
    return weftio_dev_send_status(signs);
}

/**
 * Makes the NIC look at what has been committed. One lane of a scope; several blocks may push at once. Waits while
 * another block is in the same few instructions; in inline mode the NIC runs inside this call.
 */
WEFTIO_FN void weftio_dev_eth_txq_push(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq)
{
    weftio_u32 locked = weftio_dev_eth_txq_lock(txq);

    weftio_dev_send_doorbell(&txq->ring);
    weftio_dev_beat(txq->control, &txq->beats, WEFTIO_DEV_FUNCTION_PUSH, weftio_load_relaxed_u32(&txq->ring.ready),
                    WEFTIO_DEV_OK);
    if (locked)
        weftio_dev_eth_txq_unlock(txq);
    weftio_dev_nic_turn(txq->turn, txq->turn_context);
}

/**
 * Whether the entry at free-running index `position` is done: its frame handed to the port, its buffer free. Never
 * blocks; any lane.
 *
 * @pre `position` was committed, and not more than 2^15 positions ago
 * @param[out] completed_ns  UTC of the latest completion of the queue, when that is not older; unchanged unless OK
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_NOT_FOUND not yet; WEFTIO_DEV_QUEUE_ERROR it failed, was flushed, or was sent
 *         before a later entry failed: the host's progress_engine knows which
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_poll_completion(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                        weftio_u32 position, weftio_u64 *completed_ns)
{
    weftio_u32 completed = weftio_dev_send_completed(&txq->ring);

    if (completed - position - 1 >= 0x80000000u)
        return WEFTIO_DEV_NOT_FOUND;
    weftio_u64 timestamp = weftio_swap64(weftio_load_acquire_sys_u64(&txq->ring.completion->timestamp_be));
    /* Second 0 is none: the NIC is about to publish an error, and its syndrome is there already. */
    if (weftio_dev_send_failed(&txq->ring) || !(timestamp >> 32))
        return WEFTIO_DEV_QUEUE_ERROR;
    *completed_ns = weftio_real_time_to_ns(timestamp);
    return WEFTIO_DEV_OK;
}

/**
 * What a wait on a queue does when it has found nothing. WEFTIO_DEV_TIMEOUT: `timeout_ns` have passed since its first
 * call.
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_wait_on(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq, weftio_u32 attempt,
                                                weftio_u64 timeout_ns, weftio_u64 *start_ns, weftio_u32 index,
                                                weftio_s32 status)
{
    weftio_u64 now_ns = weftio_dev_clock_ns(txq->clock);

    if (!attempt)
        *start_ns = now_ns;
    if (timeout_ns && now_ns - *start_ns >= timeout_ns)
        return WEFTIO_DEV_TIMEOUT;
    weftio_dev_beat(txq->control, &txq->beats, WEFTIO_DEV_FUNCTION_POLL, index, status);
    weftio_dev_nic_turn(txq->turn, txq->turn_context);
    weftio_relax(attempt);
    return WEFTIO_DEV_OK;
}

/**
 * Waits until at least `count` positions are free, bounded by `timeout_ns` (0: by the abort flag only). One lane.
 *
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_TIMEOUT; WEFTIO_DEV_ABORTED or WEFTIO_DEV_QUEUE_ERROR, also when there is room;
 *         WEFTIO_DEV_INVALID_ARGUMENT `count` is more than the ring has
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_wait_room(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq, weftio_u32 count,
                                                  weftio_u64 timeout_ns)
{
    weftio_u64 start_ns = 0;

    if (count > txq->ring.mask + 1)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    for (weftio_u32 attempt = 0;; ++attempt) {
        weftio_s32 status = weftio_dev_eth_txq_status(txq);
        if (status != WEFTIO_DEV_OK || weftio_dev_send_room(&txq->ring, count) >= count)
            return status;
        status = weftio_dev_eth_txq_wait_on(txq, attempt, timeout_ns, &start_ns,
                                            weftio_load_relaxed_u32(&txq->ring.reserved), WEFTIO_DEV_FULL);
        if (status != WEFTIO_DEV_OK)
            return status;
    }
}

/**
 * Waits until the entry at free-running index `position` is done, as weftio_dev_eth_txq_poll_completion tells, bounded
 * by `timeout_ns` (0: by the abort flag only). Any lane, several at once.
 *
 * @pre `position` is at most 2^15 behind the last one committed. One that nobody has committed yet may be waited for,
 *      if somebody else will
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_TIMEOUT; WEFTIO_DEV_ABORTED, also when the entry is done; WEFTIO_DEV_QUEUE_ERROR as
 *         weftio_dev_eth_txq_poll_completion
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_wait_completed(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                       weftio_u32 position, weftio_u64 timeout_ns)
{
    weftio_u64 start_ns = 0, completed_ns;

    for (weftio_u32 attempt = 0;; ++attempt) {
        weftio_s32 status = weftio_dev_eth_txq_status(txq);
        if (status == WEFTIO_DEV_OK)
            status = weftio_dev_eth_txq_poll_completion(txq, position, &completed_ns);
        if (status != WEFTIO_DEV_NOT_FOUND)
            return status;
        status = weftio_dev_eth_txq_wait_on(txq, attempt, timeout_ns, &start_ns, position, WEFTIO_DEV_NOT_FOUND);
        if (status != WEFTIO_DEV_OK)
            return status;
    }
}

/**
 * As weftio_dev_eth_txq_wait_room, for a block: all its lanes call, all get the same status. Brings its own barriers.
 *
 * @pre one block uses the queue
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_wait_room_block(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq, weftio_u32 count,
                                                        weftio_u64 timeout_ns)
{
    weftio_u32 failure = weftio_lane() == 0 ? (weftio_u32)-weftio_dev_eth_txq_wait_room(txq, count, timeout_ns) : 0;

    return -(weftio_s32)weftio_block_sum_u32(failure, &txq->scratch);
}

/** A wait entry's value moved on by `ns`, less than a second: no division. */
WEFTIO_FN weftio_u64 weftio_dev_timestamp_add(weftio_u64 value, weftio_u64 ns)
{
    weftio_u64 seconds = value >> 32, rest_ns = (value & 0xffffffffu) + ns;

    if (rest_ns >= 1000000000u) {
        rest_ns -= 1000000000u;
        ++seconds;
    }
    return seconds << 32 | rest_ns;
}
