/* A kernel that is compiled with checks of the handles it is given. */
#pragma once

#define WEFTIO_DEV_CHECKS

#include "weftio/device/dma.h"
#include "weftio/device/eth_txq.h"
#include "weftio/device/semaphore.h"

/* Handles on a way that device::launch does not see. */
struct handles {
    WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq;
    WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq;
    WEFTIO_GLOBAL struct weftio_dev_dma* dma;
    WEFTIO_GLOBAL struct weftio_dev_semaphore* semaphore;
    WEFTIO_GLOBAL struct weftio_dev_buf_arr* array;
};

/* answers[]: what each function said. None of the calls waits, or changes anything. */
WEFTIO_KERNEL void tries_handles(WEFTIO_GLOBAL struct handles* given, WEFTIO_GLOBAL weftio_u32* answers)
{
    struct weftio_dev_packet packet;
    struct weftio_dev_buf buf = weftio_dev_buf_get(given->array, 0);
    weftio_u32 count = 7, first;
    weftio_u64 time;

    answers[0] = (weftio_u32)weftio_dev_eth_rxq_receive_thread(given->rxq, 1, 1, &count, &first);
    answers[1] = (weftio_u32)weftio_dev_eth_rxq_packet(given->rxq, 0, &packet);
    answers[2] = (weftio_u32)weftio_dev_eth_rxq_release(given->rxq, 0, 0);
    answers[3] = (weftio_u32)weftio_dev_eth_txq_send_enqueue_strong(given->txq, buf, 64, WEFTIO_DEV_SEND_NONE);
    answers[4] = (weftio_u32)weftio_dev_eth_txq_commit_weak(given->txq, 0);
    answers[5] = (weftio_u32)weftio_dev_eth_txq_poll_completion(given->txq, 0, &time);
    answers[6] = (weftio_u32)weftio_dev_dma_fill(given->dma, 1, buf, 0, 4, WEFTIO_DEV_SEND_NONE);
    answers[7] = (weftio_u32)weftio_dev_semaphore_set_status(given->semaphore, 0, WEFTIO_DEV_SEMAPHORE_FREE);
    answers[8] = (weftio_u32)weftio_dev_semaphore_wait_status(given->semaphore, 0, WEFTIO_DEV_SEMAPHORE_FREE, 0);
    answers[9] = count;
    answers[10] = buf.bytes;
}
