/**
 * The DMA queue inside a kernel: memory copied by somebody else while the kernel goes on.
 *
 * *Enqueue* copies and fills, *commit* them: a DMA engine executes them in order, and completes. *Strong* functions find
 * the position themselves, from any lane of any block; *weak* ones are told it and use no atomics. A queue is used in one
 * mode at a time. Copies need no port and no NIC; source and destination are buffers (buf.h) of regions that the host
 * has registered with the engine.
 */
#pragma once

#include "weftio/device/buf.h"
#include "weftio/device/queue/send.h"

/** Made by the host class `dma_queue`. Kernels use it through the functions below only. */
struct weftio_dev_dma {
    struct weftio_dev_send_queue queue;
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_dma) == (WEFTIO_DEV_ABI_DMA & 0xffffu),
                     "host and device share this layout");

/** The most bytes that one entry copies or fills. */
#define WEFTIO_DEV_DMA_MOST_BYTES 0x80000000u

/** Whether `bytes` bytes from `offset` on lie in the buffer, and are as many as one entry takes. */
WEFTIO_FN weftio_u32 weftio_dev_dma_fits(struct weftio_dev_buf buffer, weftio_u64 offset, weftio_u64 bytes)
{
    return bytes && bytes <= WEFTIO_DEV_DMA_MOST_BYTES && offset <= buffer.bytes && bytes <= buffer.bytes - offset;
}

/** Segment `segment` of the entry at `block`: `bytes` bytes of the buffer, from `offset` on. */
WEFTIO_FN void weftio_dev_dma_write_pointer(WEFTIO_GLOBAL weftio_u32 *block, weftio_u32 segment,
                                            struct weftio_dev_buf buffer, weftio_u64 offset, weftio_u64 bytes)
{
    weftio_u64 address_be = weftio_swap64((weftio_u64)buffer.address + offset);
    weftio_u32 count = (weftio_u32)bytes & (WEFTIO_DEV_DMA_MOST_BYTES - 1); /* 2^31 is coded 0 */

    weftio_store_x4(block + segment * 4, weftio_swap32(count), buffer.lkey_be, (weftio_u32)address_be,
                    (weftio_u32)(address_be >> 32));
}

/** The entry of a copy. One block. */
WEFTIO_FN void weftio_dev_write_copy(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 index,
                                     struct weftio_dev_buf source, weftio_u64 source_offset,
                                     struct weftio_dev_buf destination, weftio_u64 destination_offset, weftio_u64 bytes,
                                     weftio_u32 flags)
{
    WEFTIO_GLOBAL weftio_u32 *block = weftio_dev_send_block(ring, index);

    weftio_store_x4(block + 4, 0, 0, 0, 0);
    weftio_dev_dma_write_pointer(block, 2, source, source_offset, bytes);
    weftio_dev_dma_write_pointer(block, 3, destination, destination_offset, bytes);
    weftio_dev_write_control(block, index, WEFTIO_OPCODE_MMO | WEFTIO_MMO_DMA << 8, ring->queue << 8 | 4, flags);
}

/** The entry of a fill: in place of a source, four bytes inside the entry. One block. */
WEFTIO_FN void weftio_dev_write_fill(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 index,
                                     weftio_u32 pattern, struct weftio_dev_buf destination,
                                     weftio_u64 destination_offset, weftio_u64 bytes, weftio_u32 flags)
{
    WEFTIO_GLOBAL weftio_u32 *block = weftio_dev_send_block(ring, index);

    weftio_store_x4(block + 4, 0, 0, 0, 0);
    weftio_store_x4(block + 8, weftio_swap32(WEFTIO_INLINE_SEGMENT | 4u), pattern, 0, 0);
    weftio_dev_dma_write_pointer(block, 3, destination, destination_offset, bytes);
    weftio_dev_write_control(block, index, WEFTIO_OPCODE_MMO | WEFTIO_MMO_DMA << 8, ring->queue << 8 | 4, flags);
}

