/**
 * Ethernet receive queues: a ring of slots in memory of the program, of which kernels learn what has arrived.
 *
 * Packets lie in the memory in the order of arrival, in slots of equal size, and the ring begins again at its end.
 * Kernels release nothing: a slot is filled again once the ring needs it, at least half a ring after a kernel has
 * received its packet. While kernels are too slow for that, packets are dropped, and counted: the log tells how many
 * when the queue is stopped, DPDK's telemetry at any time (`/weftio/eth_rxq`, out_of_buffer).
 *
 * All functions return DOCA_SUCCESS or DOCA_ERROR_INVALID_VALUE (a null pointer, no such object, a value out of range).
 * DOCA_ERROR_BAD_STATE: the queue is started and may not be, or the other way round.
 */
#pragma once

#include "doca_ctx.h"
#include "doca_mmap.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_eth_rxq;
struct doca_gpu_eth_rxq; /**< of kernels: doca_gpunetio_dev_eth_rxq.cuh */

enum doca_eth_rxq_type {
    DOCA_ETH_RXQ_TYPE_CYCLIC = 0,
    DOCA_ETH_RXQ_TYPE_MANAGED_MEMPOOL = 1, /**< not supported */
    DOCA_ETH_RXQ_TYPE_REGULAR = 2          /**< not supported */
};

/**
 * Makes a queue, which receives nothing until it is started and a pipe sends packets to it.
 *
 * @param max_packets       slots, 64 to 65,536; of a number that is no power of two the next lower power is used
 * @param max_packet_bytes  the longest packet, 64 to 16,384; 104 is the least where slots are as long as packets
 */
doca_error_t doca_eth_rxq_create(struct doca_dev *dev, uint32_t max_packets, uint32_t max_packet_bytes,
                                 struct doca_eth_rxq **rxq);
/**
 * Destroys a queue in any state. Pipes drop what they would send to it. A receive call that waits ends with
 * DOCA_ERROR_SHUTDOWN: blocks until it has, for 2 ms at least and 2 s at most. Kernels must not call afterwards.
 */
doca_error_t doca_eth_rxq_destroy(struct doca_eth_rxq *rxq);
/** DOCA_ETH_RXQ_TYPE_CYCLIC; DOCA_ERROR_NOT_SUPPORTED for the other types. */
doca_error_t doca_eth_rxq_set_type(struct doca_eth_rxq *rxq, enum doca_eth_rxq_type type);
/**
 * Bytes that the slots of a cyclic queue take: max_packets * max_packet_bytes. `rate`, `packet_max_time` and
 * `log_max_lro` are for other types, and ignored.
 *
 * @return DOCA_ERROR_NOT_SUPPORTED another type; DOCA_ERROR_TOO_BIG 4 GiB or more
 */
doca_error_t doca_eth_rxq_estimate_packet_buf_size(enum doca_eth_rxq_type type, uint32_t rate, uint32_t packet_max_time,
                                                   uint32_t max_packet_bytes, uint32_t max_packets, uint8_t log_max_lro,
                                                   uint32_t *bytes);
/**
 * The memory of the slots: bytes [offset, offset + bytes) of a started mmap. A slot has bytes / slots, rounded down,
 * where slots is max_packets or the next lower power of two. The last 40 are zero behind each packet, so the longest
 * packet is 40 bytes shorter than a slot, and max_packet_bytes at most: longer ones are dropped, and counted.
 */
doca_error_t doca_eth_rxq_set_pkt_buf(struct doca_eth_rxq *rxq, struct doca_mmap *mmap, uint64_t offset,
                                      uint32_t bytes);
/** The queue as a context, which has the same life; NULL if there is no such queue. */
struct doca_ctx *doca_eth_rxq_as_doca_ctx(struct doca_eth_rxq *rxq);
/** The argument for kernels. DOCA_ERROR_BAD_STATE before doca_ctx_start(). */
doca_error_t doca_eth_rxq_get_gpu_handle(const struct doca_eth_rxq *rxq, struct doca_gpu_eth_rxq **handle);
/** The number of the queue in doca_flow_fwd::rss.queues_array. DOCA_ERROR_BAD_STATE before doca_ctx_start(). */
doca_error_t doca_eth_rxq_get_flow_queue_id(struct doca_eth_rxq *rxq, uint16_t *number);

#ifdef __cplusplus
}
#endif
