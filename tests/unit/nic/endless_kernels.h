/*
 * Waits with a timeout that never passes. Each sets words[0] when it has ended, and stores its result in words[1].
 */
#pragma once

#include "weftio/device/eth_rxq.h"
#include "weftio/device/eth_txq.h"
#include "weftio/device/semaphore.h"

WEFTIO_FN void say_ended(WEFTIO_GLOBAL weftio_u32* words, weftio_u32 with)
{
    if (weftio_lane() != 0)
        return;
    weftio_store_relaxed_u32(&words[1], with);
    weftio_store_release_sys_u32(&words[0], 1);
}

/* Waits for two packets, in all lanes. */
WEFTIO_KERNEL void receives_two(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, weftio_u64 timeout_ns,
                                WEFTIO_GLOBAL weftio_u32* words)
{
    weftio_u32 count, first;

    weftio_dev_eth_rxq_receive_block(rxq, 2, timeout_ns, &count, &first);
    say_ended(words, count);
}

/* Waits for item 1 of a semaphore, in lane 0. */
WEFTIO_KERNEL void waits_for_item(const WEFTIO_GLOBAL struct weftio_dev_semaphore* items, weftio_u64 timeout_ns,
                                  WEFTIO_GLOBAL weftio_u32* words)
{
    if (weftio_lane() == 0)
        say_ended(words, (weftio_u32)weftio_dev_semaphore_wait_status(items, 1, WEFTIO_DEV_SEMAPHORE_DONE, timeout_ns));
}

/*
 * Fills a send queue, commits without a push, so that the entries stay in the queue, and waits in all lanes until all
 * entries are free.
 */
WEFTIO_KERNEL void waits_for_room(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                                  WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, weftio_u64 timeout_ns,
                                  WEFTIO_GLOBAL weftio_u32* words)
{
    weftio_u32 position, mask;

    weftio_dev_eth_txq_get_info(txq, &position, &mask);
    for (weftio_u32 at = weftio_lane(); at <= mask; at += weftio_block_lanes())
        weftio_dev_eth_txq_send_enqueue_weak(txq, weftio_dev_buf_get(frames, 0), 60, position + at,
                                             WEFTIO_DEV_SEND_NONE);
    weftio_block_barrier();
    if (weftio_lane() == 0)
        weftio_dev_eth_txq_commit_weak(txq, mask + 1);
    weftio_block_barrier();
    say_ended(words, (weftio_u32)weftio_dev_eth_txq_wait_room_block(txq, mask + 1, timeout_ns));
}
