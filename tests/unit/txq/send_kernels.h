/* Kernels that send numbered frames, each number once, from many lanes and blocks. */
#pragma once

#include "weftio/device/eth_txq.h"

#define FRAME_BYTES 60
#define STOP (1u << 20) /* larger than any number of lanes */

/* One for each block, so that blocks do not share a word. */
struct tally {
    weftio_u32 full;    /* enqueue calls that found the ring full */
    weftio_u32 wrong;   /* calls with an unexpected status */
    weftio_u32 scratch; /* word of the block sum */
    weftio_u32 reserved[13];
};

/* Writes the number to the offset that numbered() uses; the host has written the other bytes. */
WEFTIO_FN void put_number(WEFTIO_GLOBAL weftio_u8* frame, weftio_u32 number)
{
    for (weftio_u32 byte = 0; byte < 4; ++byte)
        frame[14 + byte] = (weftio_u8)(number >> 8 * byte);
}

/* Every third frame is inlined in its entry, which takes two blocks of the ring. */
WEFTIO_FN weftio_s32 enqueue_strong(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                                    const WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, weftio_u32 number)
{
    struct weftio_dev_buf frame = weftio_dev_buf_get(frames, number);

    put_number(frame.address, number);
    if (number % 3 == 0)
        return weftio_dev_eth_txq_send_inline_enqueue_strong(txq, frame.address, FRAME_BYTES, WEFTIO_DEV_SEND_NONE);
    return weftio_dev_eth_txq_send_enqueue_strong(txq, frame, FRAME_BYTES, WEFTIO_DEV_SEND_NONE);
}

/* Lane 0 commits and pushes the entries of all blocks. If lanes are left, it then waits for free entries. */
WEFTIO_FN weftio_u32 flush_strong(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq, weftio_u32 left)
{
    if (weftio_dev_eth_txq_commit_strong(txq) != WEFTIO_DEV_OK)
        return STOP;
    weftio_dev_eth_txq_push(txq);
    return left && weftio_dev_eth_txq_wait_room(txq, 2, 0) != WEFTIO_DEV_OK ? STOP : 0;
}

/* Sends frames 0 .. total - 1 from all lanes of all blocks, through a ring with fewer entries than lanes. */
WEFTIO_KERNEL void send_strong(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                               WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, WEFTIO_GLOBAL struct tally* tallies,
                               weftio_u32 total)
{
    WEFTIO_GLOBAL struct tally* tally = &tallies[weftio_block()];
    weftio_u32 lanes = weftio_block_lanes() * weftio_blocks();

    for (weftio_u32 first = 0; first < total; first += lanes) {
        weftio_u32 number = first + weftio_block() * weftio_block_lanes() + weftio_lane();
        weftio_u32 mine = number < total, left = 1;
        while (left) {
            weftio_s32 status = mine ? enqueue_strong(txq, frames, number) : WEFTIO_DEV_OK;
            if (status == WEFTIO_DEV_FULL)
                weftio_fetch_add_u32(&tally->full, 1);
            else if (status == WEFTIO_DEV_OK)
                mine = 0;
            else
                weftio_fetch_add_u32(&tally->wrong, 1);
            left = weftio_block_sum_u32(mine, &tally->scratch);
            weftio_u32 stop = weftio_block_sum_u32(weftio_lane() == 0 ? flush_strong(txq, left) : 0, &tally->scratch);
            if (stop) {
                weftio_fetch_add_u32(&tally->wrong, 1);
                return;
            }
        }
    }
}

/*
 * Sends frames 0 .. total - 1 in order. Each lane enqueues at positions of its own, from the last to the first.
 * `masked`: positions modulo the depth, as in docs/guide.md.
 */
WEFTIO_KERNEL void send_weak(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                             WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, WEFTIO_GLOBAL struct tally* tally,
                             weftio_u32 total, weftio_u32 masked)
{
    weftio_u32 position, mask, round;

    weftio_dev_eth_txq_get_info(txq, &position, &mask);
    weftio_u32 most = weftio_min_u32(weftio_block_lanes(), mask + 1);
    for (weftio_u32 done = 0; done < total; done += round, position += round) {
        round = weftio_min_u32(most, total - done);
        if (weftio_dev_eth_txq_wait_room_block(txq, round, 0) != WEFTIO_DEV_OK) {
            weftio_fetch_add_u32(&tally->wrong, 1);
            return;
        }
        if (weftio_lane() < round) {
            weftio_u32 at = round - 1 - weftio_lane();
            struct weftio_dev_buf frame = weftio_dev_buf_get(frames, done + at);
            put_number(frame.address, done + at);
            weftio_u32 where = masked ? weftio_dev_eth_txq_unmask(txq, (position + at) & mask) : position + at;
            if (weftio_dev_eth_txq_send_enqueue_weak(txq, frame, FRAME_BYTES, where, WEFTIO_DEV_SEND_NONE) !=
                WEFTIO_DEV_OK)
                weftio_fetch_add_u32(&tally->wrong, 1);
        }
        weftio_block_barrier();
        if (weftio_lane() == 0) {
            if (weftio_dev_eth_txq_commit_weak(txq, round) != WEFTIO_DEV_OK)
                weftio_fetch_add_u32(&tally->wrong, 1);
            weftio_dev_eth_txq_push(txq);
        }
    }
}

