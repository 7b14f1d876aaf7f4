/**
 * Inventories: where buffers come from.
 *
 * All functions return DOCA_SUCCESS or DOCA_ERROR_INVALID_VALUE (a null pointer, no such object, a value out of range).
 */
#pragma once

#include "doca_buf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_buf_inventory;

/** Makes an inventory of `buffers` buffers, 1 to 2^31. */
doca_error_t doca_buf_inventory_create(size_t buffers, struct doca_buf_inventory **inventory);
/** DOCA_ERROR_BAD_STATE it is started already. */
doca_error_t doca_buf_inventory_start(struct doca_buf_inventory *inventory);
/** Destroys an inventory in any state. Buffers that are out stay until their last reference. */
doca_error_t doca_buf_inventory_destroy(struct doca_buf_inventory *inventory);
/**
 * Takes a buffer whose data are all of its bytes: a source.
 *
 * @param mmap  started, and not a peer's
 * @param data  in its range, by the address of the CPU or of kernels
 * @return DOCA_ERROR_BAD_STATE the inventory or the mmap is not started; DOCA_ERROR_NO_MEMORY all buffers are out;
 *         DOCA_ERROR_INVALID_VALUE also: the bytes are not within the range
 */
doca_error_t doca_buf_inventory_buf_get_by_data(struct doca_buf_inventory *inventory, struct doca_mmap *mmap,
                                                void *data, size_t bytes, struct doca_buf **buf);
/** The same, of a buffer that has room for `bytes` bytes and no data yet: a destination. */
doca_error_t doca_buf_inventory_buf_get_by_addr(struct doca_buf_inventory *inventory, struct doca_mmap *mmap,
                                                void *address, size_t bytes, struct doca_buf **buf);

#ifdef __cplusplus
}
#endif
