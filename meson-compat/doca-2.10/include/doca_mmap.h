/**
 * Mmaps: ranges of memory that devices may access.
 *
 * Life: create, add devices, set range and permissions in any order, start. An mmap may be destroyed in any state, also
 * after its memory was freed: what uses it keeps the bytes.
 *
 * All functions return DOCA_SUCCESS or DOCA_ERROR_INVALID_VALUE (a null pointer, no such object, a value out of range).
 * DOCA_ERROR_BAD_STATE: the mmap is started and may not be, or the other way round.
 */
#pragma once

#include "doca_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_mmap;

doca_error_t doca_mmap_create(struct doca_mmap **mmap);
/** Destroys an mmap in any state. The rights of peers end as with doca_mmap_stop(). */
doca_error_t doca_mmap_destroy(struct doca_mmap *mmap);
/**
 * Registers the range with the devices.
 *
 * @return DOCA_ERROR_BAD_STATE also: no range is set; DOCA_ERROR_NOT_PERMITTED, DOCA_ERROR_NOT_SUPPORTED: the memory is
 *         of a kind that a device cannot access, which the log explains
 */
doca_error_t doca_mmap_start(struct doca_mmap *mmap);
/**
 * Ends the registration. When it returns, peers access no byte of the range any more. Arrays and queues that were
 * started with it go on; do not stop it while requests by them are under way, which may fail.
 */
doca_error_t doca_mmap_stop(struct doca_mmap *mmap);
/** Adds a device, also to a started mmap. Adding it again does nothing. */
doca_error_t doca_mmap_add_dev(struct doca_mmap *mmap, struct doca_dev *dev);
/** Removes a device of a stopped mmap. DOCA_ERROR_NOT_FOUND the mmap does not have it. */
doca_error_t doca_mmap_rm_dev(struct doca_mmap *mmap, struct doca_dev *dev);
/** DOCA_ACCESS_FLAG_*; by default DOCA_ACCESS_FLAG_LOCAL_READ_WRITE. */
doca_error_t doca_mmap_set_permissions(struct doca_mmap *mmap, uint32_t access_flags);
/** The range: memory of doca_gpu_mem_alloc, of the host, or of cudaMalloc. */
doca_error_t doca_mmap_set_memrange(struct doca_mmap *mmap, void *address, size_t bytes);
/** @return DOCA_ERROR_NOT_SUPPORTED, and programs map the memory by its address; DOCA_ERROR_INVALID_VALUE */
doca_error_t doca_mmap_set_dmabuf_memrange(struct doca_mmap *mmap, int dmabuf_fd, void *address, size_t dmabuf_offset,
                                           size_t bytes);
/**
 * Describes a started mmap to a peer, who passes the bytes to doca_mmap_create_from_export().
 *
 * @param[out] descriptor  stays valid until the mmap is destroyed
 * @return DOCA_ERROR_NOT_PERMITTED also: the permissions name no RDMA right; DOCA_ERROR_NOT_FOUND the mmap does not
 *         have the device
 */
doca_error_t doca_mmap_export_rdma(struct doca_mmap *mmap, const struct doca_dev *dev, const void **descriptor,
                                   size_t *bytes);
/**
 * Makes an mmap of a peer's memory, which is started and whose range is the peer's. For RDMA only.
 *
 * @param user_data  may be NULL
 * @return DOCA_ERROR_INVALID_VALUE also: the bytes are no such descriptor
 */
doca_error_t doca_mmap_create_from_export(const union doca_data *user_data, const void *descriptor, size_t bytes,
                                          struct doca_dev *dev, struct doca_mmap **mmap);

#ifdef __cplusplus
}
#endif
