/**
 * The Ethernet send queue inside a kernel.
 *
 * Life of a frame: *enqueue* writes an entry that points at the frame. *Commit* publishes entries. *Push* rings the
 * doorbell, which wakes a sleeping NIC. The NIC sends frames in order and completes their entries. *Strong* functions
 * find a free position themselves; any lane of any block may call them. *Weak* functions are given the position by the
 * caller and use no atomics. A queue is used in one of the two modes at a time.
 *
 * Frames may lie in any memory that a key covers: buffers of a buf_arr, or receive slots (weftio_dev_eth_rxq_buf). The
 * format of entries is that of docs/formats.md, section "Entries".
 */
#pragma once

#include "weftio/device/buf.h"
#include "weftio/device/eth_rxq.h"
#include "weftio/device/queue/reserve.h"

/** Made by the host class `eth_txq`. Kernels use it through the functions below only. */
struct weftio_dev_eth_txq {
    struct weftio_dev_send_queue queue;
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_eth_txq) == (WEFTIO_DEV_ABI_ETH_TXQ & 0xffffu),
                     "host and device share this layout");

/**
 * Flags of an enqueue call, beside WEFTIO_DEV_SEND_NONE and WEFTIO_DEV_SEND_NOTIFY. eth_txq_options::checksums adds
 * them to every call.
 *
 * The NIC leaves a checksum field unchanged if it cannot compute the checksum. L3: the frame has no complete IPv4
 * header behind at most four VLAN tags. L4: it has no complete UDP or TCP header there, or the packet is a fragment,
 * has an impossible length, or has segments left in an IPv6 routing header (docs/formats.md, section "Entries").
 */
#define WEFTIO_DEV_SEND_L3_CHECKSUM 0x2u /**< the NIC computes the IPv4 header checksum */
#define WEFTIO_DEV_SEND_L4_CHECKSUM 0x4u /**< the NIC computes the UDP or TCP checksum */

/**
 * The longest frame that fits inside an entry: two blocks minus the control segment, the Ethernet segment and the
 * header of the inline segment.
 */
#define WEFTIO_DEV_INLINE_BYTES 92u

/** The checksum flags of a send entry (WEFTIO_ETH_*_CHECKSUM) for the flags of an enqueue call. */
WEFTIO_FN weftio_u32 weftio_dev_checksum_flags(weftio_u32 flags)
{
    return (flags & WEFTIO_DEV_SEND_L3_CHECKSUM ? WEFTIO_ETH_L3_CHECKSUM : 0) |
           (flags & WEFTIO_DEV_SEND_L4_CHECKSUM ? WEFTIO_ETH_L4_CHECKSUM : 0);
}

/** Writes the entry of one frame in memory at `index`: control, Ethernet and pointer segments, one block. */
WEFTIO_FN void weftio_dev_write_send(struct weftio_dev_send_parts ring, weftio_u32 index, struct weftio_dev_buf buffer,
                                     weftio_u32 bytes, weftio_u32 flags)
{
    WEFTIO_GLOBAL weftio_u32 *block = weftio_dev_send_block(ring, index);
    weftio_u64 address_be = weftio_swap64((weftio_u64)buffer.address);

    weftio_store_x4(block + 4, 0, ring.checksums | weftio_dev_checksum_flags(flags), 0, 0);
    weftio_store_x4(block + 8, weftio_swap32(bytes), buffer.lkey_be, (weftio_u32)address_be,
                    (weftio_u32)(address_be >> 32));
    weftio_dev_write_control(block, index, WEFTIO_OPCODE_SEND, ring.queue << 8 | 3, flags);
}

/** Writes the entry of a wait until `value` at `index`: one block. */
WEFTIO_FN void weftio_dev_write_wait(struct weftio_dev_send_parts ring, weftio_u32 index, weftio_u64 value,
                                     weftio_u32 flags)
{
    WEFTIO_GLOBAL weftio_u32 *block = weftio_dev_send_block(ring, index);

    weftio_store_x4(block + 4, weftio_swap32(WEFTIO_WAIT_CYCLIC_SMALLER), 0, 0, 0);
    weftio_store_x4(block + 8, weftio_swap32((weftio_u32)(value >> 32)), weftio_swap32((weftio_u32)value),
                    weftio_swap32((weftio_u32)(WEFTIO_REAL_TIME_MASK >> 32)),
                    weftio_swap32((weftio_u32)WEFTIO_REAL_TIME_MASK));
    weftio_dev_write_control(block, index, WEFTIO_OPCODE_WAIT | WEFTIO_WAIT_ON_TIME << 8, ring.queue << 8 | 3, flags);
}

