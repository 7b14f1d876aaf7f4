/**
 * Arrays of buffers for kernels: element i begins at byte `start_offset + i * element_bytes` of an mmap's range.
 *
 * All functions return DOCA_SUCCESS or DOCA_ERROR_INVALID_VALUE (a null pointer, no such object, a value out of range).
 * DOCA_ERROR_BAD_STATE: the array is started and may not be, or the other way round.
 */
#pragma once

#include "doca_gpunetio.h"
#include "doca_mmap.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_buf_arr;
struct doca_gpu_buf_arr; /**< of kernels: doca_gpunetio_dev_buf.cuh */

doca_error_t doca_buf_arr_create(size_t elements, struct doca_buf_arr **array);
doca_error_t doca_buf_arr_destroy(struct doca_buf_arr *array);
/** The GPU whose kernels use the array. */
doca_error_t doca_buf_arr_set_target_gpu(struct doca_buf_arr *array, struct doca_gpu *gpu);
/** The memory: an mmap of this program, or a peer's (doca_mmap_create_from_export). */
doca_error_t doca_buf_arr_set_params(struct doca_buf_arr *array, struct doca_mmap *mmap, size_t element_bytes,
                                     uint64_t start_offset);
/**
 * Makes the array.
 *
 * @return DOCA_ERROR_BAD_STATE also: no GPU or no mmap is set, or the mmap is not started; DOCA_ERROR_INVALID_VALUE the
 *         last element reaches beyond the range; DOCA_ERROR_NO_MEMORY
 */
doca_error_t doca_buf_arr_start(struct doca_buf_arr *array);
doca_error_t doca_buf_arr_stop(struct doca_buf_arr *array);
/** The argument for kernels. DOCA_ERROR_BAD_STATE before the start. */
doca_error_t doca_buf_arr_get_gpu_handle(const struct doca_buf_arr *array, struct doca_gpu_buf_arr **handle);

#ifdef __cplusplus
}
#endif
