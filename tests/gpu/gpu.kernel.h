/* Kernels of weftio-gpu-test. */
#pragma once

#include "unit/rdma/stream_kernels.h"
#include "weftio/device/dma.h"
#include "weftio/device/eth_txq.h"
#include "weftio/device/file.h"
#include "weftio/device/semaphore.h"

/*
 * Lane `i` of the grid enqueues a copy of `share` bytes from offset i * share of `from` to the same offset of `to`,
 * waits, and compares. results[0] is the first status that is not OK, negated; results[1] counts lanes whose bytes were
 * right.
 */
WEFTIO_KERNEL void copy_shares(WEFTIO_GLOBAL struct weftio_dev_dma* dma, struct weftio_dev_buf from,
                               struct weftio_dev_buf to, weftio_u32 share, WEFTIO_GLOBAL weftio_u32* results)
{
    weftio_u32 lane = weftio_block() * weftio_block_lanes() + weftio_lane(), position = 0, right = 1;
    weftio_s32 status = weftio_dev_dma_memcpy_position(dma, from, lane * share, to, lane * share, share,
                                                       WEFTIO_DEV_SEND_NONE, &position);

    if (status == WEFTIO_DEV_OK)
        status = weftio_dev_dma_commit(dma);
    if (status == WEFTIO_DEV_OK)
        status = weftio_dev_dma_wait(dma, position, 0);
    if (status != WEFTIO_DEV_OK)
        weftio_store_relaxed_u32(&results[0], (weftio_u32)-status);
    for (weftio_u32 byte = lane * share; byte < (lane + 1) * share; ++byte)
        right &= from.address[byte] == to.address[byte];
    weftio_fetch_add_relaxed_u32(&results[1], right);
}

/*
 * Lane `i` of the grid enqueues a read of `share` bytes at offset i * share of the file to the same offset of `to`,
 * waits, and compares them with `expected`. results[] are those of copy_shares.
 */
WEFTIO_KERNEL void read_shares(WEFTIO_GLOBAL struct weftio_dev_file_queue* files, weftio_u32 file,
                               struct weftio_dev_buf to, const WEFTIO_GLOBAL weftio_u8* expected, weftio_u32 share,
                               WEFTIO_GLOBAL weftio_u32* results)
{
    weftio_u32 lane = weftio_block() * weftio_block_lanes() + weftio_lane(), position = 0, right = 1;
    weftio_s64 bytes = 0;
    weftio_s32 status = weftio_dev_file_read_position(files, file, lane * share, to, lane * share, share,
                                                      WEFTIO_DEV_SEND_NONE, &position);

    if (status == WEFTIO_DEV_OK)
        status = weftio_dev_file_commit(files);
    if (status == WEFTIO_DEV_OK)
        status = weftio_dev_file_wait_result(files, position, 0, &bytes);
    if (status != WEFTIO_DEV_OK)
        weftio_store_relaxed_u32(&results[0], (weftio_u32)-status);
    for (weftio_u32 byte = lane * share; byte < (lane + 1) * share; ++byte)
        right &= to.address[byte] == expected[byte];
    weftio_fetch_add_relaxed_u32(&results[1], right && bytes == (weftio_s64)share);
}

/*
 * Sends each frame 0 .. total - 1 once, in strong mode, from all lanes of all blocks. The number is in the first word.
 */
WEFTIO_KERNEL void scatter_out(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                               WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, WEFTIO_GLOBAL struct verdict* verdict,
                               weftio_u32 total)
{
    for (weftio_u32 number = weftio_block() * weftio_block_lanes() + weftio_lane(); number < total;
         number += weftio_blocks() * weftio_block_lanes()) {
        struct weftio_dev_buf frame = weftio_dev_buf_get(frames, number);
        weftio_s32 status;

        *(WEFTIO_GLOBAL weftio_u32*)frame.address = number;
        while ((status = weftio_dev_eth_txq_send_enqueue_strong(txq, frame, 64, WEFTIO_DEV_SEND_NONE)) ==
               WEFTIO_DEV_FULL) {
            weftio_fetch_add_u32(&verdict->full, 1);
            if (weftio_dev_eth_txq_commit_strong(txq) != WEFTIO_DEV_OK)
                return;
            weftio_dev_eth_txq_push(txq);
        }
        if (status != WEFTIO_DEV_OK)
            weftio_fetch_add_u32(&verdict->wrong, 1);
    }
    if (weftio_dev_eth_txq_commit_strong(txq) != WEFTIO_DEV_OK)
        weftio_fetch_add_u32(&verdict->wrong, 1);
    weftio_dev_eth_txq_push(txq);
}