/**
 * The slot of received packet `index` as a buffer, so that the packet can be sent without a copy. Release the packet
 * only after the send has completed. With WEFTIO_DEV_CHECKS, if `rxq` is no receive queue, the buffer has 0 bytes,
 * which every enqueue function refuses.
 */
WEFTIO_FN struct weftio_dev_buf weftio_dev_eth_rxq_buf(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq,
                                                       weftio_u32 index)
{
    struct weftio_dev_buf buffer = {0, 0, 0};

    if (!weftio_dev_is_eth_rxq(rxq))
        return buffer;
    buffer.address = weftio_dev_eth_rxq_address(rxq, index);
    buffer.bytes = rxq->slot_bytes;
    buffer.lkey_be = rxq->lkey_be;
    return buffer;
}

/**
 * Enqueues one frame at the next free position and returns that position. Never blocks. Any lane of any block, several
 * at once.
 *
 * The NIC reads the bytes when it sends: do not change the buffer until the entry is done.
 *
 * @param bytes          frame length without FCS; frames below 60 bytes are padded on the wire
 * @param[out] position  free-running index of the entry, for weftio_dev_eth_txq_poll_completion() and
 *                       weftio_dev_eth_txq_wait_completed(); unchanged on error
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_FULL no position is free; WEFTIO_DEV_INVALID_ARGUMENT `bytes` is 0 or larger than
 *         the buffer; with WEFTIO_DEV_CHECKS (handle.h) also: `txq` is no send queue of this version. On error nothing
 *         is enqueued.
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_send_enqueue_strong_position(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                                     struct weftio_dev_buf buffer, weftio_u32 bytes,
                                                                     weftio_u32 flags, weftio_u32 *position)
{
    struct weftio_dev_send_range claim;

    if (!weftio_dev_is_handle(txq->queue.abi, WEFTIO_DEV_ABI_ETH_TXQ))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (bytes == 0 || bytes > buffer.bytes)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    const struct weftio_dev_send_parts ring = weftio_dev_send_parts_of(&txq->queue.ring);
    if (!weftio_dev_send_reserve(&txq->queue.ring, 1, &claim))
        return WEFTIO_DEV_FULL;
    weftio_dev_write_send(ring, claim.first, buffer, bytes, flags);
    weftio_dev_send_fill(ring, claim);
    *position = claim.first;
    return WEFTIO_DEV_OK;
}

/** Same, without returning the position. */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_send_enqueue_strong(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                            struct weftio_dev_buf buffer, weftio_u32 bytes,
                                                            weftio_u32 flags)
{
    weftio_u32 position;

    return weftio_dev_eth_txq_send_enqueue_strong_position(txq, buffer, bytes, flags, &position);
}

