/* Kernels that still run when their program ends. */
#pragma once

#include "weftio/device/dma.h"
#include "weftio/device/eth_txq.h"

/* Receives until the receive call fails. */
WEFTIO_KERNEL void receives_for_ever(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL weftio_u32* seen)
{
    weftio_u32 received, first;

    while (weftio_dev_eth_rxq_receive_thread(rxq, 1, 0, &received, &first) == WEFTIO_DEV_OK) {
        weftio_dev_eth_rxq_release(rxq, first, received);
        weftio_store_release_sys_u32(seen, weftio_load_relaxed_u32(seen) + received);
    }
}

/* Sends until the queue accepts no more frames. */
WEFTIO_KERNEL void sends_for_ever(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                                  WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames)
{
    while (weftio_dev_eth_txq_wait_room(txq, 8, 0) == WEFTIO_DEV_OK) {
        for (weftio_u32 frame = 0; frame < 8; ++frame)
            weftio_dev_eth_txq_send_enqueue_strong(txq, weftio_dev_buf_get(frames, frame), 64, WEFTIO_DEV_SEND_NONE);
        weftio_dev_eth_txq_commit_strong(txq);
        weftio_dev_eth_txq_push(txq);
    }
}

/* Copies memory until the queue accepts no more copies. */
WEFTIO_KERNEL void copies_for_ever(WEFTIO_GLOBAL struct weftio_dev_dma* dma,
                                   WEFTIO_GLOBAL struct weftio_dev_buf_arr* buffers)
{
    while (weftio_dev_dma_wait_room(dma, 2, 0) == WEFTIO_DEV_OK) {
        weftio_dev_dma_memcpy(dma, weftio_dev_buf_get(buffers, 0), 0, weftio_dev_buf_get(buffers, 1), 0, 4096, 0);
        weftio_dev_dma_fill(dma, 7, weftio_dev_buf_get(buffers, 0), 0, 4096, 0);
        weftio_dev_dma_commit(dma);
    }
}

/* Sends `count` frames. */
WEFTIO_KERNEL void sends_some(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                              WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, weftio_u32 count)
{
    for (weftio_u32 frame = 0; frame < count; ++frame)
        weftio_dev_eth_txq_send_enqueue_strong(txq, weftio_dev_buf_get(frames, frame % 8), 64, WEFTIO_DEV_SEND_NONE);
    weftio_dev_eth_txq_commit_strong(txq);
    weftio_dev_eth_txq_push(txq);
}

/* Sends `count` frames and, if `bad`, then one with an unknown key. */
WEFTIO_KERNEL void sends_a_bad_one_last(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                                        WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, weftio_u32 count,
                                        weftio_u32 bad)
{
    struct weftio_dev_buf frame = weftio_dev_buf_get(frames, 0);

    for (weftio_u32 sent = 0; sent < count; ++sent)
        weftio_dev_eth_txq_send_enqueue_strong(txq, frame, 64, WEFTIO_DEV_SEND_NONE);
    frame.lkey_be = 0;
    if (bad)
        weftio_dev_eth_txq_send_enqueue_strong(txq, frame, 64, WEFTIO_DEV_SEND_NONE);
    weftio_dev_eth_txq_commit_strong(txq);
    weftio_dev_eth_txq_push(txq);
}
