/* Kernels that send and receive numbered frames. The words of frame n are computed from n alone. */
#pragma once

#include "weftio/device/eth_rxq.h"
#include "weftio/device/eth_txq.h"

#define FRAME_UNIT_BYTES 16u /* frames are made and checked four words at a time */

/* Result of a kernel: errors and progress. */
struct verdict {
    weftio_u32 packets; /* received and released */
    weftio_u32 wrong;   /* wrong words, lengths or statuses */
    weftio_u32 full;    /* strong calls that returned WEFTIO_DEV_FULL */
    weftio_u32 spare[13];
};

WEFTIO_FN weftio_u32 frame_word(weftio_u32 number, weftio_u32 word)
{
    return (number ^ 0x5bd1e995u) * 2654435761u + word * 0x9e3779b9u;
}

WEFTIO_FN void write_unit(WEFTIO_GLOBAL weftio_u8* frame, weftio_u32 number, weftio_u32 unit)
{
    weftio_u32 word = unit * 4;

    weftio_store_x4((WEFTIO_GLOBAL weftio_u32*)(frame + unit * FRAME_UNIT_BYTES), frame_word(number, word),
                    frame_word(number, word + 1), frame_word(number, word + 2), frame_word(number, word + 3));
}

/* 0 if these four words are those of frame `number`. */
WEFTIO_FN weftio_u32 wrong_unit(const WEFTIO_GLOBAL weftio_u8* frame, weftio_u32 number, weftio_u32 unit)
{
    weftio_u32 a, b, c, d, word = unit * 4;

    weftio_load_x4((const WEFTIO_GLOBAL weftio_u32*)(frame + unit * FRAME_UNIT_BYTES), &a, &b, &c, &d);
    return a != frame_word(number, word) || b != frame_word(number, word + 1) || c != frame_word(number, word + 2) ||
           d != frame_word(number, word + 3);
}

/* Writes frames `first` .. `first + count - 1` by all lanes of the block. */
WEFTIO_FN void write_frames(const WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, weftio_u32 first, weftio_u32 count,
                            weftio_u32 bytes)
{
    weftio_u32 units = bytes / FRAME_UNIT_BYTES;

    for (weftio_u32 i = weftio_lane(); i < count * units; i += weftio_block_lanes())
        write_unit(weftio_dev_buf_addr(frames, first + i / units), first + i / units, i % units);
}

/* Sends frames 0 .. total - 1 in weak mode, in order. One block. */
WEFTIO_KERNEL void stream_out(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                              WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, WEFTIO_GLOBAL struct verdict* verdict,
                              weftio_u32 total, weftio_u32 bytes)
{
    weftio_u32 round;

    for (weftio_u32 done = 0; done < total; done += round) {
        round = weftio_min_u32(weftio_min_u32(weftio_block_lanes(), total - done), txq->queue.ring.mask + 1);
        if (weftio_dev_eth_txq_wait_room_block(txq, round, 0) != WEFTIO_DEV_OK)
            return; /* the host asks the kernel to end, and counts the received frames */
        write_frames(frames, done, round, bytes);
        weftio_block_barrier();
        for (weftio_u32 i = weftio_lane(); i < round; i += weftio_block_lanes())
            if (weftio_dev_eth_txq_send_enqueue_weak(txq, weftio_dev_buf_get(frames, done + i), bytes, done + i,
                                                     WEFTIO_DEV_SEND_NONE) != WEFTIO_DEV_OK)
                weftio_fetch_add_u32(&verdict->wrong, 1);
        weftio_block_barrier();
        if (weftio_lane() == 0) {
            weftio_dev_eth_txq_commit_weak(txq, round);
            weftio_dev_eth_txq_push(txq);
        }
        weftio_block_barrier();
    }
}

/* Receives `total` frames and checks every byte and the order. One block. */
WEFTIO_KERNEL void stream_in(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL struct verdict* verdict,
                             weftio_u32 total, weftio_u32 bytes)
{
    weftio_u32 count, first, done = 0, wrong = 0, units = bytes / FRAME_UNIT_BYTES;
    weftio_s32 status = WEFTIO_DEV_OK;

    while (done < total && status == WEFTIO_DEV_OK) {
        status = weftio_dev_eth_rxq_receive_block(rxq, 0, 100000, &count, &first);
        for (weftio_u32 i = weftio_lane(); i < count * units; i += weftio_block_lanes())
            wrong += wrong_unit(weftio_dev_eth_rxq_address(rxq, first + i / units), first + i / units, i % units);
        for (weftio_u32 i = weftio_lane(); i < count; i += weftio_block_lanes()) {
            struct weftio_dev_packet packet;
            wrong += weftio_dev_eth_rxq_packet(rxq, first + i, &packet) != WEFTIO_DEV_OK || packet.bytes != bytes;
        }
        weftio_block_barrier();
        done += count;
        if (weftio_lane() == 0) {
            wrong += weftio_dev_eth_rxq_release(rxq, first, count) != WEFTIO_DEV_OK;
            weftio_store_release_sys_u32(&verdict->packets, done);
        }
    }
    if (wrong)
        weftio_fetch_add_u32(&verdict->wrong, wrong);
}
