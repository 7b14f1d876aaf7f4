/** GPUs, memory that GPU, CPU and NIC share, and semaphores. */
#pragma once

#include "doca_error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_gpu;
struct doca_gpu_semaphore;
struct doca_gpu_semaphore_gpu; /**< of kernels: doca_gpunetio_dev_sem.cuh */

/** Reads or writes a variable that a GPU or another CPU changes at the same time: C, C++ and device code. */
#define DOCA_GPUNETIO_VOLATILE(x) (*(volatile __typeof__(x) *)&(x))

/**
 * Where memory lies, and who uses it. Weftio's software NIC reads and writes the memory itself, so all three are pinned
 * memory of the host that the GPU maps, which the log tells once. A program may still treat memory of type GPU as the
 * GPU's own; data that only kernels use belongs into cudaMalloc's memory.
 */
enum doca_gpu_mem_type {
    DOCA_GPU_MEM_TYPE_GPU = 0,     /**< for the GPU and the NIC */
    DOCA_GPU_MEM_TYPE_GPU_CPU = 1, /**< for the GPU, and the CPU now and then */
    DOCA_GPU_MEM_TYPE_CPU_GPU = 2, /**< for the CPU, and the GPU now and then */
    DOCA_GPU_MEM_GPU = DOCA_GPU_MEM_TYPE_GPU,
    DOCA_GPU_MEM_GPU_CPU = DOCA_GPU_MEM_TYPE_GPU_CPU,
    DOCA_GPU_MEM_CPU_GPU = DOCA_GPU_MEM_TYPE_CPU_GPU
};

enum doca_gpu_semaphore_status {
    DOCA_GPU_SEMAPHORE_STATUS_FREE = 0,
    DOCA_GPU_SEMAPHORE_STATUS_READY = 1,
    DOCA_GPU_SEMAPHORE_STATUS_HOLD = 2,
    DOCA_GPU_SEMAPHORE_STATUS_DONE = 3,
    DOCA_GPU_SEMAPHORE_STATUS_ERROR = 4
};

/**
 * Opens the GPU with a PCI address. Also "cpu", for CPU kernels (README.md, "Without a GPU"), and each spec of Weftio's
 * device::open.
 *
 * @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE a null pointer, or no PCI address; DOCA_ERROR_NOT_FOUND no such GPU,
 *         or no driver; DOCA_ERROR_NOT_SUPPORTED the GPU lacks something, which the log names
 */
doca_error_t doca_gpu_create(const char *gpu_bus_id, struct doca_gpu **gpu);
/**
 * Ends the program's use of a GPU. What was made on it stays usable, and memory stays until doca_gpu_mem_free(), which
 * still takes `gpu`. @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE
 */
doca_error_t doca_gpu_destroy(struct doca_gpu *gpu);

/**
 * Allocates zeroed memory. May wait while the driver maps it; never for a running kernel.
 *
 * @param alignment        a power of two up to 2 MiB; 0: 4 KiB
 * @param[out] gpu_memory  address for kernels
 * @param[out] cpu_memory  address for the CPU; may be NULL for DOCA_GPU_MEM_TYPE_GPU, for which NULL is returned
 * @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE a null pointer, no such GPU, 0 bytes, a bad alignment, or no such
 *         type; DOCA_ERROR_NO_MEMORY
 */
doca_error_t doca_gpu_mem_alloc(struct doca_gpu *gpu, size_t bytes, size_t alignment, enum doca_gpu_mem_type type,
                                void **gpu_memory, void **cpu_memory);
/**
 * Frees memory. An mmap that has a range in it keeps the bytes until it is destroyed.
 *
 * @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE no such GPU, or `gpu_memory` is not an address that
 *         doca_gpu_mem_alloc() returned for it
 */
doca_error_t doca_gpu_mem_free(struct doca_gpu *gpu, void *gpu_memory);
/** @return DOCA_ERROR_NOT_SUPPORTED, and programs map the memory by its address; DOCA_ERROR_INVALID_VALUE */
doca_error_t doca_gpu_dmabuf_fd(struct doca_gpu *gpu, void *gpu_memory, size_t bytes, int *dmabuf_fd);

/*
 * Semaphores: items with a status and custom info, which kernels and the CPU hand to each other. Set what an item
 * consists of, then start the semaphore.
 *
 * Setting a status publishes what was written to the item before; a reader of that status sees it. Both ends need no
 * fence of their own.
 *
 * All return DOCA_SUCCESS or DOCA_ERROR_INVALID_VALUE (a null pointer, no such semaphore, a value out of range);
 * DOCA_ERROR_BAD_STATE: the semaphore is started and may not be, or the other way round.
 */

/** Makes a semaphore, which has no items yet. */
doca_error_t doca_gpu_semaphore_create(struct doca_gpu *gpu, struct doca_gpu_semaphore **semaphore);
/** Destroys a semaphore in any state, after kernels have ended that use it. */
doca_error_t doca_gpu_semaphore_destroy(struct doca_gpu_semaphore *semaphore);
/** Allocates the items, all FREE. Also DOCA_ERROR_NO_MEMORY. */
doca_error_t doca_gpu_semaphore_start(struct doca_gpu_semaphore *semaphore);
/** Ends the use of the items. A start makes new ones. */
doca_error_t doca_gpu_semaphore_stop(struct doca_gpu_semaphore *semaphore);
/** Memory of the statuses. The CPU reads and sets them unless it is DOCA_GPU_MEM_TYPE_GPU, the default. */
doca_error_t doca_gpu_semaphore_set_memory_type(struct doca_gpu_semaphore *semaphore, enum doca_gpu_mem_type type);
/** Number of items, 1 to 2^20. */
doca_error_t doca_gpu_semaphore_set_items_num(struct doca_gpu_semaphore *semaphore, uint32_t items);
/** Custom info of each item: 1 to 2^20 bytes, and their memory. */
doca_error_t doca_gpu_semaphore_set_custom_info(struct doca_gpu_semaphore *semaphore, uint32_t bytes,
                                                enum doca_gpu_mem_type type);
/** The argument for kernels. DOCA_ERROR_BAD_STATE before the start. */
doca_error_t doca_gpu_semaphore_get_gpu_handle(struct doca_gpu_semaphore *semaphore,
                                               struct doca_gpu_semaphore_gpu **handle);
/** Status of item `index` modulo the number of items. DOCA_ERROR_NOT_PERMITTED memory of type GPU. Never blocks. */
doca_error_t doca_gpu_semaphore_get_status(struct doca_gpu_semaphore *semaphore, uint32_t index,
                                           enum doca_gpu_semaphore_status *status);
/** Sets the status of an item; as doca_gpu_semaphore_get_status otherwise. */
doca_error_t doca_gpu_semaphore_set_status(struct doca_gpu_semaphore *semaphore, uint32_t index,
                                           enum doca_gpu_semaphore_status status);
/**
 * Address of an item's custom info for the CPU. DOCA_ERROR_NOT_FOUND items have none; DOCA_ERROR_NOT_PERMITTED it is
 * memory of type GPU.
 */
doca_error_t doca_gpu_semaphore_get_custom_info_addr(struct doca_gpu_semaphore *semaphore, uint32_t index,
                                                     void **custom_info);

#ifdef __cplusplus
}
#endif