/**
 * Enqueues a copy at the next free position and tells which that is. Never blocks. Any lane of any block, several at
 * once.
 *
 * Copies of a queue happen in order: one may read what the one before wrote. Bytes are read when the engine copies:
 * leave both buffers alone until the entry has completed. Source and destination do not overlap.
 *
 * @param bytes          1 .. WEFTIO_DEV_DMA_MOST_BYTES
 * @param flags          WEFTIO_DEV_SEND_NONE or WEFTIO_DEV_SEND_NOTIFY
 * @param[out] position  free-running index of the entry, for weftio_dev_dma_wait(); unchanged on error
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_FULL no free position (nothing is enqueued); WEFTIO_DEV_INVALID_ARGUMENT `bytes` is
 *         0, too many, or reaches beyond a buffer; with WEFTIO_DEV_CHECKS (handle.h) also: `dma` is no DMA queue, or
 *         another version's
 */
WEFTIO_FN weftio_s32 weftio_dev_dma_memcpy_position(WEFTIO_GLOBAL struct weftio_dev_dma *dma,
                                                    struct weftio_dev_buf source, weftio_u64 source_offset,
                                                    struct weftio_dev_buf destination, weftio_u64 destination_offset,
                                                    weftio_u64 bytes, weftio_u32 flags, weftio_u32 *position)
{
    weftio_u32 index;

    if (!weftio_dev_is_handle(dma->queue.abi, WEFTIO_DEV_ABI_DMA))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (!weftio_dev_dma_fits(source, source_offset, bytes) ||
        !weftio_dev_dma_fits(destination, destination_offset, bytes))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (!weftio_dev_send_reserve(&dma->queue.ring, 1, &index))
        return WEFTIO_DEV_FULL;
    weftio_dev_write_copy(&dma->queue.ring, index, source, source_offset, destination, destination_offset, bytes,
                          flags);
    weftio_dev_send_fill(&dma->queue.ring, index, 1);
    *position = index;
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
 * Enqueues a fill, and tells where: the bytes of `pattern`, as they lie in memory, again and again, from the start of the
 * destination on. As weftio_dev_dma_memcpy_position otherwise.
 */
WEFTIO_FN weftio_s32 weftio_dev_dma_fill_position(WEFTIO_GLOBAL struct weftio_dev_dma *dma, weftio_u32 pattern,
                                                  struct weftio_dev_buf destination, weftio_u64 destination_offset,
                                                  weftio_u64 bytes, weftio_u32 flags, weftio_u32 *position)
{
    weftio_u32 index;

    if (!weftio_dev_is_handle(dma->queue.abi, WEFTIO_DEV_ABI_DMA))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (!weftio_dev_dma_fits(destination, destination_offset, bytes))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (!weftio_dev_send_reserve(&dma->queue.ring, 1, &index))
        return WEFTIO_DEV_FULL;
    weftio_dev_write_fill(&dma->queue.ring, index, pattern, destination, destination_offset, bytes, flags);
    weftio_dev_send_fill(&dma->queue.ring, index, 1);
    *position = index;
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

/** As weftio_dev_send_queue_get_info: where the next entry goes, and the mask of positions, for weak mode. */
WEFTIO_FN void weftio_dev_dma_get_info(const WEFTIO_GLOBAL struct weftio_dev_dma *dma, weftio_u32 *position,
                                       weftio_u32 *mask)
{
    weftio_dev_send_queue_get_info(&dma->queue, position, mask);
}

/**
 * Writes the entry of a copy at `position`. Never blocks; lanes of one block, each its own positions, without gaps.
 * Whether the engine is done with what was in that place before is the caller's business: weftio_dev_dma_wait_room().
 *
 * @param position  free-running, from get_info on
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_INVALID_ARGUMENT as weftio_dev_dma_memcpy, or `position` has been committed, or is
 *         not within the ring's depth of the next one
 */
WEFTIO_FN weftio_s32 weftio_dev_dma_memcpy_weak(WEFTIO_GLOBAL struct weftio_dev_dma *dma, struct weftio_dev_buf source,
                                                weftio_u64 source_offset, struct weftio_dev_buf destination,
                                                weftio_u64 destination_offset, weftio_u64 bytes, weftio_u32 position,
                                                weftio_u32 flags)
{
    if (!weftio_dev_is_handle(dma->queue.abi, WEFTIO_DEV_ABI_DMA))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (!weftio_dev_dma_fits(source, source_offset, bytes) ||
        !weftio_dev_dma_fits(destination, destination_offset, bytes) ||
        !weftio_dev_weak_fits(&dma->queue.ring, position))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_dev_write_copy(&dma->queue.ring, position, source, source_offset, destination, destination_offset, bytes,
                          flags);
    return WEFTIO_DEV_OK;
}

/**
 * Publishes the strong entries that are filled without a gap, and makes the engine look. One lane of a scope, after a
 * barrier; several blocks may commit at once. Waits while another block is in the same few instructions; in inline mode
 * the engine runs inside this call. As weftio_dev_send_queue_commit_strong otherwise.
 */
WEFTIO_FN weftio_s32 weftio_dev_dma_commit(WEFTIO_GLOBAL struct weftio_dev_dma *dma)
{
    return weftio_dev_send_queue_submit(&dma->queue);
}

/** Publishes the next `count` weak entries, and makes the engine look. As weftio_dev_send_queue_commit_weak. */
WEFTIO_FN weftio_s32 weftio_dev_dma_commit_weak(WEFTIO_GLOBAL struct weftio_dev_dma *dma, weftio_u32 count)
{
    return weftio_dev_send_queue_submit_weak(&dma->queue, count);
}

/** As weftio_dev_send_queue_poll_completion. Done means: the copy can be seen by whoever sees the completion. */
WEFTIO_FN weftio_s32 weftio_dev_dma_poll_completion(WEFTIO_GLOBAL struct weftio_dev_dma *dma, weftio_u32 position,
                                                    weftio_u64 *completed_ns)
{
    return weftio_dev_send_queue_poll_completion(&dma->queue, position, completed_ns);
}

/** As weftio_dev_send_queue_wait_completed: waits until the entry at `position` is done, and can be seen. */
WEFTIO_FN weftio_s32 weftio_dev_dma_wait(WEFTIO_GLOBAL struct weftio_dev_dma *dma, weftio_u32 position,
                                         weftio_u64 timeout_ns)
{
    return weftio_dev_send_queue_wait_completed(&dma->queue, position, timeout_ns);
}

/**
 * Commits, and waits until everything that was committed is done, bounded by `timeout_ns` (0: by the abort flag only).
 * One lane of a scope; what other blocks commit meanwhile may be waited for too.
 *
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_TIMEOUT; WEFTIO_DEV_ABORTED; WEFTIO_DEV_QUEUE_ERROR; WEFTIO_DEV_INVALID_ARGUMENT
 *         as weftio_dev_send_queue_commit_strong
 */
WEFTIO_FN weftio_s32 weftio_dev_dma_commit_wait(WEFTIO_GLOBAL struct weftio_dev_dma *dma, weftio_u64 timeout_ns)
{
    return weftio_dev_send_queue_submit_wait(&dma->queue, timeout_ns);
}

/** As weftio_dev_send_queue_wait_room: waits until at least `count` positions are free. */
WEFTIO_FN weftio_s32 weftio_dev_dma_wait_room(WEFTIO_GLOBAL struct weftio_dev_dma *dma, weftio_u32 count,
                                              weftio_u64 timeout_ns)
{
    return weftio_dev_send_queue_wait_room(&dma->queue, count, timeout_ns);
}

/** As weftio_dev_send_queue_status: WEFTIO_DEV_QUEUE_ERROR, WEFTIO_DEV_ABORTED or WEFTIO_DEV_OK. */
WEFTIO_FN weftio_s32 weftio_dev_dma_status(const WEFTIO_GLOBAL struct weftio_dev_dma *dma)
{
    return weftio_dev_send_queue_status(&dma->queue);
}
