/**
 * Ethernet send queues.
 *
 * All functions return DOCA_SUCCESS or DOCA_ERROR_INVALID_VALUE (a null pointer, no such object, a value out of range).
 * DOCA_ERROR_BAD_STATE: the queue is started and may not be, or the other way round.
 */
#pragma once

#include "doca_ctx.h"
#include "doca_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_eth_txq;
struct doca_gpu_eth_txq; /**< of kernels: doca_gpunetio_dev_eth_txq.cuh */

/** What executes wait entries. */
enum doca_eth_wait_on_time_type {
    DOCA_ETH_WAIT_ON_TIME_TYPE_NONE = 0,
    DOCA_ETH_WAIT_ON_TIME_TYPE_NATIVE = 1, /**< the NIC; Weftio's does */
    DOCA_ETH_WAIT_ON_TIME_TYPE_DPDK = 2
};

/** Makes a queue of `entries` entries, 1 to 32,768; the ring has the next power of two, at least 64. */
doca_error_t doca_eth_txq_create(struct doca_dev *dev, uint32_t entries, struct doca_eth_txq **txq);
/** Destroys a queue in any state. Frames that have not left are flushed, those behind a wait too. */
doca_error_t doca_eth_txq_destroy(struct doca_eth_txq *txq);
/** 1: the NIC computes the IPv4 header checksum of every frame. */
doca_error_t doca_eth_txq_set_l3_chksum_offload(struct doca_eth_txq *txq, uint8_t enable);
/** 1: the NIC computes the UDP or TCP checksum of every frame. */
doca_error_t doca_eth_txq_set_l4_chksum_offload(struct doca_eth_txq *txq, uint8_t enable);
/** Allows wait entries, which Weftio's queues always do. */
doca_error_t doca_eth_txq_set_wait_on_time_offload(struct doca_eth_txq *txq);
/** What executes wait entries of a device's queues: DOCA_ETH_WAIT_ON_TIME_TYPE_NATIVE. */
doca_error_t doca_eth_txq_cap_get_wait_on_time_offload_supported(const struct doca_devinfo *devinfo,
                                                                 enum doca_eth_wait_on_time_type *type);
/**
 * Value of a wait entry for a time of CLOCK_REALTIME, at most 4 s ahead when the entry is executed.
 *
 * @param realtime_ns  nanoseconds since 1970
 */
doca_error_t doca_eth_txq_calculate_timestamp(struct doca_eth_txq *txq, uint64_t realtime_ns, uint64_t *value);
/** The queue as a context, which has the same life; NULL if there is no such queue. */
struct doca_ctx *doca_eth_txq_as_doca_ctx(struct doca_eth_txq *txq);
/** The argument for kernels. DOCA_ERROR_BAD_STATE before doca_ctx_start(). */
doca_error_t doca_eth_txq_get_gpu_handle(const struct doca_eth_txq *txq, struct doca_gpu_eth_txq **handle);

#ifdef __cplusplus
}
#endif
