/**
 * Kernels of the device tests, in the language subset that every device compiles.
 */
#pragma once

#include "weftio/device/platform.h"
#include "weftio/device/queue/control.h"

/** Number of this lane in the whole grid. */
WEFTIO_FN weftio_u32 grid_lane(void)
{
    return weftio_block() * weftio_block_lanes() + weftio_lane();
}

/** Four words per lane: its lane, block and grid numbers. */
WEFTIO_KERNEL void write_place(WEFTIO_GLOBAL weftio_u32* words)
{
    WEFTIO_GLOBAL weftio_u32* mine = words + 4 * grid_lane();

    mine[0] = weftio_lane();
    mine[1] = weftio_block_lanes();
    mine[2] = weftio_block();
    mine[3] = weftio_blocks();
}

/**
 * A word per lane: the value that its right neighbor wrote to the block's shared memory, in `rounds` rounds. At most
 * 256 lanes.
 */
WEFTIO_KERNEL void pass_left(WEFTIO_GLOBAL weftio_u32* words, weftio_u32 rounds)
{
    WEFTIO_SHARED weftio_u32 cells[256];
    weftio_u32 value = 1000 * weftio_block() + weftio_lane();

    for (weftio_u32 round = 0; round < rounds; ++round) {
        cells[weftio_lane()] = value;
        weftio_block_barrier();
        value = cells[(weftio_lane() + 1) % weftio_block_lanes()];
        weftio_block_barrier();
    }
    words[grid_lane()] = value;
}

/** A word per lane: the sum of lane + 1 over the block. `scratch` has a word per block. */
WEFTIO_KERNEL void add_block(WEFTIO_GLOBAL weftio_u32* words, WEFTIO_GLOBAL weftio_u32* scratch)
{
    words[grid_lane()] = weftio_block_sum_u32(weftio_lane() + 1, scratch + weftio_block());
}

/** Two words per lane: the number of lanes of its warp, by warp sum and by weftio_warp_lanes(). */
WEFTIO_KERNEL void count_warp(WEFTIO_GLOBAL weftio_u32* words)
{
    words[2 * grid_lane()] = weftio_warp_sum_u32(1);
    weftio_warp_barrier();
    words[2 * grid_lane() + 1] = weftio_warp_lanes();
}

/** Stores its arguments, so that the host can check that they arrived unchanged. */
WEFTIO_KERNEL void write_arguments(WEFTIO_GLOBAL weftio_u64* words, weftio_u8 byte, weftio_s32 negative,
                                   weftio_u64 wide)
{
    words[0] = byte;
    words[1] = (weftio_u64)negative;
    words[2] = wide;
}

/** Adds 1 to `word` in each lane. */
WEFTIO_KERNEL void count_lanes(WEFTIO_GLOBAL weftio_u32* word)
{
    weftio_fetch_add_u32(word, 1);
}

/** Runs until the host asks it to end. Sets a word per block at the beginning, and doubles it at the end. */
WEFTIO_KERNEL void wait_for_abort(WEFTIO_GLOBAL struct weftio_dev_control* control, WEFTIO_GLOBAL weftio_u32* words)
{
    if (weftio_lane() == 0)
        weftio_store_release_sys_u32(&words[weftio_block()], 1);
    for (weftio_u32 attempt = 0; !weftio_dev_aborted(control); ++attempt)
        weftio_relax(attempt);
    if (weftio_lane() == 0)
        weftio_store_release_sys_u32(&words[weftio_block()], 2);
}
