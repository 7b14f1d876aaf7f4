/** A buffer array: buffers of equal size at equal distances in one registered region. */
#pragma once

#include "weftio/device/handle.h"

/** Made by the host class `buf_arr`; read-only for kernels. */
struct weftio_dev_buf_arr {
    weftio_u32 abi;     /**< WEFTIO_DEV_ABI_BUF_ARR */
    weftio_u32 lkey_be; /**< key of the region, in the byte order of entries */
    WEFTIO_GLOBAL weftio_u8 *base;
    weftio_u64 stride_bytes;
    weftio_u32 count;
    weftio_u32 buffer_bytes;
    weftio_u32 reserved[8];
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_buf_arr) == (WEFTIO_DEV_ABI_BUF_ARR & 0xffffu),
                     "host and device share this layout");

/** A buffer by value, for enqueue functions. */
struct weftio_dev_buf {
    WEFTIO_GLOBAL weftio_u8 *address;
    weftio_u32 bytes; /**< size of the buffer, not of its content */
    weftio_u32 lkey_be;
};

/**
 * Buffer `index` modulo the number of buffers, so that a free-running index may be passed. Never blocks; any lane. With
 * WEFTIO_DEV_CHECKS, if `array` is no buffer array, the buffer has 0 bytes, which every enqueue function refuses.
 */
WEFTIO_FN struct weftio_dev_buf weftio_dev_buf_get(const WEFTIO_GLOBAL struct weftio_dev_buf_arr *array,
                                                   weftio_u64 index)
{
    struct weftio_dev_buf buffer = {0, 0, 0};

    if (!weftio_dev_is_handle(array->abi, WEFTIO_DEV_ABI_BUF_ARR))
        return buffer;
    buffer.address = array->base + (index % array->count) * array->stride_bytes;
    buffer.bytes = array->buffer_bytes;
    buffer.lkey_be = array->lkey_be;
    return buffer;
}

/** Address of buffer `index`; as weftio_dev_buf_get. With WEFTIO_DEV_CHECKS, if `array` is no buffer array: 0. */
WEFTIO_FN WEFTIO_GLOBAL weftio_u8 *weftio_dev_buf_addr(const WEFTIO_GLOBAL struct weftio_dev_buf_arr *array,
                                                       weftio_u64 index)
{
    if (!weftio_dev_is_handle(array->abi, WEFTIO_DEV_ABI_BUF_ARR))
        return 0;
    return array->base + (index % array->count) * array->stride_bytes;
}