/**
 * Enqueues a wait at the next free position: later entries of the queue are not executed before the time `value`. The
 * host makes `value` with eth_txq::timestamp(), and kernels advance it with weftio_dev_timestamp_add(). As
 * weftio_dev_eth_txq_send_enqueue_strong otherwise.
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_wait_time_enqueue_strong(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                                 weftio_u64 value, weftio_u32 flags)
{
    struct weftio_dev_send_range claim;

    if (!weftio_dev_is_handle(txq->queue.abi, WEFTIO_DEV_ABI_ETH_TXQ))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    const struct weftio_dev_send_parts ring = weftio_dev_send_parts_of(&txq->queue.ring);
    if (!weftio_dev_send_reserve(&txq->queue.ring, 1, &claim))
        return WEFTIO_DEV_FULL;
    weftio_dev_write_wait(ring, claim.first, value, flags);
    weftio_dev_send_fill(ring, claim);
    return WEFTIO_DEV_OK;
}

/**
 * Enqueues a small frame and copies its bytes into the entry: `frame` may be changed when the call returns. Takes one
 * position for up to 28 bytes, else two. As weftio_dev_eth_txq_send_enqueue_strong otherwise.
 *
 * @param bytes  1 .. WEFTIO_DEV_INLINE_BYTES
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_send_inline_enqueue_strong(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                                   const WEFTIO_GLOBAL weftio_u8 *frame,
                                                                   weftio_u32 bytes, weftio_u32 flags)
{
    struct weftio_dev_send_range claim;
    const weftio_u32 segments = 2 + (4 + bytes + 15) / 16, blocks = (segments + 3) / 4;

    if (!weftio_dev_is_handle(txq->queue.abi, WEFTIO_DEV_ABI_ETH_TXQ))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (bytes == 0 || bytes > WEFTIO_DEV_INLINE_BYTES)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    const struct weftio_dev_send_parts ring = weftio_dev_send_parts_of(&txq->queue.ring);
    if (!weftio_dev_send_reserve(&txq->queue.ring, blocks, &claim))
        return WEFTIO_DEV_FULL;
    weftio_dev_send_segment(ring, claim.first, 1, 0, ring.checksums | weftio_dev_checksum_flags(flags), 0, 0);
    weftio_dev_send_segment(ring, claim.first, 2, weftio_swap32(WEFTIO_INLINE_SEGMENT | bytes),
                            weftio_dev_gather(frame, 0, bytes), weftio_dev_gather(frame, 4, bytes),
                            weftio_dev_gather(frame, 8, bytes));
    for (weftio_u32 segment = 3, at = 12; segment < segments; ++segment, at += 16)
        weftio_dev_send_segment(ring, claim.first, segment, weftio_dev_gather(frame, at, bytes),
                                weftio_dev_gather(frame, at + 4, bytes), weftio_dev_gather(frame, at + 8, bytes),
                                weftio_dev_gather(frame, at + 12, bytes));
    weftio_dev_write_control(weftio_dev_send_block(ring, claim.first), claim.first, WEFTIO_OPCODE_SEND,
                             ring.queue << 8 | segments, flags);
    weftio_dev_send_fill(ring, claim);
    return WEFTIO_DEV_OK;
}

/**
 * Weak mode: writes the entry of one frame at `position`. Never blocks. Lanes of one block may call at once, each with
 * positions of its own. Before commit_weak every position must have its entry.
 *
 * @pre the NIC is done with the entry at `position` - depth: see weftio_dev_eth_txq_wait_room()
 * @param position  free-running, from weftio_dev_eth_txq_get_info() on; weftio_dev_eth_txq_unmask() converts a masked
 *                  position
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_INVALID_ARGUMENT as weftio_dev_eth_txq_send_enqueue_strong_position, or `position`
 *         has been committed, or is the depth of the ring or more beyond the next one to commit. On error nothing is
 *         written.
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_send_enqueue_weak(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                          struct weftio_dev_buf buffer, weftio_u32 bytes,
                                                          weftio_u32 position, weftio_u32 flags)
{
    if (!weftio_dev_is_handle(txq->queue.abi, WEFTIO_DEV_ABI_ETH_TXQ))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    const struct weftio_dev_send_parts ring = weftio_dev_send_parts_of(&txq->queue.ring);
    if (bytes == 0 || bytes > buffer.bytes || !weftio_dev_weak_fits(&txq->queue.ring, position))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_dev_write_send(ring, position, buffer, bytes, flags);
    return WEFTIO_DEV_OK;
}

/**
 * Weak mode: writes a wait at `position`. As weftio_dev_eth_txq_send_enqueue_weak and
 * weftio_dev_eth_txq_wait_time_enqueue_strong otherwise.
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_wait_time_enqueue_weak(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                               weftio_u64 value, weftio_u32 position, weftio_u32 flags)
{
    if (!weftio_dev_is_handle(txq->queue.abi, WEFTIO_DEV_ABI_ETH_TXQ))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    const struct weftio_dev_send_parts ring = weftio_dev_send_parts_of(&txq->queue.ring);
    if (!weftio_dev_weak_fits(&txq->queue.ring, position))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_dev_write_wait(ring, position, value, flags);
    return WEFTIO_DEV_OK;
}

/** Position of the next entry and mask of positions, for weak mode: as weftio_dev_send_queue_get_info. */
WEFTIO_FN void weftio_dev_eth_txq_get_info(const WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq, weftio_u32 *position,
                                           weftio_u32 *mask)
{
    weftio_dev_send_queue_get_info(&txq->queue, position, mask);
}

