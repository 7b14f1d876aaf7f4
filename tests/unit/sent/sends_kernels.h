/* Kernels that send and receive so that a test can count. */
#pragma once

#include "weftio/device/eth_rxq.h"
#include "weftio/device/eth_txq.h"

/* Sends `count` frames of `bytes` bytes. Returns when the queue accepts no more. */
WEFTIO_KERNEL void sends_some(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                              WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, weftio_u32 bytes, weftio_u32 count)
{
    for (weftio_u32 frame = 0; frame < count; ++frame) {
        if (weftio_dev_eth_txq_wait_room(txq, 1, 0) != WEFTIO_DEV_OK)
            break;
        weftio_dev_eth_txq_send_enqueue_strong(txq, weftio_dev_buf_get(frames, 0), bytes, WEFTIO_DEV_SEND_NONE);
        weftio_dev_eth_txq_commit_strong(txq);
        weftio_dev_eth_txq_push(txq);
    }
}

/*
 * Receives until stopped. seen[0]: packets; seen[1]: packets with a good L4 checksum; seen[2]: bytes of the last one.
 */
WEFTIO_KERNEL void sees_packets(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL weftio_u32* seen)
{
    struct weftio_dev_packet packet;
    weftio_u32 count, first, good = 0, all = 0;

    while (weftio_dev_eth_rxq_receive_thread(rxq, 1, 0, &count, &first) == WEFTIO_DEV_OK && count == 1) {
        if (weftio_dev_eth_rxq_packet(rxq, first, &packet) != WEFTIO_DEV_OK)
            break;
        good += (packet.flags & WEFTIO_DEV_PACKET_L4_CHECKSUM_GOOD) != 0;
        weftio_store_release_sys_u32(&seen[1], good);
        weftio_store_release_sys_u32(&seen[2], packet.bytes);
        weftio_store_release_sys_u32(&seen[0], ++all);
        weftio_dev_eth_rxq_release(rxq, first, 1);
    }
}