/* Receives `total` frames in any order and counts each number in `seen`. One block. */
WEFTIO_KERNEL void gather_in(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL struct verdict* verdict,
                             WEFTIO_GLOBAL weftio_u32* seen, weftio_u32 total)
{
    weftio_u32 count, first, done = 0;
    weftio_s32 status = WEFTIO_DEV_OK;

    while (done < total && status == WEFTIO_DEV_OK) {
        status = weftio_dev_eth_rxq_receive_block(rxq, 0, 100000, &count, &first);
        for (weftio_u32 i = weftio_lane(); i < count; i += weftio_block_lanes()) {
            weftio_u32 number = *(WEFTIO_GLOBAL weftio_u32*)weftio_dev_eth_rxq_address(rxq, first + i);
            weftio_fetch_add_u32(number < total ? &seen[number] : &verdict->wrong, 1);
        }
        weftio_block_barrier();
        done += count;
        if (weftio_lane() == 0) {
            weftio_dev_eth_rxq_release(rxq, first, count);
            weftio_store_release_sys_u32(&verdict->packets, done);
        }
    }
}

/* Waits until each item is READY, checks its content, and sets it DONE with count and first swapped. One lane. */
WEFTIO_KERNEL void answer_items(WEFTIO_GLOBAL struct weftio_dev_semaphore* semaphore,
                                WEFTIO_GLOBAL struct verdict* verdict, weftio_u32 total)
{
    weftio_u32 count, first;

    for (weftio_u32 item = 0; item < total; ++item) {
        if (weftio_dev_semaphore_wait_packet_info(semaphore, item, WEFTIO_DEV_SEMAPHORE_READY, 0, &count, &first) !=
            WEFTIO_DEV_OK)
            return;
        WEFTIO_GLOBAL weftio_u32* info =
            (WEFTIO_GLOBAL weftio_u32*)weftio_dev_semaphore_get_custom_info_addr(semaphore, item);
        verdict->wrong += *info != frame_word(item, 0);
        *info = frame_word(item, 1);
        weftio_dev_semaphore_set_packet_info(semaphore, item, WEFTIO_DEV_SEMAPHORE_DONE, first, count);
    }
}

/* Uses its queue once, then accesses an invalid address. */
WEFTIO_KERNEL void touch_nothing(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL weftio_u32* nowhere)
{
    weftio_u32 count, first;

    weftio_dev_eth_rxq_receive_thread(rxq, 1, 1000, &count, &first);
    *nowhere = count;
}

/* Writes a word per lane, also into memory that only the device can access, and reads it back. */
WEFTIO_KERNEL void copy_through(WEFTIO_GLOBAL weftio_u32* hidden, const WEFTIO_GLOBAL weftio_u32* from,
                                WEFTIO_GLOBAL weftio_u32* to, weftio_u32 words)
{
    for (weftio_u32 i = weftio_lane(); i < words; i += weftio_block_lanes())
        hidden[i] = from[i] + 1;
    weftio_block_barrier();
    for (weftio_u32 i = weftio_lane(); i < words; i += weftio_block_lanes())
        to[i] = hidden[words - 1 - i];
}

/* Polls its queue until the host asks the kernel to end. With `silent`, its beats stop before. */
WEFTIO_KERNEL void look_until_stopped(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL weftio_u32* running,
                                      weftio_u32 silent)
{
    weftio_u32 count, first;

    weftio_dev_eth_rxq_receive_thread(rxq, 1, 1000000, &count, &first);
    weftio_store_release_sys_u32(running, 1);
    if (silent)
        while (!weftio_dev_eth_rxq_aborted(rxq))
            weftio_relax(1 << 16);
    while (weftio_dev_eth_rxq_receive_thread(rxq, 1, 1000000, &count, &first) == WEFTIO_DEV_OK) {
    }
    weftio_store_release_sys_u32(running, 2);
}