/** The next position to enqueue at whose slot is `masked`: as weftio_dev_send_queue_unmask. */
WEFTIO_FN weftio_u32 weftio_dev_eth_txq_unmask(const WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq, weftio_u32 masked)
{
    return weftio_dev_send_queue_unmask(&txq->queue, masked);
}

/**
 * Number of entries that the NIC is done with, as a free-running index: as weftio_dev_send_queue_completed. Received
 * packets that entries below it have sent may be released.
 */
WEFTIO_FN weftio_u32 weftio_dev_eth_txq_completed(const WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq)
{
    return weftio_dev_send_queue_completed(&txq->queue);
}

/** WEFTIO_DEV_QUEUE_ERROR, WEFTIO_DEV_ABORTED or WEFTIO_DEV_OK: as weftio_dev_send_queue_status. */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_status(const WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq)
{
    return weftio_dev_send_queue_status(&txq->queue);
}

/** Whether the host asks the kernel to end, for loops of the kernel's own: as weftio_dev_send_queue_aborted. */
WEFTIO_FN weftio_u32 weftio_dev_eth_txq_aborted(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq)
{
    return weftio_dev_send_queue_aborted(&txq->queue);
}

/** Publishes the strong entries that are filled without a gap: as weftio_dev_send_queue_commit_strong. */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_commit_strong(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq)
{
    return weftio_dev_send_queue_commit_strong(&txq->queue);
}

/** Publishes the next `count` weak entries: as weftio_dev_send_queue_commit_weak. */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_commit_weak(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq, weftio_u32 count)
{
    return weftio_dev_send_queue_commit_weak(&txq->queue, count);
}

/** Rings the doorbell, which wakes a sleeping NIC: as weftio_dev_send_queue_push. */
WEFTIO_FN void weftio_dev_eth_txq_push(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq)
{
    weftio_dev_send_queue_push(&txq->queue);
}

/**
 * Whether the entry at `position` is done: as weftio_dev_send_queue_poll_completion. Done means that the port has taken
 * the frame and the buffer may be changed.
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_poll_completion(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                        weftio_u32 position, weftio_u64 *completed_ns)
{
    return weftio_dev_send_queue_poll_completion(&txq->queue, position, completed_ns);
}

/** Waits until at least `count` positions are free: as weftio_dev_send_queue_wait_room. */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_wait_room(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq, weftio_u32 count,
                                                  weftio_u64 timeout_ns)
{
    return weftio_dev_send_queue_wait_room(&txq->queue, count, timeout_ns);
}

/** The same for a block: as weftio_dev_send_queue_wait_room_block. */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_wait_room_block(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq, weftio_u32 count,
                                                        weftio_u64 timeout_ns)
{
    return weftio_dev_send_queue_wait_room_block(&txq->queue, count, timeout_ns);
}

/** Waits until the entry at `position` is done: as weftio_dev_send_queue_wait_completed. */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_wait_completed(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                       weftio_u32 position, weftio_u64 timeout_ns)
{
    return weftio_dev_send_queue_wait_completed(&txq->queue, position, timeout_ns);
}

/** The value of a wait entry `ns` later than `value`. Uses no division. @pre `ns` is less than 10^9 */
WEFTIO_FN weftio_u64 weftio_dev_timestamp_add(weftio_u64 value, weftio_u64 ns)
{
    weftio_u64 seconds = value >> 32, rest_ns = (value & 0xffffffffu) + ns;

    if (rest_ns >= 1000000000u) {
        rest_ns -= 1000000000u;
        ++seconds;
    }
    return seconds << 32 | rest_ns;
}
