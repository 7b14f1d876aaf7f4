/**
 * The DMA queue inside a kernel: a DMA engine copies and fills memory while the kernel continues.
 *
 * *Enqueue* functions write one entry each: a copy or a fill. *Commit* publishes the entries, and the DMA engine
 * executes them in order and completes them. *Strong* functions find a free position themselves; any lane of any block
 * may call them. *Weak* functions are given the position by the caller and use no atomics. A queue is used in one of
 * the two modes at a time.
 *
 * Copies need no port and no NIC. Source and destination are buffers (buf.h) in regions that the host has registered
 * with the engine. The format of entries is that of docs/formats.md, section "Entries".
 */
#pragma once

#include "weftio/device/buf.h"
#include "weftio/device/queue/reserve.h"

/** Made by the host class `dma_queue`. Kernels use it through the functions below only. */
struct weftio_dev_dma {
    struct weftio_dev_send_queue queue;
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_dma) == (WEFTIO_DEV_ABI_DMA & 0xffffu),
                     "host and device share this layout");

/** The most bytes that one entry copies or fills. */
#define WEFTIO_DEV_DMA_MOST_BYTES 0x80000000u

/** Whether [offset, offset + bytes) lies in the buffer and `bytes` is a valid size for one entry. */
WEFTIO_FN weftio_u32 weftio_dev_dma_fits(struct weftio_dev_buf buffer, weftio_u64 offset, weftio_u64 bytes)
{
    return bytes && bytes <= WEFTIO_DEV_DMA_MOST_BYTES && offset <= buffer.bytes && bytes <= buffer.bytes - offset;
}

/** Writes segment `segment` of the entry at `block`, a pointer to [offset, offset + bytes) of the buffer. */
WEFTIO_FN void weftio_dev_dma_write_pointer(WEFTIO_GLOBAL weftio_u32 *block, weftio_u32 segment,
                                            struct weftio_dev_buf buffer, weftio_u64 offset, weftio_u64 bytes)
{
    weftio_u64 address_be = weftio_swap64((weftio_u64)buffer.address + offset);
    weftio_u32 count = (weftio_u32)bytes & (WEFTIO_DEV_DMA_MOST_BYTES - 1); /* 2^31 is coded 0 */

    weftio_store_x4(block + segment * 4, weftio_swap32(count), buffer.lkey_be, (weftio_u32)address_be,
                    (weftio_u32)(address_be >> 32));
}

/** Writes the entry of a copy at `index`: one block, control segment last. */
WEFTIO_FN void weftio_dev_write_copy(struct weftio_dev_send_parts ring, weftio_u32 index, struct weftio_dev_buf source,
                                     weftio_u64 source_offset, struct weftio_dev_buf destination,
                                     weftio_u64 destination_offset, weftio_u64 bytes, weftio_u32 flags)
{
    WEFTIO_GLOBAL weftio_u32 *block = weftio_dev_send_block(ring, index);

    weftio_store_x4(block + 4, 0, 0, 0, 0);
    weftio_dev_dma_write_pointer(block, 2, source, source_offset, bytes);
    weftio_dev_dma_write_pointer(block, 3, destination, destination_offset, bytes);
    weftio_dev_write_control(block, index, WEFTIO_OPCODE_MMO | WEFTIO_MMO_DMA << 8, ring.queue << 8 | 4, flags);
}

/**
 * Writes the entry of a fill at `index`: one block, control segment last. Its source is an inline segment of four
 * bytes.
 */
WEFTIO_FN void weftio_dev_write_fill(struct weftio_dev_send_parts ring, weftio_u32 index, weftio_u32 pattern,
                                     struct weftio_dev_buf destination, weftio_u64 destination_offset, weftio_u64 bytes,
                                     weftio_u32 flags)
{
    WEFTIO_GLOBAL weftio_u32 *block = weftio_dev_send_block(ring, index);

    weftio_store_x4(block + 4, 0, 0, 0, 0);
    weftio_store_x4(block + 8, weftio_swap32(WEFTIO_INLINE_SEGMENT | 4u), pattern, 0, 0);
    weftio_dev_dma_write_pointer(block, 3, destination, destination_offset, bytes);
    weftio_dev_write_control(block, index, WEFTIO_OPCODE_MMO | WEFTIO_MMO_DMA << 8, ring.queue << 8 | 4, flags);
}

