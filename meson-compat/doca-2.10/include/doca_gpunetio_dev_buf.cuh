/** Buffers inside a kernel. CUDA, and C++20 for CPU kernels. */
#pragma once

#include "doca_error.h"
#include "weftio/device/buf.h"

/** One buffer: an element of an array, or a received packet. Kernels hold pointers to it. */
struct doca_gpu_buf {
    weftio_u64 address; /**< of a peer's buffer: in its address space */
    weftio_u64 bytes;
    weftio_u32 key_be;
    weftio_u32 is_remote; /**< 1: memory of a peer, which only RDMA reaches */
};
WEFTIO_STATIC_ASSERT(sizeof(struct doca_gpu_buf) == 24, "host and device share this layout");

/** Made by doca_buf_arr_start(). */
struct doca_gpu_buf_arr {
    struct doca_gpu_buf *elements;
    weftio_u64 count;
};

/**
 * Element `index` modulo the number of elements, so that a free-running index may be passed. Any thread; never blocks.
 *
 * @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE `array` is NULL
 */
WEFTIO_FN doca_error_t doca_gpu_dev_buf_get_buf(const struct doca_gpu_buf_arr *array, weftio_u64 index,
                                                struct doca_gpu_buf **buf)
{
    if (!array)
        return DOCA_ERROR_INVALID_VALUE;
    *buf = array->elements + (index < array->count ? index : index % array->count);
    return DOCA_SUCCESS;
}

/** Address of a buffer's first byte. Any thread; never blocks. DOCA_ERROR_INVALID_VALUE `buf` is NULL. */
WEFTIO_FN doca_error_t doca_gpu_dev_buf_get_addr(const struct doca_gpu_buf *buf, uintptr_t *address)
{
    if (!buf)
        return DOCA_ERROR_INVALID_VALUE;
    *address = (uintptr_t)buf->address;
    return DOCA_SUCCESS;
}

/* Of Weftio. */

/** The buffer as Weftio's own functions take it. */
WEFTIO_FN struct weftio_dev_buf weftio_doca_buf(const struct doca_gpu_buf *buf)
{
    struct weftio_dev_buf whole;

    whole.address = (weftio_u8 *)(uintptr_t)buf->address;
    whole.bytes = (weftio_u32)(buf->bytes < 0xffffffffu ? buf->bytes : 0xffffffffu);
    whole.lkey_be = buf->is_remote ? 0 : buf->key_be;
    return whole;
}

/** What a status of Weftio's functions is here. */
WEFTIO_FN doca_error_t weftio_doca_error(weftio_s32 status)
{
    switch (status) {
        case WEFTIO_DEV_OK: return DOCA_SUCCESS;
        case WEFTIO_DEV_ABORTED: return DOCA_ERROR_SHUTDOWN;
        case WEFTIO_DEV_NOT_FOUND: return DOCA_ERROR_NOT_FOUND;
        case WEFTIO_DEV_FULL: return DOCA_ERROR_FULL;
        case WEFTIO_DEV_TIMEOUT: return DOCA_ERROR_TIME_OUT;
        case WEFTIO_DEV_QUEUE_ERROR: return DOCA_ERROR_IO_FAILED;
        default: return DOCA_ERROR_INVALID_VALUE;
    }
}
