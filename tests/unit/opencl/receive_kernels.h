/* Kernels that receive packets until they are stopped, and check each one. */
#pragma once

#include "weftio/device/eth_rxq.h"

/* Results of a kernel. */
struct tally {
    weftio_u32 packets;
    weftio_u32 wrong;   /* packets whose content, length, timestamp or flags are not those of their index */
    weftio_u32 refused; /* release calls that failed */
    weftio_s32 last_status;
};

WEFTIO_FN weftio_u32 is_wrong(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, weftio_u32 index)
{
    struct weftio_dev_packet packet;

    if (weftio_dev_eth_rxq_packet(rxq, index, &packet) != WEFTIO_DEV_OK)
        return 1;
    const WEFTIO_GLOBAL weftio_u32* words = (const WEFTIO_GLOBAL weftio_u32*)packet.address;
    return words[0] != index * 2654435761u || words[packet.bytes / 4 - 1] != ~index ||
           packet.bytes != 60 + index % 16 * 4 || packet.timestamp_ns != 5000000000u + index ||
           packet.flags != WEFTIO_DEV_PACKET_L3_CHECKSUM_GOOD;
}

/* One lane releases the packets that all lanes have read, and counts them. */
WEFTIO_FN void finish(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL struct tally* tally, weftio_u32 first,
                      weftio_u32 count, weftio_s32 status)
{
    if (weftio_dev_eth_rxq_release(rxq, first, count) != WEFTIO_DEV_OK)
        tally->refused += 1;
    tally->packets += count;
    tally->last_status = status;
}

WEFTIO_KERNEL void receive_by_block(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, weftio_u32 max_packets,
                                    weftio_u64 timeout_ns, WEFTIO_GLOBAL struct tally* tally)
{
    weftio_u32 count, first;
    weftio_s32 status = WEFTIO_DEV_OK;

    while (status == WEFTIO_DEV_OK) {
        status = weftio_dev_eth_rxq_receive_block(rxq, max_packets, timeout_ns, &count, &first);
        for (weftio_u32 at = weftio_lane(); at < count; at += weftio_block_lanes())
            if (is_wrong(rxq, first + at))
                weftio_fetch_add_u32(&tally->wrong, 1);
        weftio_block_barrier();
        if (weftio_lane() == 0)
            finish(rxq, tally, first, count, status);
    }
}

/* The first warp receives; the other warps of the block are idle. */
WEFTIO_KERNEL void receive_by_warp(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, weftio_u32 max_packets,
                                   weftio_u64 timeout_ns, WEFTIO_GLOBAL struct tally* tally)
{
    weftio_u32 count, first;
    weftio_s32 status = WEFTIO_DEV_OK;

    if (weftio_lane() >= weftio_warp_lanes())
        return;
    while (status == WEFTIO_DEV_OK) {
        status = weftio_dev_eth_rxq_receive_warp(rxq, max_packets, timeout_ns, &count, &first);
        for (weftio_u32 at = weftio_warp_lane(); at < count; at += weftio_warp_lanes())
            if (is_wrong(rxq, first + at))
                weftio_fetch_add_u32(&tally->wrong, 1);
        weftio_warp_barrier();
        if (weftio_warp_lane() == 0)
            finish(rxq, tally, first, count, status);
    }
}

/* The last lane of the block receives; the others are idle. */
WEFTIO_KERNEL void receive_by_thread(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, weftio_u32 max_packets,
                                     weftio_u64 timeout_ns, WEFTIO_GLOBAL struct tally* tally)
{
    weftio_u32 count, first;
    weftio_s32 status = WEFTIO_DEV_OK;

    if (weftio_lane() != weftio_block_lanes() - 1)
        return;
    while (status == WEFTIO_DEV_OK) {
        status = weftio_dev_eth_rxq_receive_thread(rxq, max_packets, timeout_ns, &count, &first);
        for (weftio_u32 at = 0; at < count; ++at)
            tally->wrong += is_wrong(rxq, first + at);
        finish(rxq, tally, first, count, status);
    }
}

/* Lane 0 receives for its block while the others wait at a barrier; then all lanes check the packets. */
WEFTIO_KERNEL void receive_by_lane_0(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, weftio_u32 max_packets,
                                     weftio_u64 timeout_ns, WEFTIO_GLOBAL struct tally* tally)
{
    WEFTIO_SHARED weftio_u32 shared_count, shared_first;
    WEFTIO_SHARED weftio_s32 shared_status;
    weftio_s32 status = WEFTIO_DEV_OK;

    while (status == WEFTIO_DEV_OK) {
        if (weftio_lane() == 0) {
            weftio_u32 count, first;
            shared_status = weftio_dev_eth_rxq_receive_thread(rxq, max_packets, timeout_ns, &count, &first);
            shared_count = count;
            shared_first = first;
        }
        weftio_block_barrier();
        status = shared_status;
        for (weftio_u32 at = weftio_lane(); at < shared_count; at += weftio_block_lanes())
            if (is_wrong(rxq, shared_first + at))
                weftio_fetch_add_u32(&tally->wrong, 1);
        weftio_block_barrier();
        if (weftio_lane() == 0)
            finish(rxq, tally, shared_first, shared_count, status);
    }
}
