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
#include "weftio/device/eth_rxq.h"
#include "weftio/device/queue/send.h"

/** Made by the host class `eth_txq`. Kernels use it through the functions below only. */
struct weftio_dev_eth_txq {
    struct weftio_dev_send_queue queue;
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_eth_txq) == (WEFTIO_DEV_ABI_ETH_TXQ & 0xffffu),
                     "host and device share this layout");

/**
 * Flags of an enqueue call, beside WEFTIO_DEV_SEND_NONE and WEFTIO_DEV_SEND_NOTIFY; eth_txq_options::checksums asks for
 * them in every call. A checksum field is sent as it is
 * where the NIC cannot fill it in: no IPv4 header, or no UDP or TCP header, that is whole behind at most four VLAN tags;
 * of UDP and TCP also fragments, impossible lengths, and segments left in an IPv6 routing header (docs/formats.md,
 * section "Entries").
 */
#define WEFTIO_DEV_SEND_L3_CHECKSUM 0x2u /**< the NIC computes the IPv4 header checksum */
#define WEFTIO_DEV_SEND_L4_CHECKSUM 0x4u /**< the NIC computes the UDP or TCP checksum */

/** Longest frame that fits an entry itself: two blocks less control, Ethernet and inline heads. */
#define WEFTIO_DEV_INLINE_BYTES 92u

/** What a send entry says, apart from where the bytes are. */
WEFTIO_FN weftio_u32 weftio_dev_checksum_flags(weftio_u32 flags)
{
    return (flags & WEFTIO_DEV_SEND_L3_CHECKSUM ? WEFTIO_ETH_L3_CHECKSUM : 0) |
           (flags & WEFTIO_DEV_SEND_L4_CHECKSUM ? WEFTIO_ETH_L4_CHECKSUM : 0);
}

/** The entry of one frame in memory: control, Ethernet, pointer. One block. */
WEFTIO_FN void weftio_dev_write_send(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 index,
                                     struct weftio_dev_buf buffer, weftio_u32 bytes, weftio_u32 flags)
{
    WEFTIO_GLOBAL weftio_u32 *block = weftio_dev_send_block(ring, index);
    weftio_u64 address_be = weftio_swap64((weftio_u64)buffer.address);

