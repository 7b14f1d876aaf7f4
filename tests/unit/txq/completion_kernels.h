/* Kernels that wait until their own frames have been sent. */
#pragma once

#include "weftio/device/eth_txq.h"

#define COMPLETION_FRAME_BYTES 60u

/* Numbers of errors, counted by all lanes. */
struct completion_tally {
    weftio_u32 refused;   /* enqueue calls that failed */
    weftio_u32 late;      /* waits that did not end with WEFTIO_DEV_OK */
    weftio_u32 undone;    /* entries that were not done after a wait */
    weftio_u32 positions; /* sum of all positions */
};

/*
 * One lane sends the first frame and waits. `said`: the status of the wait, and the reason and syndrome of the
 * completion.
 */
WEFTIO_KERNEL void send_and_say_why(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                                    WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, WEFTIO_GLOBAL weftio_u32* said)
{
    weftio_u32 position = 0;

    if (weftio_lane() != 0)
        return;
    weftio_dev_eth_txq_send_enqueue_strong_position(txq, weftio_dev_buf_get(frames, 0), COMPLETION_FRAME_BYTES,
                                                    WEFTIO_DEV_SEND_NONE, &position);
    weftio_dev_eth_txq_commit_strong(txq);
    weftio_dev_eth_txq_push(txq);
    said[0] = (weftio_u32)weftio_dev_eth_txq_wait_completed(txq, position, 20000000000u);
    said[1] = weftio_cqe_reason(txq->queue.ring.completion);
    said[2] = weftio_cqe_syndrome(txq->queue.ring.completion);
}

/*
 * In each of `rounds` rounds every lane of every block sends one frame and waits until it is done. No lane waits for
 * free entries, because the ring holds a frame of each lane.
 */
WEFTIO_KERNEL void send_and_wait(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                                 WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames,
                                 WEFTIO_GLOBAL struct completion_tally* tally, weftio_u32 rounds)
{
    weftio_u32 mine = weftio_block() * weftio_block_lanes() + weftio_lane();

    for (weftio_u32 round = 0; round < rounds; ++round) {
        weftio_u32 position = 0;
        weftio_u64 completed_ns = 0;
        if (weftio_dev_eth_txq_send_enqueue_strong_position(txq, weftio_dev_buf_get(frames, mine),
                                                            COMPLETION_FRAME_BYTES, WEFTIO_DEV_SEND_NONE,
                                                            &position) != WEFTIO_DEV_OK)
            weftio_fetch_add_u32(&tally->refused, 1);
        weftio_block_barrier();
        if (weftio_lane() == 0) {
            weftio_dev_eth_txq_commit_strong(txq);
            weftio_dev_eth_txq_push(txq);
        }
        weftio_block_barrier();
        if (weftio_dev_eth_txq_wait_completed(txq, position, 20000000000u) != WEFTIO_DEV_OK)
            weftio_fetch_add_u32(&tally->late, 1);
        if (weftio_dev_eth_txq_poll_completion(txq, position, &completed_ns) != WEFTIO_DEV_OK || !completed_ns)
            weftio_fetch_add_u32(&tally->undone, 1);
        weftio_fetch_add_u32(&tally->positions, position);
        weftio_block_barrier();
    }
}