/*
 * Sends every packet back from its receive slot, with its addresses swapped. Releases the slots after the packets have
 * been sent.
 */
WEFTIO_KERNEL void reply_in_place(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq,
                                  WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq, WEFTIO_GLOBAL struct tally* tally)
{
    weftio_u32 count, first, position, mask;
    weftio_u64 completed_ns;
    weftio_s32 status;

    do {
        status = weftio_dev_eth_rxq_receive_block(rxq, 32, 1000000, &count, &first);
        for (weftio_u32 i = weftio_lane(); i < count; i += weftio_block_lanes()) {
            struct weftio_dev_buf slot = weftio_dev_eth_rxq_buf(rxq, first + i);
            for (weftio_u32 byte = 0; byte < 6; ++byte) {
                weftio_u8 destination = slot.address[byte];
                slot.address[byte] = slot.address[6 + byte];
                slot.address[6 + byte] = destination;
            }
            if (weftio_dev_eth_txq_send_enqueue_strong(txq, slot, FRAME_BYTES, WEFTIO_DEV_SEND_NONE) != WEFTIO_DEV_OK)
                weftio_fetch_add_u32(&tally->wrong, 1);
        }
        weftio_block_barrier();
        if (weftio_lane() == 0 && count) {
            weftio_dev_eth_txq_get_info(txq, &position, &mask);
            weftio_dev_eth_txq_commit_strong(txq);
            weftio_dev_eth_txq_push(txq);
            for (weftio_u32 attempt = 0;
                 !weftio_dev_aborted(rxq->control) &&
                 weftio_dev_eth_txq_poll_completion(txq, position - 1, &completed_ns) == WEFTIO_DEV_NOT_FOUND;
                 ++attempt)
                weftio_relax(attempt);
            if (weftio_dev_eth_rxq_release(rxq, first, count) != WEFTIO_DEV_OK)
                weftio_fetch_add_u32(&tally->wrong, 1);
        }
        weftio_block_barrier();
    } while (status == WEFTIO_DEV_OK);
}

/* Enqueues `bursts` frames, each after a wait entry, and returns at once. */
WEFTIO_KERNEL void send_later(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                              WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, weftio_u64 start, weftio_u64 interval_ns,
                              weftio_u32 bursts)
{
    if (weftio_lane() != 0)
        return;
    for (weftio_u32 burst = 0; burst < bursts; ++burst) {
        weftio_dev_eth_txq_wait_time_enqueue_strong(txq, start, WEFTIO_DEV_SEND_NONE);
        weftio_dev_eth_txq_send_enqueue_strong(txq, weftio_dev_buf_get(frames, burst), FRAME_BYTES,
                                               WEFTIO_DEV_SEND_NOTIFY);
        start = weftio_dev_timestamp_add(start, interval_ns);
    }
    weftio_dev_eth_txq_commit_strong(txq);
    weftio_dev_eth_txq_push(txq);
}

/* Sends frames 0 .. total - 1, each after a wait entry, as many ahead as the ring holds. One lane. */
WEFTIO_KERNEL void send_on_time(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                                WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, weftio_u64 start,
                                weftio_u64 interval_ns, weftio_u32 total)
{
    for (weftio_u32 number = 0; number < total && weftio_dev_eth_txq_wait_room(txq, 2, 0) == WEFTIO_DEV_OK; ++number) {
        weftio_dev_eth_txq_wait_time_enqueue_strong(txq, start, WEFTIO_DEV_SEND_NONE);
        weftio_dev_eth_txq_send_enqueue_strong(txq, weftio_dev_buf_get(frames, number), FRAME_BYTES,
                                               WEFTIO_DEV_SEND_NONE);
        weftio_dev_eth_txq_commit_strong(txq);
        weftio_dev_eth_txq_push(txq);
        start = weftio_dev_timestamp_add(start, interval_ns);
    }
}