/**
 * Enqueues a copy at the next free position and returns that position. Never blocks. Any lane of any block, several at
 * once.
 *
 * Copies of a queue are executed in order: a copy may read what an earlier one wrote. The engine reads the source when
 * it copies: until the entry is done, do not change the source and do not use the destination. Source and destination
 * must not overlap.
 *
 * @param bytes          1 .. WEFTIO_DEV_DMA_MOST_BYTES
 * @param flags          WEFTIO_DEV_SEND_NONE or WEFTIO_DEV_SEND_NOTIFY
 * @param[out] position  free-running index of the entry, for weftio_dev_dma_wait(); unchanged on error
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_FULL no position is free; WEFTIO_DEV_INVALID_ARGUMENT `bytes` is 0 or too large, or
 *         reaches beyond a buffer; with WEFTIO_DEV_CHECKS (handle.h) also: `dma` is no DMA queue, or another version's.
 *         On error nothing is enqueued.
 */
WEFTIO_FN weftio_s32 weftio_dev_dma_memcpy_position(WEFTIO_GLOBAL struct weftio_dev_dma *dma,
                                                    struct weftio_dev_buf source, weftio_u64 source_offset,
                                                    struct weftio_dev_buf destination, weftio_u64 destination_offset,
                                                    weftio_u64 bytes, weftio_u32 flags, weftio_u32 *position)
{
    struct weftio_dev_send_range claim;

    if (!weftio_dev_is_handle(dma->queue.abi, WEFTIO_DEV_ABI_DMA))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (!weftio_dev_dma_fits(source, source_offset, bytes) ||
        !weftio_dev_dma_fits(destination, destination_offset, bytes))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    const struct weftio_dev_send_parts ring = weftio_dev_send_parts_of(&dma->queue.ring);
    if (!weftio_dev_send_reserve(&dma->queue.ring, 1, &claim))
        return WEFTIO_DEV_FULL;
    weftio_dev_write_copy(ring, claim.first, source, source_offset, destination, destination_offset, bytes, flags);
    weftio_dev_send_fill(ring, claim);
    *position = claim.first;
    return WEFTIO_DEV_OK;
}

/** Same, without returning the position. */
WEFTIO_FN weftio_s32 weftio_dev_dma_memcpy(WEFTIO_GLOBAL struct weftio_dev_dma *dma, struct weftio_dev_buf source,
                                           weftio_u64 source_offset, struct weftio_dev_buf destination,
                                           weftio_u64 destination_offset, weftio_u64 bytes, weftio_u32 flags)
{
    weftio_u32 position;

    return weftio_dev_dma_memcpy_position(dma, source, source_offset, destination, destination_offset, bytes, flags,
                                          &position);
}

/**
 * Enqueues a fill at the next free position and returns that position: the four bytes of `pattern`, as they lie in
 * memory, are repeated from the start of the destination to its end. As weftio_dev_dma_memcpy_position otherwise.
 */
WEFTIO_FN weftio_s32 weftio_dev_dma_fill_position(WEFTIO_GLOBAL struct weftio_dev_dma *dma, weftio_u32 pattern,
                                                  struct weftio_dev_buf destination, weftio_u64 destination_offset,
                                                  weftio_u64 bytes, weftio_u32 flags, weftio_u32 *position)
{
    struct weftio_dev_send_range claim;

    if (!weftio_dev_is_handle(dma->queue.abi, WEFTIO_DEV_ABI_DMA))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (!weftio_dev_dma_fits(destination, destination_offset, bytes))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    const struct weftio_dev_send_parts ring = weftio_dev_send_parts_of(&dma->queue.ring);
    if (!weftio_dev_send_reserve(&dma->queue.ring, 1, &claim))
        return WEFTIO_DEV_FULL;
    weftio_dev_write_fill(ring, claim.first, pattern, destination, destination_offset, bytes, flags);
    weftio_dev_send_fill(ring, claim);
    *position = claim.first;
    return WEFTIO_DEV_OK;
}

/** Same, without returning the position. */
WEFTIO_FN weftio_s32 weftio_dev_dma_fill(WEFTIO_GLOBAL struct weftio_dev_dma *dma, weftio_u32 pattern,
                                         struct weftio_dev_buf destination, weftio_u64 destination_offset,
                                         weftio_u64 bytes, weftio_u32 flags)
{
    weftio_u32 position;

    return weftio_dev_dma_fill_position(dma, pattern, destination, destination_offset, bytes, flags, &position);
}

/** Position of the next entry and mask of positions, for weak mode: as weftio_dev_send_queue_get_info. */
WEFTIO_FN void weftio_dev_dma_get_info(const WEFTIO_GLOBAL struct weftio_dev_dma *dma, weftio_u32 *position,
                                       weftio_u32 *mask)
{
    weftio_dev_send_queue_get_info(&dma->queue, position, mask);
}

