/* Well-behaved kernels, and kernels that hang or return early. */
#pragma once

#include "weftio/device/eth_txq.h"
#include "weftio/device/semaphore.h"

/* Sends `count` frames to itself over a loopback port and receives them; stores the number of received ones. */
WEFTIO_KERNEL void echo_to_self(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq,
                                WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                                WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, weftio_u32 count,
                                WEFTIO_GLOBAL weftio_u32* seen)
{
    weftio_u32 received, first;

    for (weftio_u32 frame = 0; frame < count; ++frame)
        weftio_dev_eth_txq_send_enqueue_strong(txq, weftio_dev_buf_get(frames, frame), 64, WEFTIO_DEV_SEND_NONE);
    weftio_dev_eth_txq_commit_strong(txq);
    weftio_dev_eth_txq_push(txq);
    weftio_dev_eth_rxq_receive_thread(rxq, count, 0, &received, &first);
    weftio_dev_eth_rxq_release(rxq, first, received);
    weftio_store_release_sys_u32(seen, received);
    while (!weftio_dev_aborted(rxq->control)) {
        weftio_dev_beat(rxq->control, &rxq->beats, WEFTIO_DEV_FUNCTION_RECEIVE, first + received, WEFTIO_DEV_OK);
        weftio_relax(1 << 16);
    }
}

/* Never uses its queues. */
WEFTIO_KERNEL void never_looks(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq,
                               WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq, WEFTIO_GLOBAL weftio_u32* let_go)
{
    (void)rxq;
    (void)txq;
    while (!weftio_load_acquire_sys_u32(let_go))
        weftio_relax(1 << 16);
}

/* Reads one item of a semaphore, which leaves a beat, and does nothing else. */
WEFTIO_KERNEL void waits_and_beats(WEFTIO_GLOBAL struct weftio_dev_semaphore* items, WEFTIO_GLOBAL weftio_u32* let_go)
{
    weftio_dev_semaphore_wait_status(items, 0, WEFTIO_DEV_SEMAPHORE_FREE, 0);
    while (!weftio_load_acquire_sys_u32(let_go))
        weftio_relax(1 << 16);
}

/* Claims entries, and sleeps in the middle of a strong commit. */
WEFTIO_KERNEL void sleeps_in_commit(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq,
                                    WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq, WEFTIO_GLOBAL weftio_u32* let_go)
{
    struct weftio_dev_send_range claim;
    weftio_u32 received, first, seen;

    weftio_dev_eth_rxq_receive_thread(rxq, 1, 1000, &received, &first);
    weftio_dev_send_reserve(&txq->queue.ring, 3, &claim);
    weftio_dev_send_join_commits(&txq->queue.ring, &seen);
    while (!weftio_load_acquire_sys_u32(let_go))
        weftio_relax(1 << 16);
    weftio_dev_send_leave_commits(&txq->queue.ring, 0, 0, &seen);
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

/* Polls once and returns. */
WEFTIO_KERNEL void exits_early(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq,
                               WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq, WEFTIO_GLOBAL weftio_u32* let_go)
{
    weftio_u32 received, first;

    (void)txq;
    (void)let_go;
    weftio_dev_eth_rxq_receive_thread(rxq, 1, 1000, &received, &first);
}

/* Takes items, and sleeps at the third. */
WEFTIO_KERNEL void sleeps_over_an_item(WEFTIO_GLOBAL struct weftio_dev_semaphore* semaphore,
                                       WEFTIO_GLOBAL weftio_u32* let_go)
{
    for (weftio_u32 item = 0;
         weftio_dev_semaphore_wait_status(semaphore, item, WEFTIO_DEV_SEMAPHORE_READY, 0) == WEFTIO_DEV_OK; ++item) {
        weftio_dev_semaphore_set_status(semaphore, item, WEFTIO_DEV_SEMAPHORE_DONE);
        while (item == 2 && !weftio_load_acquire_sys_u32(let_go))
            weftio_relax(1 << 16);
    }
}
