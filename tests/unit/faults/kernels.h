/* A kernel that uses both directions of a port. */
#pragma once

#include "weftio/device/eth_txq.h"

/*
 * Sends `count` frames, receives `count` packets, reports this, and, if it must stay, waits until it is stopped.
 */
WEFTIO_KERNEL void send_and_receive(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq,
                                    WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                                    WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, weftio_u32 count,
                                    WEFTIO_GLOBAL weftio_u32* seen, weftio_u32 stays)
{
    weftio_u32 received, first, all = 0;

    if (weftio_lane() == 0) {
        for (weftio_u32 frame = 0; frame < count; ++frame)
            weftio_dev_eth_txq_send_enqueue_strong(txq, weftio_dev_buf_get(frames, frame), 64, WEFTIO_DEV_SEND_NONE);
        weftio_dev_eth_txq_commit_strong(txq);
        weftio_dev_eth_txq_push(txq);
    }
    weftio_block_barrier();
    while (all < count && weftio_dev_eth_rxq_receive_block(rxq, count - all, 0, &received, &first) == WEFTIO_DEV_OK) {
        all += received;
        weftio_block_barrier();
        if (weftio_lane() == 0)
            weftio_dev_eth_rxq_release(rxq, first, received);
    }
    if (weftio_lane() == 0)
        weftio_store_release_sys_u32(seen, all);
    while (stays && !weftio_dev_eth_rxq_aborted(rxq))
        weftio_relax(1 << 16);
}
