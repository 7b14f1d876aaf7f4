/** Ethernet receive queues inside a kernel. CUDA, and C++20 for CPU kernels. */
#pragma once

#include "doca_gpunetio_dev_buf.cuh"
#include "weftio/device/eth_rxq.h"

/** Made by doca_ctx_start() of a receive queue. */
struct doca_gpu_eth_rxq {
    struct weftio_dev_eth_rxq *queue;
    struct doca_gpu_buf *slots; /**< of each slot, in the order of their memory */
    weftio_u32 mask;            /**< slots - 1 */
    weftio_u32 reserved;
};

/**
 * One lane: gives the oldest packets back, so that half of the ring is free. Packets of the last half ring stay, for
 * kernels that still read them.
 */
WEFTIO_FN void weftio_doca_rxq_recycle(struct weftio_dev_eth_rxq *queue, weftio_u32 mask)
{
    const weftio_u32 released = weftio_load_relaxed_u32(&queue->released);
    const weftio_u32 held = weftio_load_relaxed_u32(&queue->received) - released, most = (mask + 1) / 2;

    if (held > most)
        weftio_dev_eth_rxq_release(queue, released, held - most);
}

/** The receive call of every scope, for `lane` of `lanes`. */
WEFTIO_FN doca_error_t weftio_doca_rxq_receive(struct doca_gpu_eth_rxq *rxq, weftio_u32 max_packets,
                                               weftio_u64 timeout_ns, weftio_u32 *count, weftio_u64 *first,
                                               enum weftio_dev_scope scope, weftio_u32 lane, weftio_u32 lanes)
{
    weftio_u32 found = 0, start = 0, half;
    weftio_s32 status;
    struct weftio_dev_control *control;

    if (!rxq)
        return DOCA_ERROR_INVALID_VALUE;
    control = rxq->queue->control;
    if (lane == 0)
        weftio_store_relaxed_u32(&control->function, WEFTIO_DEV_FUNCTION_RECEIVE);
    /* `count` and `first` may be shared by the lanes, of which some still read the results of the call before. */
    weftio_dev_scope_barrier(scope);
    if (lane == 0)
        weftio_doca_rxq_recycle(rxq->queue, rxq->mask);
    half = (rxq->mask + 1) / 2;
    status = weftio_dev_eth_rxq_receive(rxq->queue, max_packets < half ? max_packets : half, timeout_ns, &found, &start,
                                        scope, lane, lanes);
    *count = found;
    *first = start;
    weftio_dev_scope_barrier(scope);
    /* The host frees the memory of a destroyed queue when it reads this: no lane reads the queue after the barrier. */
    if (lane == 0)
        weftio_store_relaxed_u32(&control->function, WEFTIO_DEV_FUNCTION_NONE);
    return weftio_doca_error(status);
}

/**
 * Receives for a block: all its threads call with equal arguments. Blocks until `max_packets` packets have arrived or
 * `timeout_ns` has passed; with a barrier of the block at its beginning and at its end, so that the results may lie in
 * shared memory, and a kernel need have none of its own.
 *
 * Packets [first, first + count) may be read until half a ring of packets has been received after them. Indices run on;
 * they may be used modulo the number of slots.
 *
 * @pre no other block receives from the queue meanwhile
 * @param max_packets  0: only the time ends the call. More than half of the ring is taken as half of the ring
 * @param timeout_ns   0: no time bound
 * @param[out] count   packets; 0 when none has come in time
 * @return DOCA_SUCCESS, also when the time has passed; DOCA_ERROR_INVALID_VALUE `rxq` is NULL, and nothing else is
 *         changed; DOCA_ERROR_SHUTDOWN Weftio has stopped the queue
 */
WEFTIO_FN doca_error_t doca_gpu_dev_eth_rxq_receive_block(struct doca_gpu_eth_rxq *rxq, weftio_u32 max_packets,
                                                          weftio_u64 timeout_ns, weftio_u32 *count, weftio_u64 *first)
{
    return weftio_doca_rxq_receive(rxq, max_packets, timeout_ns, count, first, WEFTIO_DEV_SCOPE_BLOCK, weftio_lane(),
                                   weftio_block_lanes());
}

/** As doca_gpu_dev_eth_rxq_receive_block, for a warp. */
WEFTIO_FN doca_error_t doca_gpu_dev_eth_rxq_receive_warp(struct doca_gpu_eth_rxq *rxq, weftio_u32 max_packets,
                                                         weftio_u64 timeout_ns, weftio_u32 *count, weftio_u64 *first)
{
    return weftio_doca_rxq_receive(rxq, max_packets, timeout_ns, count, first, WEFTIO_DEV_SCOPE_WARP,
                                   weftio_warp_lane(), weftio_warp_lanes());
}

/** As doca_gpu_dev_eth_rxq_receive_block, for one thread; without barriers. */
WEFTIO_FN doca_error_t doca_gpu_dev_eth_rxq_receive_thread(struct doca_gpu_eth_rxq *rxq, weftio_u32 max_packets,
                                                           weftio_u64 timeout_ns, weftio_u32 *count, weftio_u64 *first)
{
    return weftio_doca_rxq_receive(rxq, max_packets, timeout_ns, count, first, WEFTIO_DEV_SCOPE_THREAD, 0, 1);
}

/**
 * The buffer of packet `index`, or of the slot of that number. Any thread; never blocks. The packet may be changed
 * where it lies, and sent from there.
 *
 * @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE `rxq` is NULL
 */
WEFTIO_FN doca_error_t doca_gpu_dev_eth_rxq_get_buf(struct doca_gpu_eth_rxq *rxq, weftio_u64 index,
                                                    struct doca_gpu_buf **buf)
{
    if (!rxq)
        return DOCA_ERROR_INVALID_VALUE;
    *buf = rxq->slots + (index & rxq->mask);
    return DOCA_SUCCESS;
}
