/** Buffers of the host, for tasks. */
#pragma once

#include "doca_mmap.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Bytes of an mmap, from an inventory (doca_buf_inventory.h). Its data are the first bytes; what tasks write goes
 * behind them, and then belongs to them.
 */
struct doca_buf;

/**
 * Gives up a reference. With the last one, the buffer returns to its inventory; tasks that use it keep its bytes.
 *
 * @param[out] refcount  references before the call; may be NULL
 * @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE
 */
doca_error_t doca_buf_dec_refcount(struct doca_buf *buf, uint16_t *refcount);

#ifdef __cplusplus
}
#endif
