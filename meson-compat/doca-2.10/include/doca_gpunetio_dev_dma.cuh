/**
 * DMA inside a kernel. CUDA, and C++20 for CPU kernels.
 *
 * Copies are executed in order. All functions return DOCA_SUCCESS, or
 *
 * - DOCA_ERROR_INVALID_VALUE  the queue or a buffer is NULL, a buffer is a peer's, there are 0 bytes, or they reach
 *                             beyond a buffer
 * - DOCA_ERROR_IO_FAILED      a copy has failed: the log tells which. No copy is executed any more
 * - DOCA_ERROR_SHUTDOWN       Weftio has stopped the queue
 */
#pragma once

#include "doca_gpunetio_dev_queue.cuh"
#include "weftio/device/dma.h"

/** Made by doca_ctx_start() of a DMA context with a GPU. */
struct doca_gpu_dma {
    struct weftio_dev_dma *queue;
};

/** Enqueues a copy of at most WEFTIO_DEV_DMA_MOST_BYTES bytes, which lie in both buffers. */
WEFTIO_FN doca_error_t weftio_doca_dma_part(struct weftio_dev_dma *queue, struct weftio_dev_buf source,
                                            struct weftio_dev_buf destination)
{
    for (weftio_u32 attempt = 0;; ++attempt) {
        const weftio_s32 status =
            weftio_dev_dma_memcpy(queue, source, 0, destination, 0, source.bytes, WEFTIO_DEV_SEND_NONE);
        if (status != WEFTIO_DEV_FULL)
            return weftio_doca_error(status);
        const doca_error_t error = weftio_doca_queue_full(&queue->queue, attempt);
        if (error != DOCA_SUCCESS)
            return error;
    }
}

/**
 * Enqueues a copy of `bytes` bytes. Any threads of one block, several at once. While the queue is full of committed
 * copies, waits until one is done; if copies fill it that nobody has committed, DOCA_ERROR_FULL. Do not change the
 * source, and do not use the destination, before the commit has returned. They must not overlap.
 */
WEFTIO_FN doca_error_t doca_gpu_dev_dma_memcpy(struct doca_gpu_dma *dma, const struct doca_gpu_buf *source,
                                               weftio_u64 source_offset, const struct doca_gpu_buf *destination,
                                               weftio_u64 destination_offset, size_t bytes)
{
    doca_error_t error = DOCA_SUCCESS;

    if (!dma || !bytes || !weftio_doca_buf_has(source, source_offset, bytes) ||
        !weftio_doca_buf_has(destination, destination_offset, bytes) || source->is_remote || destination->is_remote)
        return DOCA_ERROR_INVALID_VALUE;
    for (weftio_u64 done = 0; done < bytes && error == DOCA_SUCCESS; done += WEFTIO_DEV_DMA_MOST_BYTES) {
        const weftio_u64 part = bytes - done < WEFTIO_DEV_DMA_MOST_BYTES ? bytes - done : WEFTIO_DEV_DMA_MOST_BYTES;
        error = weftio_doca_dma_part(dma->queue, weftio_doca_buf_part(source, source_offset + done, part),
                                     weftio_doca_buf_part(destination, destination_offset + done, part));
    }
    return error;
}

/**
 * Executes the enqueued copies, also if there are none: when it returns, the bytes are there, for this kernel, others
 * and the CPU. One thread, after a barrier behind the last doca_gpu_dev_dma_memcpy() of the block.
 */
WEFTIO_FN doca_error_t doca_gpu_dev_dma_commit(struct doca_gpu_dma *dma)
{
    return dma ? weftio_doca_error(weftio_dev_dma_commit_wait(dma->queue, 0)) : DOCA_ERROR_INVALID_VALUE;
}
