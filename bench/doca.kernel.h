/* The kernels of the benchmark of DOCA's functions: each in their form and in Weftio's. They run until `end` is set. */
#pragma once

#include "doca_gpunetio_dev_eth_rxq.cuh"
#include "doca_gpunetio_dev_eth_txq.cuh"

struct doca_work {
    weftio_u32 end;
    weftio_u32 failed;
    weftio_u64 packets;
    weftio_u64 sum; /* of a word of each packet, so that they are read */
};

/* Reads one word of each packet. */
WEFTIO_FN weftio_u64 read_packets(const struct doca_gpu_eth_rxq* rxq, weftio_u32 first, weftio_u32 count)
{
    weftio_u64 sum = 0;
    for (weftio_u32 packet = weftio_lane(); packet < count; packet += weftio_block_lanes())
        sum += *(const weftio_u32*)(uintptr_t)rxq->slots[(first + packet) & rxq->mask].address;
    return sum;
}

WEFTIO_KERNEL void receive_by_doca(struct doca_gpu_eth_rxq* rxq, weftio_u32 most, struct doca_work* work)
{
    weftio_u64 packets = 0, sum = 0, first = 0;
    weftio_u32 count = 0;

    while (!weftio_load_relaxed_u32(&work->end) &&
           doca_gpu_dev_eth_rxq_receive_block(rxq, most, 100000, &count, &first) == DOCA_SUCCESS) {
        sum += read_packets(rxq, (weftio_u32)first, count);
        packets += count;
        weftio_block_barrier(); /* all lanes see the same `end` */
    }
    if (weftio_lane() == 0) {
        work->packets = packets;
        work->sum = sum;
    }
}

WEFTIO_KERNEL void receive_by_weftio(struct doca_gpu_eth_rxq* rxq, weftio_u32 most, struct doca_work* work)
{
    weftio_u64 packets = 0, sum = 0;
    weftio_u32 count = 0, first = 0;

    if (weftio_lane() == 0) /* what a kernel in the other form has left */
        weftio_dev_eth_rxq_release(rxq->queue, rxq->queue->released, rxq->queue->received - rxq->queue->released);
    weftio_block_barrier();
    while (!weftio_load_relaxed_u32(&work->end) &&
           weftio_dev_eth_rxq_receive_block(rxq->queue, most, 100000, &count, &first) == WEFTIO_DEV_OK) {
        sum += read_packets(rxq, first, count);
        packets += count;
        weftio_block_barrier();
        if (weftio_lane() == 0)
            weftio_dev_eth_rxq_release(rxq->queue, first, count);
        weftio_block_barrier();
    }
    if (weftio_lane() == 0) {
        work->packets = packets;
        work->sum = sum;
    }
}

/* Each lane sends a buffer, then one lane commits and pushes. */
WEFTIO_KERNEL void send_by_doca(struct doca_gpu_eth_txq* txq, struct doca_gpu_buf_arr* frames, struct doca_work* work)
{
    struct doca_gpu_buf* buf = 0;
    weftio_u64 packets = 0;

    while (!weftio_load_relaxed_u32(&work->end)) {
        doca_gpu_dev_buf_get_buf(frames, weftio_lane(), &buf);
        if (doca_gpu_dev_eth_txq_send_enqueue_strong(txq, buf, 60, DOCA_GPU_SEND_FLAG_NONE) != DOCA_SUCCESS)
            work->failed = 1;
        weftio_block_barrier();
        if (weftio_lane() == 0) {
            doca_gpu_dev_eth_txq_commit_strong(txq);
            doca_gpu_dev_eth_txq_push(txq);
        }
        packets += weftio_block_lanes();
        weftio_block_barrier();
    }
    if (weftio_lane() == 0)
        work->packets = packets;
}

WEFTIO_KERNEL void send_by_weftio(struct doca_gpu_eth_txq* txq, struct doca_gpu_buf_arr* frames, struct doca_work* work)
{
    weftio_u64 packets = 0;

    while (!weftio_load_relaxed_u32(&work->end)) {
        struct weftio_dev_buf buf = weftio_doca_buf(frames->elements + weftio_lane() % frames->count);
        weftio_s32 status = WEFTIO_DEV_FULL;
        for (weftio_u32 attempt = 0; status == WEFTIO_DEV_FULL; ++attempt) {
            status = weftio_dev_eth_txq_send_enqueue_strong(txq->queue, buf, 60, WEFTIO_DEV_SEND_NONE);
            if (status == WEFTIO_DEV_FULL)
                weftio_relax(attempt);
        }
        if (status != WEFTIO_DEV_OK)
            work->failed = 1;
        weftio_block_barrier();
        if (weftio_lane() == 0) {
            weftio_dev_eth_txq_commit_strong(txq->queue);
            weftio_dev_eth_txq_push(txq->queue);
        }
        packets += weftio_block_lanes();
        weftio_block_barrier();
    }
    if (weftio_lane() == 0)
        work->packets = packets;
}
