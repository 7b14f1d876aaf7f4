#pragma once

#include "weftio/device/eth_rxq.h"

/* Counts packets into `total` until the host asks it to end. One lane. */
WEFTIO_KERNEL void count_packets(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL weftio_u32* total)
{
    weftio_u32 count, first;
    weftio_s32 status;

    do {
        status = weftio_dev_eth_rxq_receive_thread(rxq, 32, 1000000, &count, &first);
        weftio_dev_eth_rxq_release(rxq, first, count);
        weftio_store_release_sys_u32(total, *total + count);
    } while (status == WEFTIO_DEV_OK);
}
