/*
 * Posts numbered entries in every strong way at once: lanes for themselves, warps and blocks that reserve; with delays
 * of any length between claim, fill and publication.
 */
#pragma once

#include "weftio/device/eth_txq.h"

/* By lanes, by warps, by blocks. With PoCL 3.1 not by blocks: it crashed with their barriers in one of the branches. */
#if defined(__OPENCL_C_VERSION__)
#define PUBLICATION_WAYS 2
#else
#define PUBLICATION_WAYS 3
#endif

/* One for each block. */
struct publication_tally {
    weftio_u32 scratch;
    weftio_u32 wrong; /* calls with an unexpected status */
    weftio_u32 posted;
    weftio_u32 reserved[13];
};

WEFTIO_FN weftio_u32 publication_random(weftio_u32* state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Mostly none, at times as long as a round of everybody else. */
WEFTIO_FN void publication_delay(weftio_u32* state)
{
    weftio_u32 turns = publication_random(state);

    turns = turns % 8 == 0 ? turns / 8 % 2048 : turns % 8;
    for (weftio_u32 turn = 0; turn < turns; ++turn)
        weftio_relax(0);
}

/* The number of an entry is the address of its frame. */
WEFTIO_FN struct weftio_dev_buf publication_frame(weftio_u32 number)
{
    struct weftio_dev_buf frame = {0, 0, 0};

    frame.address = (WEFTIO_GLOBAL weftio_u8*)(weftio_u64)(number + 1);
    frame.bytes = 64;
    return frame;
}

WEFTIO_FN weftio_s32 publication_by_lanes(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq, weftio_u32 number,
                                          weftio_u32* state)
{
    weftio_s32 status;

    for (weftio_u32 attempt = 0;; ++attempt) {
        status = weftio_dev_eth_txq_send_enqueue_strong(txq, publication_frame(number), 64, WEFTIO_DEV_SEND_NONE);
        if (status != WEFTIO_DEV_FULL || weftio_dev_eth_txq_aborted(txq))
            break;
        weftio_relax(attempt);
    }
    publication_delay(state);
    if (publication_random(state) % 2)
        weftio_dev_eth_txq_commit_strong(txq);
    else
        weftio_dev_send_queue_submit(&txq->queue);
    return status;
}

WEFTIO_FN weftio_s32 publication_by_scope(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq, enum weftio_dev_scope scope,
                                          weftio_u32 lanes, weftio_u32 number, WEFTIO_GLOBAL weftio_u32* scratch,
                                          weftio_u32* state)
{
    weftio_u32 first;
    weftio_s32 status = weftio_dev_send_queue_reserve(&txq->queue, scope, lanes, 0, scratch, &first);

    if (status != WEFTIO_DEV_OK)
        return status;
    publication_delay(state);
    status = weftio_dev_eth_txq_send_enqueue_weak(txq, publication_frame(number), 64,
                                                  first + weftio_dev_scope_lane(scope), WEFTIO_DEV_SEND_NONE);
    publication_delay(state);
    weftio_dev_send_queue_submit_reserved(&txq->queue, scope, first, lanes);
    return status;
}

/* Every lane posts `rounds` entries. @pre the blocks' scopes are no larger than the ring */
WEFTIO_KERNEL void publish_in_every_way(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                                        WEFTIO_GLOBAL struct publication_tally* tallies, weftio_u32 rounds,
                                        weftio_u32 seed)
{
    WEFTIO_GLOBAL struct publication_tally* tally = &tallies[weftio_block()];
    const weftio_u32 lane = weftio_block() * weftio_block_lanes() + weftio_lane();
    weftio_u32 own = seed + 7919 * lane, of_block = seed + 104729 * weftio_block();

    for (weftio_u32 round = 0; round < rounds; ++round) {
        const weftio_u32 number = lane * rounds + round, way = publication_random(&of_block) % PUBLICATION_WAYS;
        weftio_s32 status = WEFTIO_DEV_OK;

        if (way == 0)
            status = publication_by_lanes(txq, number, &own);
        else if (way == 1)
            status =
                publication_by_scope(txq, WEFTIO_DEV_SCOPE_WARP, weftio_warp_lanes(), number, &tally->scratch, &own);
        else
            status =
                publication_by_scope(txq, WEFTIO_DEV_SCOPE_BLOCK, weftio_block_lanes(), number, &tally->scratch, &own);
        if (status != WEFTIO_DEV_OK)
            weftio_fetch_add_u32(&tally->wrong, 1);
    }
    weftio_block_barrier();
    if (weftio_lane() == 0)
        weftio_dev_send_queue_submit(&txq->queue);
}
