/* Kernels that forward, receive, check or send. One block; on a CPU one lane is fastest. */
#pragma once

#include "weftio/device/eth_txq.h"

#define BURST 64u

/* Swaps the Ethernet addresses, as testpmd's macswap does. */
WEFTIO_FN void swap_addresses(WEFTIO_GLOBAL weftio_u8* frame)
{
    WEFTIO_GLOBAL weftio_u64* start = (WEFTIO_GLOBAL weftio_u64*)frame; /* slots begin on a cache line */
    WEFTIO_GLOBAL weftio_u32* end = (WEFTIO_GLOBAL weftio_u32*)(frame + 8);
    weftio_u64 first = *start, second = *end;

    *start = first >> 48 | second << 16 | first << 48;
    *end = (weftio_u32)(first >> 16);
}

/*
 * Receives packets, swaps their addresses, sends them from their receive slots, and releases the slots as the sends
 * complete. `touch` 0: does not swap.
 */
WEFTIO_KERNEL void forward(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                           weftio_u32 touch)
{
    weftio_u32 count, first, position, mask, released = 0;
    weftio_s32 status = WEFTIO_DEV_OK;

    weftio_dev_eth_txq_get_info(txq, &position, &mask);
    const weftio_u32 origin = position; /* entry origin + n sends packet n */
    while (status == WEFTIO_DEV_OK) {
        status = weftio_dev_eth_rxq_receive_block(rxq, BURST, 1, &count, &first);
        for (weftio_u32 at = weftio_lane(); at < count; at += weftio_block_lanes()) {
            struct weftio_dev_packet packet;
            struct weftio_dev_buf frame;
            if (weftio_dev_eth_rxq_packet(rxq, first + at, &packet) != WEFTIO_DEV_OK)
                return;
            if (touch)
                swap_addresses(packet.address);
            frame.address = packet.address;
            frame.bytes = packet.bytes;
            frame.lkey_be = rxq->lkey_be;
            weftio_dev_eth_txq_send_enqueue_weak(txq, frame, packet.bytes, position + at, WEFTIO_DEV_SEND_NONE);
        }
        position += count;
        weftio_block_barrier();
        if (weftio_lane() == 0) {
            if (count && weftio_dev_eth_txq_commit_weak(txq, count) == WEFTIO_DEV_OK)
                weftio_dev_eth_txq_push(txq);
            weftio_s32 done = (weftio_s32)(weftio_dev_eth_txq_completed(txq) - origin - released);
            if (done > 0) /* frames that were sent before this kernel began may still be in flight */
                released +=
                    weftio_dev_eth_rxq_release(rxq, released, (weftio_u32)done) == WEFTIO_DEV_OK ? (weftio_u32)done : 0;
        }
    }
}

/* Receives and releases. Reads one word of each packet: measures the rate of completions, not of bytes. */
WEFTIO_KERNEL void receive(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL weftio_u32* seen)
{
    weftio_u32 count, first, sum = 0;
    weftio_s32 status = WEFTIO_DEV_OK;

    while (status == WEFTIO_DEV_OK) {
        status = weftio_dev_eth_rxq_receive_block(rxq, BURST, 1, &count, &first);
        for (weftio_u32 at = weftio_lane(); at < count; at += weftio_block_lanes())
            sum += *(WEFTIO_GLOBAL weftio_u32*)weftio_dev_eth_rxq_address(rxq, first + at);
        weftio_block_barrier();
        if (weftio_lane() == 0)
            weftio_dev_eth_rxq_release(rxq, first, count);
    }
    seen[weftio_lane()] = sum;
}

/*
 * Whether a byte of a packet is not 0; the driver writes zeros. Afterwards overwrites a word, another one in each
 * packet: if the driver does not write, the next packet in that slot is found wrong.
 */
WEFTIO_FN weftio_u32 is_wrong(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, weftio_u32 index)
{
    struct weftio_dev_packet packet;
    weftio_u64 all = 0;

    if (weftio_dev_eth_rxq_packet(rxq, index, &packet) != WEFTIO_DEV_OK)
        return 1;
    WEFTIO_GLOBAL weftio_u64* words = (WEFTIO_GLOBAL weftio_u64*)packet.address; /* slots begin on a cache line */
    weftio_u32 count = packet.bytes / 8;
    for (weftio_u32 at = 0; at < count; ++at)
        all |= words[at];
    for (weftio_u32 at = count * 8; at < packet.bytes; ++at)
        all |= packet.address[at];
    words[index % count] = ~(weftio_u64)0;
    return all != 0;
}

/*
 * Receives, checks every byte of each packet, and releases. Writes the number of wrong packets of each lane to `seen`.
 */
WEFTIO_KERNEL void check(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL weftio_u32* seen)
{
    weftio_u32 count, first, wrong = 0;
    weftio_s32 status = WEFTIO_DEV_OK;

    while (status == WEFTIO_DEV_OK) {
        status = weftio_dev_eth_rxq_receive_block(rxq, BURST, 1, &count, &first);
        for (weftio_u32 at = weftio_lane(); at < count; at += weftio_block_lanes())
            wrong += is_wrong(rxq, first + at);
        weftio_block_barrier();
        if (weftio_lane() == 0)
            weftio_dev_eth_rxq_release(rxq, first, count);
    }
    seen[weftio_lane()] = wrong;
}

/*
 * Sends the same frames repeatedly, as fast as entries become free: `count` frames; 0: until the host asks the kernel
 * to end.
 */
WEFTIO_KERNEL void send(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq, WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames,
                        weftio_u32 count)
{
    weftio_u32 position, mask, left = count;

    weftio_dev_eth_txq_get_info(txq, &position, &mask);
    for (weftio_u32 round; (left || !count) && weftio_dev_eth_txq_wait_room_block(txq, BURST, 0) == WEFTIO_DEV_OK;
         left -= count ? round : 0) {
        round = count ? weftio_min_u32(BURST, left) : BURST;
        for (weftio_u32 at = weftio_lane(); at < round; at += weftio_block_lanes())
            weftio_dev_eth_txq_send_enqueue_weak(txq, weftio_dev_buf_get(frames, at), frames->buffer_bytes,
                                                 position + at, WEFTIO_DEV_SEND_NONE);
        position += round;
        weftio_block_barrier();
        if (weftio_lane() == 0 && weftio_dev_eth_txq_commit_weak(txq, round) == WEFTIO_DEV_OK)
            weftio_dev_eth_txq_push(txq);
    }
}
