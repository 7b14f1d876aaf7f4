/**
 * Legal kernels that some drivers miscompile: their barriers stand behind conditions that are the same for all lanes.
 *
 * A driver that runs all of them right is trusted with such loops. Each runs in one block of CANARY_LANES lanes; its
 * result must not depend on the device.
 */
#pragma once

#ifndef __OPENCL_C_VERSION__ /* OpenCL: inserted before this text */
#include "weftio/device/platform.h"
#endif

#define CANARY_LANES 8u

struct canary_world {
    weftio_u32 state;    /**< input of the conditions */
    weftio_u32 shared;   /**< a value from lane 0 to all lanes */
    weftio_u32 count;    /**< number of parts that lane 0 ran */
    weftio_u32 trace;    /**< digest of the parts that lane 0 ran */
    weftio_u32 finished; /**< lanes that reached the end */
    weftio_u32 sum[CANARY_LANES];
    weftio_u32 cell[CANARY_LANES];
};

/** A part that every lane runs. */
WEFTIO_FN void canary_work(WEFTIO_GLOBAL struct canary_world* world, weftio_u32 x, weftio_u32 part)
{
    world->sum[weftio_lane()] = world->sum[weftio_lane()] * 31u + x + part;
}

/** Lane 0's part. A macro, so that it is compiled in place, like a user's code. */
#define CANARY_LANE_0(PART)                                                                                            \
    if (weftio_lane() == 0) {                                                                                          \
        world->trace = world->trace * 33u + x + (PART);                                                                \
        world->count += 1;                                                                                             \
    }

/** Lane 0 tells all lanes the next state, as the receive functions tell a count. */
WEFTIO_FN weftio_u32 canary_next(WEFTIO_GLOBAL struct canary_world* world, weftio_u32 x)
{
    if (weftio_lane() == 0)
        world->shared = x * 1664525u + 1013904223u;
    weftio_block_barrier();
    x = world->shared;
    weftio_block_barrier();
    return x ^ x >> 15;
}

/** Every lane reads its neighbor's value. */
WEFTIO_FN void canary_neighbor(WEFTIO_GLOBAL struct canary_world* world, weftio_u32 x)
{
    world->cell[weftio_lane()] = x;
    weftio_block_barrier();
    world->sum[weftio_lane()] += world->cell[(weftio_lane() + 1u) % weftio_block_lanes()];
    weftio_block_barrier();
}

WEFTIO_FN void canary_finish(WEFTIO_GLOBAL struct canary_world* world, weftio_u32 x)
{
    world->sum[weftio_lane()] ^= x;
    weftio_fetch_add_u32(&world->finished, 1u);
}

WEFTIO_KERNEL void canary_continue(WEFTIO_GLOBAL struct canary_world* world)
{
    weftio_u32 x = world->state, n = 0;

    do {
        x = canary_next(world, x);
        if (x >> 7 & 1u)
            continue;
        canary_work(world, x, 1);
        weftio_block_barrier();
        CANARY_LANE_0(2)
    } while (++n < 12u);
    canary_finish(world, x);
}

WEFTIO_KERNEL void canary_branch(WEFTIO_GLOBAL struct canary_world* world)
{
    weftio_u32 x = world->state;

    for (weftio_u32 n = 0; n < 12u; ++n) {
        x = canary_next(world, x);
        if (x >> 5 & 1u) {
            canary_work(world, x, 3);
            weftio_block_barrier();
            CANARY_LANE_0(4)
        } else if (x >> 6 & 1u) {
            canary_neighbor(world, x);
            CANARY_LANE_0(5)
        }
    }
    canary_finish(world, x);
}

WEFTIO_KERNEL void canary_leave(WEFTIO_GLOBAL struct canary_world* world)
{
    weftio_u32 x = world->state;

    for (;;) {
        x = canary_next(world, x);
        if ((x >> 4 & 7u) == 5u)
            break;
        CANARY_LANE_0(6)
        if (x >> 9 & 1u)
            continue;
        canary_work(world, x, 7);
        weftio_block_barrier();
        if ((x >> 11 & 31u) == 3u) {
            canary_finish(world, x);
            return;
        }
        CANARY_LANE_0(8)
    }
    canary_neighbor(world, x);
    canary_finish(world, x);
}

WEFTIO_KERNEL void canary_nested(WEFTIO_GLOBAL struct canary_world* world)
{
    weftio_u32 x = world->state;

    for (weftio_u32 n = 0; n < 5u; ++n) {
        x = canary_next(world, x);
        for (weftio_u32 m = 0; m < (x >> 3 & 3u); ++m) {
            if (x >> (8u + m) & 1u)
                continue;
            canary_work(world, x, 9);
            weftio_block_barrier();
            CANARY_LANE_0(10)
        }
        if (x >> 6 & 1u)
            continue;
        canary_neighbor(world, x);
        if ((x >> 14 & 7u) == 1u)
            break;
        CANARY_LANE_0(11)
    }
    canary_finish(world, x);
}

WEFTIO_FN weftio_u32 canary_called(WEFTIO_GLOBAL struct canary_world* world, weftio_u32 x)
{
    if (x >> 10 & 1u)
        return x;
    canary_neighbor(world, x);
    CANARY_LANE_0(12)
    if (x >> 12 & 1u)
        x = canary_next(world, x);
    CANARY_LANE_0(13)
    return x;
}

WEFTIO_KERNEL void canary_calls(WEFTIO_GLOBAL struct canary_world* world)
{
    weftio_u32 x = world->state, n = 0;

    while (n++ < 8u) {
        x = canary_next(world, x);
        if (x >> 4 & 1u)
            x = canary_called(world, x);
        if (x >> 13 & 1u)
            continue;
        weftio_block_barrier();
        for (weftio_u32 at = weftio_lane(); at < CANARY_LANES; at += weftio_block_lanes())
            canary_work(world, x, 14);
        CANARY_LANE_0(15)
    }
    canary_finish(world, x);
}

/** The counts are the same constant in all lanes before the barrier, and differ by lane after it. */
WEFTIO_KERNEL void canary_count(WEFTIO_GLOBAL struct canary_world* world)
{
    weftio_u32 x = world->state, at = 0, same = 0;

    for (weftio_u32 n = 0; n < 6u; ++n) {
        weftio_u32 own = 0;
        at = 0;
        CANARY_LANE_0(16)
        weftio_block_barrier();
        while (at < weftio_lane() + n)
            ++at;
        weftio_block_barrier();
        do
            own += at;
        while (own < weftio_lane() * 3u);
        weftio_block_barrier();
        do
            ++same;
        while (same % 3u);
        canary_work(world, at + own + same, 17);
        x = canary_next(world, x);
    }
    canary_finish(world, x);
}