/**
 * Weak mode: writes the entry of a copy at `position`. Never blocks. Lanes of one block may call at once, each with
 * positions of its own. Before commit_weak every position must have its entry.
 *
 * @pre the engine is done with the entry at `position` - depth: see weftio_dev_dma_wait_room()
 * @param position  free-running, from weftio_dev_dma_get_info() on
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_INVALID_ARGUMENT as weftio_dev_dma_memcpy_position, or `position` has been
 *         committed, or is the depth of the ring or more beyond the next one to commit. On error nothing is written.
 */
WEFTIO_FN weftio_s32 weftio_dev_dma_memcpy_weak(WEFTIO_GLOBAL struct weftio_dev_dma *dma, struct weftio_dev_buf source,
                                                weftio_u64 source_offset, struct weftio_dev_buf destination,
                                                weftio_u64 destination_offset, weftio_u64 bytes, weftio_u32 position,
                                                weftio_u32 flags)
{
    if (!weftio_dev_is_handle(dma->queue.abi, WEFTIO_DEV_ABI_DMA))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    const struct weftio_dev_send_parts ring = weftio_dev_send_parts_of(&dma->queue.ring);
    if (!weftio_dev_dma_fits(source, source_offset, bytes) ||
        !weftio_dev_dma_fits(destination, destination_offset, bytes) ||
        !weftio_dev_weak_fits(&dma->queue.ring, position))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_dev_write_copy(ring, position, source, source_offset, destination, destination_offset, bytes, flags);
    return WEFTIO_DEV_OK;
}

/**
 * Publishes the strong entries that are filled without a gap, and rings the doorbell: as weftio_dev_send_queue_submit.
 * One lane of a scope, after a barrier; several blocks may commit at once. Blocks only while another block is in the
 * few instructions of its commit; in inline mode this call runs the engine. Return values are those of
 * weftio_dev_send_queue_commit_strong.
 */
WEFTIO_FN weftio_s32 weftio_dev_dma_commit(WEFTIO_GLOBAL struct weftio_dev_dma *dma)
{
    return weftio_dev_send_queue_submit(&dma->queue);
}

/** Publishes the next `count` weak entries and rings the doorbell: as weftio_dev_send_queue_submit_weak. */
WEFTIO_FN weftio_s32 weftio_dev_dma_commit_weak(WEFTIO_GLOBAL struct weftio_dev_dma *dma, weftio_u32 count)
{
    return weftio_dev_send_queue_submit_weak(&dma->queue, count);
}

/**
 * Whether the entry at `position` is done: as weftio_dev_send_queue_poll_completion. A lane that sees the completion
 * also sees the copied bytes.
 */
WEFTIO_FN weftio_s32 weftio_dev_dma_poll_completion(WEFTIO_GLOBAL struct weftio_dev_dma *dma, weftio_u32 position,
                                                    weftio_u64 *completed_ns)
{
    return weftio_dev_send_queue_poll_completion(&dma->queue, position, completed_ns);
}

/** Waits until the entry at `position` is done and its bytes are visible: as weftio_dev_send_queue_wait_completed. */
WEFTIO_FN weftio_s32 weftio_dev_dma_wait(WEFTIO_GLOBAL struct weftio_dev_dma *dma, weftio_u32 position,
                                         weftio_u64 timeout_ns)
{
    return weftio_dev_send_queue_wait_completed(&dma->queue, position, timeout_ns);
}

/**
 * Commits strong entries, and waits until all entries that were enqueued before are done, also those of other blocks.
 * Blocks until then, for `timeout_ns` at most (0: no time bound). One lane of a scope.
 *
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_TIMEOUT; WEFTIO_DEV_ABORTED; WEFTIO_DEV_QUEUE_ERROR; WEFTIO_DEV_INVALID_ARGUMENT as
 *         weftio_dev_send_queue_commit_strong
 */
WEFTIO_FN weftio_s32 weftio_dev_dma_commit_wait(WEFTIO_GLOBAL struct weftio_dev_dma *dma, weftio_u64 timeout_ns)
{
    return weftio_dev_send_queue_submit_wait(&dma->queue, timeout_ns);
}

/** Waits until at least `count` positions are free: as weftio_dev_send_queue_wait_room. */
WEFTIO_FN weftio_s32 weftio_dev_dma_wait_room(WEFTIO_GLOBAL struct weftio_dev_dma *dma, weftio_u32 count,
                                              weftio_u64 timeout_ns)
{
    return weftio_dev_send_queue_wait_room(&dma->queue, count, timeout_ns);
}

/** WEFTIO_DEV_QUEUE_ERROR, WEFTIO_DEV_ABORTED or WEFTIO_DEV_OK: as weftio_dev_send_queue_status. */
WEFTIO_FN weftio_s32 weftio_dev_dma_status(const WEFTIO_GLOBAL struct weftio_dev_dma *dma)
{
    return weftio_dev_send_queue_status(&dma->queue);
}
