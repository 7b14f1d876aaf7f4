/**
 * Semaphores inside a kernel. CUDA, and C++20 for CPU kernels.
 *
 * Setting a status publishes what was written before; a reader of that status sees it. Indices are taken modulo the
 * number of items. No function blocks. All return DOCA_SUCCESS or DOCA_ERROR_INVALID_VALUE (the semaphore is NULL).
 */
#pragma once

#include "doca_gpunetio.h"
#include "doca_gpunetio_dev_buf.cuh"
#include "weftio/device/semaphore.h"

WEFTIO_FN const struct weftio_dev_semaphore *weftio_doca_semaphore(const struct doca_gpu_semaphore_gpu *semaphore)
{
    return (const struct weftio_dev_semaphore *)semaphore;
}

WEFTIO_FN doca_error_t doca_gpu_dev_semaphore_get_status(struct doca_gpu_semaphore_gpu *semaphore, weftio_u32 index,
                                                         enum doca_gpu_semaphore_status *status)
{
    if (!semaphore)
        return DOCA_ERROR_INVALID_VALUE;
    *status = (enum doca_gpu_semaphore_status)weftio_dev_semaphore_get_status(weftio_doca_semaphore(semaphore), index);
    return DOCA_SUCCESS;
}

/** Any change of status is accepted. */
WEFTIO_FN doca_error_t doca_gpu_dev_semaphore_set_status(struct doca_gpu_semaphore_gpu *semaphore, weftio_u32 index,
                                                         enum doca_gpu_semaphore_status status)
{
    if (!semaphore)
        return DOCA_ERROR_INVALID_VALUE;
    return weftio_doca_error(
        weftio_dev_semaphore_set_status(weftio_doca_semaphore(semaphore), index, (weftio_u32)status));
}

/** DOCA_ERROR_NOT_FOUND: items have no custom info. */
WEFTIO_FN doca_error_t doca_gpu_dev_semaphore_get_custom_info_addr(struct doca_gpu_semaphore_gpu *semaphore,
                                                                   weftio_u32 index, void **custom_info)
{
    if (!semaphore)
        return DOCA_ERROR_INVALID_VALUE;
    *custom_info = weftio_dev_semaphore_get_custom_info_addr(weftio_doca_semaphore(semaphore), index);
    return *custom_info ? DOCA_SUCCESS : DOCA_ERROR_NOT_FOUND;
}

/** Sets which packets an item is about, and its status. */
WEFTIO_FN doca_error_t doca_gpu_dev_semaphore_set_packet_info(struct doca_gpu_semaphore_gpu *semaphore,
                                                              weftio_u32 index, enum doca_gpu_semaphore_status status,
                                                              weftio_u32 count, weftio_u64 first)
{
    if (!semaphore)
        return DOCA_ERROR_INVALID_VALUE;
    return weftio_doca_error(weftio_dev_semaphore_set_packet_info(weftio_doca_semaphore(semaphore), index,
                                                                  (weftio_u32)status, count, (weftio_u32)first));
}

/**
 * Which packets an item is about.
 *
 * @return DOCA_SUCCESS; DOCA_ERROR_NOT_FOUND the status of the item is not `status`, and nothing was changed
 */
WEFTIO_FN doca_error_t doca_gpu_dev_semaphore_get_packet_info_status(struct doca_gpu_semaphore_gpu *semaphore,
                                                                     weftio_u32 index,
                                                                     enum doca_gpu_semaphore_status status,
                                                                     weftio_u32 *count, weftio_u64 *first)
{
    weftio_u32 packet = 0;

    if (!semaphore)
        return DOCA_ERROR_INVALID_VALUE;
    if (weftio_dev_semaphore_get_packet_info_status(weftio_doca_semaphore(semaphore), index, (weftio_u32)status, count,
                                                    &packet) != WEFTIO_DEV_OK)
        return DOCA_ERROR_NOT_FOUND;
    *first = packet;
    return DOCA_SUCCESS;
}

/* The guide's shorter names. */

WEFTIO_FN doca_error_t doca_gpu_dev_sem_get_status(struct doca_gpu_semaphore_gpu *semaphore, weftio_u32 index,
                                                   enum doca_gpu_semaphore_status *status)
{
    return doca_gpu_dev_semaphore_get_status(semaphore, index, status);
}
WEFTIO_FN doca_error_t doca_gpu_dev_sem_set_status(struct doca_gpu_semaphore_gpu *semaphore, weftio_u32 index,
                                                   enum doca_gpu_semaphore_status status)
{
    return doca_gpu_dev_semaphore_set_status(semaphore, index, status);
}
WEFTIO_FN doca_error_t doca_gpu_dev_sem_get_custom_info_addr(struct doca_gpu_semaphore_gpu *semaphore, weftio_u32 index,
                                                             void **custom_info)
{
    return doca_gpu_dev_semaphore_get_custom_info_addr(semaphore, index, custom_info);
}
WEFTIO_FN doca_error_t doca_gpu_dev_sem_set_packet_info(struct doca_gpu_semaphore_gpu *semaphore, weftio_u32 index,
                                                        enum doca_gpu_semaphore_status status, weftio_u32 count,
                                                        weftio_u64 first)
{
    return doca_gpu_dev_semaphore_set_packet_info(semaphore, index, status, count, first);
}
WEFTIO_FN doca_error_t doca_gpu_dev_sem_get_packet_info_status(struct doca_gpu_semaphore_gpu *semaphore,
                                                               weftio_u32 index, enum doca_gpu_semaphore_status status,
                                                               weftio_u32 *count, weftio_u64 *first)
{
    return doca_gpu_dev_semaphore_get_packet_info_status(semaphore, index, status, count, first);
}
