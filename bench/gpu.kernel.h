/* Kernels of gpu_bench. */
#pragma once

#include "weftio/device/eth_txq.h"

/* Answers every flag of the host: the floor for any hand-over. */
WEFTIO_KERNEL void flag_echo(const WEFTIO_GLOBAL weftio_u32 *ping, WEFTIO_GLOBAL weftio_u32 *pong, weftio_u32 count)
{
    for (weftio_u32 turn = 1; turn <= count; ++turn) {
        while (weftio_load_acquire_sys_u32(ping) != turn) {
        }
        weftio_store_release_sys_u32(pong, turn);
    }
}

/* One frame goes round and round a loopback port: kernel, engine, kernel. */
WEFTIO_KERNEL void frame_round_trips(WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq, WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq,
                                     WEFTIO_GLOBAL struct weftio_dev_buf_arr *frames, weftio_u32 count, WEFTIO_GLOBAL weftio_u64 *times_ns)
{
    for (weftio_u32 turn = 0; turn < count && !weftio_dev_aborted(rxq->control); ++turn) {
        weftio_u32 received, first;
        weftio_u64 begin_ns = weftio_dev_clock_ns(rxq->clock);

        weftio_dev_eth_txq_send_enqueue_strong(txq, weftio_dev_buf_get(frames, turn), 64, WEFTIO_DEV_SEND_NONE);
        weftio_dev_eth_txq_commit_strong(txq);
        weftio_dev_eth_txq_push(txq);
        weftio_dev_eth_rxq_receive_thread(rxq, 1, 0, &received, &first);
        weftio_dev_eth_rxq_release(rxq, first, received);
        times_ns[turn] = weftio_dev_clock_ns(rxq->clock) - begin_ns;
    }
}

/* Receives until it is stopped; every lane reads the first bytes of its packets. Counts packets and adds what it read. */
WEFTIO_KERNEL void receive_all(WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq, WEFTIO_GLOBAL weftio_u64 *packets, WEFTIO_GLOBAL weftio_u64 *sums)
{
    weftio_u32 count, first;
    weftio_u64 total = 0, sum = 0;
    weftio_s32 status;

    do {
        status = weftio_dev_eth_rxq_receive_block(rxq, 0, 20000, &count, &first);
        for (weftio_u32 i = weftio_lane(); i < count; i += weftio_block_lanes())
            sum += *(WEFTIO_GLOBAL weftio_u64 *)weftio_dev_eth_rxq_address(rxq, first + i);
        weftio_block_barrier();
        if (weftio_lane() == 0) {
            weftio_dev_eth_rxq_release(rxq, first, count);
            total += count;
            weftio_store_release_sys_u64(packets, total);
        }
    } while (status == WEFTIO_DEV_OK);
    sums[weftio_lane()] = sum;
}

/* Sends the same frames again and again, weakly, a round of lanes at a time, until it is stopped. */
WEFTIO_KERNEL void send_all(WEFTIO_GLOBAL struct weftio_dev_eth_txq *txq, WEFTIO_GLOBAL struct weftio_dev_buf_arr *frames)
{
    weftio_u32 position, mask;

    weftio_dev_eth_txq_get_info(txq, &position, &mask);
    weftio_block_barrier();
    while (weftio_dev_eth_txq_wait_room_block(txq, weftio_block_lanes(), 0) == WEFTIO_DEV_OK) {
        weftio_dev_eth_txq_send_enqueue_weak(txq, weftio_dev_buf_get(frames, position + weftio_lane()), 64, position + weftio_lane(),
                                             WEFTIO_DEV_SEND_NONE);
        weftio_block_barrier();
        if (weftio_lane() == 0) {
            weftio_dev_eth_txq_commit_weak(txq, weftio_block_lanes());
            weftio_dev_eth_txq_push(txq);
        }
        position += weftio_block_lanes();
        weftio_block_barrier();
    }
}
