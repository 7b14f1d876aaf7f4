/* Kernels that receive in each scope and check the packets, which are numbered_frame() 0, 1, 2, ... */
#pragma once

#include "weftio/device/eth_rxq.h"

struct tally {
    weftio_u32 packets; /* received and released */
    weftio_u32 looked_at;
    weftio_u32 wrong;
    weftio_s32 status; /* status of the last receive call */
};

/* Whether packet `index` is the numbered frame of that number. Checks only the end of its header and its number. */
WEFTIO_FN weftio_u32 is_numbered(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, weftio_u32 index)
{
    struct weftio_dev_packet packet;
    weftio_u32 number = 0;

    if (weftio_dev_eth_rxq_packet(rxq, index, &packet) != WEFTIO_DEV_OK)
        return 0;
    for (weftio_u32 byte = 0; byte < 4; ++byte)
        number |= (weftio_u32)packet.address[14 + byte] << 8 * byte;
    return number == index && packet.address[12] == 0x88 && packet.bytes == 60 + index % 40;
}

WEFTIO_FN void look(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL struct tally* tally, weftio_u32 first,
                    weftio_u32 count, weftio_u32 lane, weftio_u32 lanes)
{
    for (weftio_u32 i = lane; i < count; i += lanes) {
        weftio_fetch_add_u32(&tally->looked_at, 1);
        if (!is_numbered(rxq, first + i))
            weftio_fetch_add_u32(&tally->wrong, 1);
    }
}

WEFTIO_FN void finish(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL struct tally* tally, weftio_u32 first,
                      weftio_u32 count, weftio_s32 status)
{
    if (weftio_dev_eth_rxq_release(rxq, first, count) != WEFTIO_DEV_OK)
        weftio_fetch_add_u32(&tally->wrong, 1);
    tally->status = status;
    weftio_fetch_add_u32(&tally->packets, count);
}

/* Receives in lane 0 only. */
WEFTIO_KERNEL void receive_by_thread(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL struct tally* tally)
{
    weftio_u32 count, first;
    weftio_s32 status;

    if (weftio_lane() != 0)
        return;
    do {
        status = weftio_dev_eth_rxq_receive_thread(rxq, 16, 1000000, &count, &first);
        look(rxq, tally, first, count, 0, 1);
        finish(rxq, tally, first, count, status);
    } while (status == WEFTIO_DEV_OK);
}

/* Receives in the first warp. */
WEFTIO_KERNEL void receive_by_warp(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL struct tally* tally)
{
    weftio_u32 count, first;
    weftio_s32 status;

    if (weftio_lane() != weftio_warp_lane())
        return;
    do {
        status = weftio_dev_eth_rxq_receive_warp(rxq, 33, 1000000, &count, &first);
        look(rxq, tally, first, count, weftio_warp_lane(), weftio_warp_lanes());
        weftio_warp_barrier();
        if (weftio_warp_lane() == 0)
            finish(rxq, tally, first, count, status);
        weftio_warp_barrier();
    } while (status == WEFTIO_DEV_OK);
}

WEFTIO_KERNEL void receive_by_block(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL struct tally* tally)
{
    weftio_u32 count, first;
    weftio_s32 status;

    do {
        status = weftio_dev_eth_rxq_receive_block(rxq, 0, 1000000, &count, &first);
        look(rxq, tally, first, count, weftio_lane(), weftio_block_lanes());
        weftio_block_barrier();
        if (weftio_lane() == 0)
            finish(rxq, tally, first, count, status);
        weftio_block_barrier();
    } while (status == WEFTIO_DEV_OK);
}
