/**
 * DMA: copies of memory by an engine of the device.
 *
 * With doca_ctx_set_datapath_on_gpu() kernels copy (doca_gpunetio_dev_dma.cuh); else the CPU does, by tasks whose
 * callbacks doca_pe_progress() calls. A Weftio device has one engine, a thread, whatever NIC it is. Memory is in mmaps
 * that have the device.
 *
 * All functions return DOCA_SUCCESS or DOCA_ERROR_INVALID_VALUE (a null pointer, no such object, a value out of range).
 * DOCA_ERROR_BAD_STATE: the context is started and may not be, or the other way round.
 */
#pragma once

#include "doca_buf.h"
#include "doca_pe.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_dma;
struct doca_dma_task_memcpy;
struct doca_gpu_dma; /**< of kernels: doca_gpunetio_dev_dma.cuh */

/** Called when a task has ended: doca_task_get_status() tells how. It may submit or free the task. */
typedef void (*doca_dma_task_memcpy_completion_cb_t)(struct doca_dma_task_memcpy *task, union doca_data task_user_data,
                                                     union doca_data ctx_user_data);

doca_error_t doca_dma_create(struct doca_dev *dev, struct doca_dma **dma);
/** Destroys a context in any state. Tasks that have not ended get DOCA_ERROR_SHUTDOWN without a callback. */
doca_error_t doca_dma_destroy(struct doca_dma *dma);
/**
 * The context, which has the same life; NULL if there is no such object. doca_ctx_stop() returns
 * DOCA_ERROR_IN_PROGRESS while tasks are in progress: the state is then DOCA_CTX_STATE_STOPPING until
 * doca_pe_progress() has seen the last of them end.
 */
struct doca_ctx *doca_dma_as_ctx(struct doca_dma *dma);
/** The argument for kernels. DOCA_ERROR_BAD_STATE also: the context is the CPU's. */
doca_error_t doca_dma_get_gpu_handle(struct doca_dma *dma, struct doca_gpu_dma **handle);

/**
 * Before doca_ctx_start(), of a context of the CPU: what is called when copies end.
 *
 * @param tasks  the most that are allocated at a time, 1 to 32,768
 */
doca_error_t doca_dma_task_memcpy_set_conf(struct doca_dma *dma, doca_dma_task_memcpy_completion_cb_t on_success,
                                           doca_dma_task_memcpy_completion_cb_t on_error, uint32_t tasks);
/**
 * Makes a task that copies the data of `source` behind the data of `destination`. Both keep their bytes for the task.
 * Tasks are executed in order; one that fails changes nothing for those behind it.
 *
 * @return DOCA_ERROR_NO_MEMORY all tasks are allocated; DOCA_ERROR_BAD_STATE also: doca_dma_task_memcpy_set_conf() was
 *         not called; DOCA_ERROR_INVALID_VALUE also: `source` has no data, or more than `destination` has room for
 */
doca_error_t doca_dma_task_memcpy_alloc_init(struct doca_dma *dma, const struct doca_buf *source,
                                             struct doca_buf *destination, union doca_data user_data,
                                             struct doca_dma_task_memcpy **task);
/** The task for doca_task_submit() and the functions beside it; NULL if there is no such task. */
struct doca_task *doca_dma_task_memcpy_as_task(struct doca_dma_task_memcpy *task);

#ifdef __cplusplus
}
#endif
