/**
 * Ethernet send queues inside a kernel. CUDA, and C++20 for CPU kernels.
 *
 * Strong functions find a free position themselves; any threads of one block may call them at once. Weak functions are
 * given the position by the caller. A queue is used in one of the two modes. All functions return DOCA_SUCCESS, or
 *
 * - DOCA_ERROR_INVALID_VALUE  the queue or the buffer is NULL, the buffer is a peer's, there are 0 bytes, or more than
 *                             the buffer has
 * - DOCA_ERROR_IO_FAILED      an entry has failed: the log, and the program's error callback, tell which
 * - DOCA_ERROR_SHUTDOWN       Weftio has stopped the queue
 */
#pragma once

#include "doca_gpunetio_dev_queue.cuh"
#include "weftio/device/eth_txq.h"

/** Made by doca_ctx_start() of a send queue. */
struct doca_gpu_eth_txq {
    struct weftio_dev_eth_txq *queue;
};

enum doca_gpu_eth_send_flags {
    DOCA_GPU_SEND_FLAG_NONE = 0,
    DOCA_GPU_SEND_FLAG_NOTIFY = 1 /**< calls doca_eth_txq_gpu_event_notify_send_packet_cb_t */
};

/** What an entry needs of a buffer. */
WEFTIO_FN weftio_u32 weftio_doca_txq_sends(const struct doca_gpu_eth_txq *txq, const struct doca_gpu_buf *buf,
                                           weftio_u32 bytes)
{
    return txq && buf && !buf->is_remote && bytes && bytes <= buf->bytes;
}

/** Position of the next entry, and the mask of positions, for weak mode. Any thread, while none enqueues. */
WEFTIO_FN doca_error_t doca_gpu_dev_eth_txq_get_info(struct doca_gpu_eth_txq *txq, weftio_u32 *position,
                                                     weftio_u32 *mask)
{
    if (!txq)
        return DOCA_ERROR_INVALID_VALUE;
    weftio_dev_eth_txq_get_info(txq->queue, position, mask);
    return DOCA_SUCCESS;
}

/**
 * Enqueues a frame at the next free position. While the ring is full of committed entries, waits until one is done; if
 * entries fill the ring that nobody has committed, DOCA_ERROR_FULL.
 *
 * @param buf    may be a received packet
 * @param bytes  of the frame, without its CRC
 * @param flags  DOCA_GPU_SEND_FLAG_*
 */
WEFTIO_FN doca_error_t doca_gpu_dev_eth_txq_send_enqueue_strong(struct doca_gpu_eth_txq *txq,
                                                                const struct doca_gpu_buf *buf, weftio_u32 bytes,
                                                                weftio_u32 flags)
{
    if (!weftio_doca_txq_sends(txq, buf, bytes))
        return DOCA_ERROR_INVALID_VALUE;
    for (weftio_u32 attempt = 0;; ++attempt) {
        const weftio_s32 status =
            weftio_dev_eth_txq_send_enqueue_strong(txq->queue, weftio_doca_buf(buf), bytes, flags);
        if (status != WEFTIO_DEV_FULL)
            return weftio_doca_error(status);
        const doca_error_t error = weftio_doca_queue_full(&txq->queue->queue, attempt);
        if (error != DOCA_SUCCESS)
            return error;
    }
}

/**
 * Enqueues a wait: later frames do not leave before the time that doca_eth_txq_calculate_timestamp() made `value` of.
 */
WEFTIO_FN doca_error_t doca_gpu_dev_eth_txq_wait_time_enqueue_strong(struct doca_gpu_eth_txq *txq, weftio_u64 value,
                                                                     weftio_u32 flags)
{
    if (!txq)
        return DOCA_ERROR_INVALID_VALUE;
    for (weftio_u32 attempt = 0;; ++attempt) {
        const weftio_s32 status = weftio_dev_eth_txq_wait_time_enqueue_strong(txq->queue, value, flags);
        if (status != WEFTIO_DEV_FULL)
            return weftio_doca_error(status);
        const doca_error_t error = weftio_doca_queue_full(&txq->queue->queue, attempt);
        if (error != DOCA_SUCCESS)
            return error;
    }
}

/** Publishes the enqueued entries, also if there are none. One thread, after a barrier behind the last enqueue. */
WEFTIO_FN doca_error_t doca_gpu_dev_eth_txq_commit_strong(struct doca_gpu_eth_txq *txq)
{
    return txq ? weftio_doca_error(weftio_dev_eth_txq_commit_strong(txq->queue)) : DOCA_ERROR_INVALID_VALUE;
}

/**
 * Weak mode: writes the entry of a frame at `position`, modulo the ring. Waits while the entry that was there is not
 * done.
 */
WEFTIO_FN doca_error_t doca_gpu_dev_eth_txq_send_enqueue_weak(struct doca_gpu_eth_txq *txq,
                                                              const struct doca_gpu_buf *buf, weftio_u32 bytes,
                                                              weftio_u32 position, weftio_u32 flags)
{
    if (!weftio_doca_txq_sends(txq, buf, bytes))
        return DOCA_ERROR_INVALID_VALUE;
    const doca_error_t error = weftio_doca_queue_place(&txq->queue->queue, &position);
    if (error != DOCA_SUCCESS)
        return error;
    return weftio_doca_error(
        weftio_dev_eth_txq_send_enqueue_weak(txq->queue, weftio_doca_buf(buf), bytes, position, flags));
}

/** Weak mode: writes a wait at `position`; as doca_gpu_dev_eth_txq_send_enqueue_weak. */
WEFTIO_FN doca_error_t doca_gpu_dev_eth_txq_wait_time_enqueue_weak(struct doca_gpu_eth_txq *txq, weftio_u64 value,
                                                                   weftio_u32 position, weftio_u32 flags)
{
    if (!txq)
        return DOCA_ERROR_INVALID_VALUE;
    const doca_error_t error = weftio_doca_queue_place(&txq->queue->queue, &position);
    if (error != DOCA_SUCCESS)
        return error;
    return weftio_doca_error(weftio_dev_eth_txq_wait_time_enqueue_weak(txq->queue, value, position, flags));
}

/** Weak mode: publishes the next `count` entries. One thread, after a barrier behind the last enqueue. */
WEFTIO_FN doca_error_t doca_gpu_dev_eth_txq_commit_weak(struct doca_gpu_eth_txq *txq, weftio_u32 count)
{
    return txq ? weftio_doca_error(weftio_dev_eth_txq_commit_weak(txq->queue, count)) : DOCA_ERROR_INVALID_VALUE;
}

/** Has the NIC send what is published. One thread. */
WEFTIO_FN doca_error_t doca_gpu_dev_eth_txq_push(struct doca_gpu_eth_txq *txq)
{
    if (!txq)
        return DOCA_ERROR_INVALID_VALUE;
    weftio_dev_eth_txq_push(txq->queue);
    return DOCA_SUCCESS;
}
