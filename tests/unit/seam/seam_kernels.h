/* Kernels that must give the same results on every NIC. */
#pragma once

#include "weftio/device/eth_rxq.h"
#include "weftio/device/eth_txq.h"

/*
 * Sends `count` frames, each with its number in bytes 14 to 17 and EtherType `even` or `odd`. Returns when the queue
 * accepts no more.
 */
WEFTIO_KERNEL void sends_numbers(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                                 WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, weftio_u32 count, weftio_u32 even,
                                 weftio_u32 odd)
{
    weftio_u32 frame, at, type;

    for (frame = 0; frame < count; ++frame) {
        struct weftio_dev_buf buf = weftio_dev_buf_get(frames, frame % 64);

        if (weftio_dev_eth_txq_wait_room(txq, 65, 0) != WEFTIO_DEV_OK) /* of 128: the buffer has been sent */
            break;
        type = frame % 2 ? odd : even;
        for (at = 0; at < 12; ++at)
            buf.address[at] = 2;
        buf.address[12] = (weftio_u8)(type >> 8);
        buf.address[13] = (weftio_u8)type;
        for (at = 0; at < 4; ++at)
            buf.address[14 + at] = (weftio_u8)(frame >> (8 * at));
        weftio_dev_eth_txq_send_enqueue_strong(txq, buf, 64, WEFTIO_DEV_SEND_NONE);
        weftio_dev_eth_txq_commit_strong(txq);
        weftio_dev_eth_txq_push(txq);
    }
}

/* Sends the 64 bytes at `frame` with a key from the host. */
WEFTIO_KERNEL void sends_by_key(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq, WEFTIO_GLOBAL weftio_u8* frame,
                                weftio_u32 lkey)
{
    struct weftio_dev_buf buf;

    buf.address = frame;
    buf.bytes = 64;
    buf.lkey_be = weftio_swap32(lkey);
    weftio_dev_eth_txq_send_enqueue_strong(txq, buf, 64, WEFTIO_DEV_SEND_NONE);
    weftio_dev_eth_txq_commit_strong(txq);
    weftio_dev_eth_txq_push(txq);
}

/* Receives until stopped. seen[0]: packets; seen[1]: packets whose number is not larger than the previous one. */
WEFTIO_KERNEL void sees_numbers(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL weftio_u32* seen)
{
    struct weftio_dev_packet packet;
    weftio_u32 count, first, at, number, all = 0, last = 0, wrong = 0;

    while (weftio_dev_eth_rxq_receive_thread(rxq, 1, 0, &count, &first) == WEFTIO_DEV_OK && count == 1) {
        if (weftio_dev_eth_rxq_packet(rxq, first, &packet) != WEFTIO_DEV_OK || packet.bytes != 64)
            break;
        number = 0;
        for (at = 0; at < 4; ++at)
            number |= (weftio_u32)packet.address[14 + at] << (8 * at);
        wrong += all != 0 && number <= last;
        last = number;
        weftio_store_release_sys_u32(&seen[1], wrong);
        weftio_store_release_sys_u32(&seen[0], ++all);
        weftio_dev_eth_rxq_release(rxq, first, 1);
    }
}
