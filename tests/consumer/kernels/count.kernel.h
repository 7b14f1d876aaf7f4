#pragma once

#include "weftio/device/eth_rxq.h"

#include "burst.h"
#include "tally.h"

/* Counts packets until the host asks it to end. One lane. */
WEFTIO_KERNEL void count_packets(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL struct tally* tally)
{
    weftio_u32 count, first;
    weftio_s32 status;

    do {
        status = weftio_dev_eth_rxq_receive_thread(rxq, BURST, 1000000, &count, &first);
        weftio_dev_eth_rxq_release(rxq, first, count);
        tally_add(tally, count);
    } while (status == WEFTIO_DEV_OK);
}