    weftio_store_x4(block + 4, 0, ring->checksums | weftio_dev_checksum_flags(flags), 0, 0);
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

/**
 * The received packet `index` as a buffer, to be sent from where it lies. Do not release it before the send has
 * completed. With WEFTIO_DEV_CHECKS, of what is no receive queue: one of 0 bytes, which every enqueue function refuses.
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
 * Enqueues one frame at the next free position and tells which that is. Never blocks. Any lane of any block, several at
 * once.
 *
 * The bytes are read when the NIC sends: leave the buffer alone until the entry has completed.
 *
 * @param bytes           frame length without FCS; frames below 60 bytes are padded on the wire
 * @param[out] position   free-running index of the entry, for weftio_dev_eth_txq_poll_completion() and
 *                        weftio_dev_eth_txq_wait_completed(); unchanged on error
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_FULL no free position (nothing is enqueued); WEFTIO_DEV_INVALID_ARGUMENT `bytes` is
 *         0 or more than the buffer has; with WEFTIO_DEV_CHECKS (handle.h) also: `txq` is no Ethernet send queue, or
 *         another version's
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_send_enqueue_strong_position(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                                     struct weftio_dev_buf buffer, weftio_u32 bytes,
                                                                     weftio_u32 flags, weftio_u32 *position)
{
    weftio_u32 index;

    if (!weftio_dev_is_handle(txq->queue.abi, WEFTIO_DEV_ABI_ETH_TXQ))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (bytes == 0 || bytes > buffer.bytes)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (!weftio_dev_send_reserve(&txq->queue.ring, 1, &index))
        return WEFTIO_DEV_FULL;
    weftio_dev_write_send(&txq->queue.ring, index, buffer, bytes, flags);
    weftio_dev_send_fill(&txq->queue.ring, index, 1);
    *position = index;
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
 * Enqueues a barrier at the next free position: what follows is not sent before `value`, which the host's
 * eth_txq::timestamp() makes (weftio_dev_timestamp_add() moves it on). As weftio_dev_eth_txq_send_enqueue_strong
 * otherwise.
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_wait_time_enqueue_strong(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                                 weftio_u64 value, weftio_u32 flags)
{
    weftio_u32 index;

    if (!weftio_dev_is_handle(txq->queue.abi, WEFTIO_DEV_ABI_ETH_TXQ))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (!weftio_dev_send_reserve(&txq->queue.ring, 1, &index))
        return WEFTIO_DEV_FULL;
    weftio_dev_write_wait(&txq->queue.ring, index, value, flags);
    weftio_dev_send_fill(&txq->queue.ring, index, 1);
    return WEFTIO_DEV_OK;
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

    if (!weftio_dev_is_handle(txq->queue.abi, WEFTIO_DEV_ABI_ETH_TXQ))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (bytes == 0 || bytes > WEFTIO_DEV_INLINE_BYTES)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (!weftio_dev_send_reserve(&txq->queue.ring, blocks, &index))
        return WEFTIO_DEV_FULL;
    weftio_dev_send_segment(&txq->queue.ring, index, 1, 0, txq->queue.ring.checksums | weftio_dev_checksum_flags(flags),
                            0, 0);
    weftio_dev_send_segment(&txq->queue.ring, index, 2, weftio_swap32(WEFTIO_INLINE_SEGMENT | bytes),
                            weftio_dev_gather(frame, 0, bytes), weftio_dev_gather(frame, 4, bytes),
                            weftio_dev_gather(frame, 8, bytes));
    for (weftio_u32 segment = 3, at = 12; segment < segments; ++segment, at += 16)
        weftio_dev_send_segment(&txq->queue.ring, index, segment, weftio_dev_gather(frame, at, bytes),
                                weftio_dev_gather(frame, at + 4, bytes), weftio_dev_gather(frame, at + 8, bytes),
                                weftio_dev_gather(frame, at + 12, bytes));
    weftio_dev_write_control(weftio_dev_send_block(&txq->queue.ring, index), index, WEFTIO_OPCODE_SEND,
                             txq->queue.ring.queue << 8 | segments, flags);
    weftio_dev_send_fill(&txq->queue.ring, index, blocks);
    return WEFTIO_DEV_OK;
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
    if (!weftio_dev_is_handle(txq->queue.abi, WEFTIO_DEV_ABI_ETH_TXQ))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (bytes == 0 || bytes > buffer.bytes || !weftio_dev_weak_fits(&txq->queue.ring, position))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_dev_write_send(&txq->queue.ring, position, buffer, bytes, flags);
    return WEFTIO_DEV_OK;
}

/**
 * Writes a wait at `position`; as weftio_dev_eth_txq_send_enqueue_weak and weftio_dev_eth_txq_wait_time_enqueue_strong.
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_wait_time_enqueue_weak(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                               weftio_u64 value, weftio_u32 position, weftio_u32 flags)
{
    if (!weftio_dev_is_handle(txq->queue.abi, WEFTIO_DEV_ABI_ETH_TXQ))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (!weftio_dev_weak_fits(&txq->queue.ring, position))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_dev_write_wait(&txq->queue.ring, position, value, flags);
    return WEFTIO_DEV_OK;
}

/** As weftio_dev_send_queue_get_info: where the next entry goes, and the mask of positions. */
WEFTIO_FN void weftio_dev_eth_txq_get_info(const WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq, weftio_u32 *position,
                                           weftio_u32 *mask)
{
    weftio_dev_send_queue_get_info(&txq->queue, position, mask);
}

/** As weftio_dev_send_queue_unmask: the position that lies in slot `masked`. */
WEFTIO_FN weftio_u32 weftio_dev_eth_txq_unmask(const WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq, weftio_u32 masked)
{
    return weftio_dev_send_queue_unmask(&txq->queue, masked);
}

/** As weftio_dev_send_queue_completed: free-running index behind the last entry that the NIC is done with. A kernel that
 * sends received packets from where they lie may release those of entries below it. */
WEFTIO_FN weftio_u32 weftio_dev_eth_txq_completed(const WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq)
{
    return weftio_dev_send_queue_completed(&txq->queue);
}

/** As weftio_dev_send_queue_status: WEFTIO_DEV_QUEUE_ERROR, WEFTIO_DEV_ABORTED or WEFTIO_DEV_OK. */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_status(const WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq)
{
    return weftio_dev_send_queue_status(&txq->queue);
}

/** As weftio_dev_send_queue_aborted: whether the host asks the kernel to end, for loops of the kernel's own. */
WEFTIO_FN weftio_u32 weftio_dev_eth_txq_aborted(const WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq)
{
    return weftio_dev_send_queue_aborted(&txq->queue);
}

/** As weftio_dev_send_queue_commit_strong: publishes what is filled. */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_commit_strong(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq)
{
    return weftio_dev_send_queue_commit_strong(&txq->queue);
}

/** As weftio_dev_send_queue_commit_weak: publishes the next `count` weak entries. */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_commit_weak(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq, weftio_u32 count)
{
    return weftio_dev_send_queue_commit_weak(&txq->queue, count);
}

/** As weftio_dev_send_queue_push: makes a NIC that sleeps look at what has been committed. */
WEFTIO_FN void weftio_dev_eth_txq_push(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq)
{
    weftio_dev_send_queue_push(&txq->queue);
}

/** As weftio_dev_send_queue_poll_completion. Done means: the frame is handed to the port, its buffer is free. */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_poll_completion(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                        weftio_u32 position, weftio_u64 *completed_ns)
{
    return weftio_dev_send_queue_poll_completion(&txq->queue, position, completed_ns);
}

/** As weftio_dev_send_queue_wait_room: waits until at least `count` positions are free. */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_wait_room(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq, weftio_u32 count,
                                                  weftio_u64 timeout_ns)
{
    return weftio_dev_send_queue_wait_room(&txq->queue, count, timeout_ns);
}

/** As weftio_dev_send_queue_wait_room_block: the same for a block. */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_wait_room_block(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq, weftio_u32 count,
                                                        weftio_u64 timeout_ns)
{
    return weftio_dev_send_queue_wait_room_block(&txq->queue, count, timeout_ns);
}

/** As weftio_dev_send_queue_wait_completed: waits until the entry at `position` is done. */
WEFTIO_FN weftio_s32 weftio_dev_eth_txq_wait_completed(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                                       weftio_u32 position, weftio_u64 timeout_ns)
{
    return weftio_dev_send_queue_wait_completed(&txq->queue, position, timeout_ns);
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
