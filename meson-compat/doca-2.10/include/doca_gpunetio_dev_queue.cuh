/** Of Weftio: what strong and weak functions of all queues do while a ring is full. */
#pragma once

#include "doca_gpunetio_dev_buf.cuh"
#include "weftio/device/queue/send.h"

/** One iteration of a wait for entries that the NIC executes: DOCA_SUCCESS to go on. */
WEFTIO_FN doca_error_t weftio_doca_queue_wait(const struct weftio_dev_send_queue *queue, weftio_u32 attempt)
{
    const weftio_s32 status = weftio_dev_send_queue_status(queue);

    if (status == WEFTIO_DEV_OK)
        weftio_relax(attempt);
    return weftio_doca_error(status);
}

/**
 * Strong mode, after an entry found no room: DOCA_SUCCESS to try again, DOCA_ERROR_FULL there will be none before a
 * commit.
 */
WEFTIO_FN doca_error_t weftio_doca_queue_full(const struct weftio_dev_send_queue *queue, weftio_u32 attempt)
{
    /* Not from what is completed: that may have changed since the entry found no room. */
    const weftio_u32 uncommitted =
        weftio_load_relaxed_u32(&queue->ring.reserved) - weftio_load_relaxed_u32(&queue->ring.ready);

    if (uncommitted == queue->ring.mask + 1)
        return DOCA_ERROR_FULL;
    return weftio_doca_queue_wait(queue, attempt);
}

/**
 * Weak mode: waits until the entry that was at this place of the ring is done, which has been committed. `*position` is
 * masked or runs on, and runs on afterwards.
 */
WEFTIO_FN doca_error_t weftio_doca_queue_place(struct weftio_dev_send_queue *queue, weftio_u32 *position)
{
    doca_error_t error = DOCA_SUCCESS;

    *position = weftio_dev_send_queue_unmask(queue, *position & queue->ring.mask);
    for (weftio_u32 attempt = 0; *position - weftio_load_relaxed_u32(&queue->ring.completed) > queue->ring.mask;
         ++attempt) {
        if (attempt && (error = weftio_doca_queue_wait(queue, attempt)) != DOCA_SUCCESS)
            break;
        weftio_store_relaxed_u32(&queue->ring.completed, weftio_dev_send_completed(&queue->ring));
    }
    return error;
}

/** Whether [offset, offset + bytes) lies in the buffer. */
WEFTIO_FN weftio_u32 weftio_doca_buf_has(const struct doca_gpu_buf *buf, weftio_u64 offset, weftio_u64 bytes)
{
    return buf && offset <= buf->bytes && bytes <= buf->bytes - offset;
}

/** Those bytes, which are 2^31 at most, as Weftio's own functions take them. */
WEFTIO_FN struct weftio_dev_buf weftio_doca_buf_part(const struct doca_gpu_buf *buf, weftio_u64 offset,
                                                     weftio_u64 bytes)
{
    struct weftio_dev_buf part;

    part.address = (weftio_u8 *)(uintptr_t)(buf->address + offset);
    part.bytes = (weftio_u32)bytes;
    part.lkey_be = buf->is_remote ? 0 : buf->key_be;
    return part;
}
