/** What the generated programs (flow_programs.py) are made of. */
#pragma once

#include "weftio/device/platform.h"

#define FLOW_TRACE 1024u
#define FLOW_LANES 64u

struct flow_world {
    weftio_u32 state;    /* what the conditions are made of */
    weftio_u32 shared;   /* from lane 0 to all */
    weftio_u32 count;    /* of lane 0's parts */
    weftio_u32 finished; /* lanes that came to an end */
    weftio_u32 trace[FLOW_TRACE];
    weftio_u32 cell[FLOW_LANES];
    weftio_u32 sum[FLOW_LANES];    /* of each lane */
    weftio_u32 stride[FLOW_LANES]; /* dealt out to the lanes */
};

#define FLOW_WORK(PART) (world->sum[weftio_lane()] = world->sum[weftio_lane()] * 31u + (PART) + x)

#define FLOW_LANE_0(PART)                                                                                              \
    do {                                                                                                               \
        if (weftio_lane() == 0) {                                                                                      \
            world->trace[world->count % FLOW_TRACE] = (PART) + x;                                                      \
            world->count += 1;                                                                                         \
        }                                                                                                              \
    } while (0)

/* The next state, told by lane 0. */
#define FLOW_NEXT(PART)                                                                                                \
    do {                                                                                                               \
        if (weftio_lane() == 0)                                                                                        \
            world->shared = x * 1664525u + (PART)*1013904223u;                                                         \
        weftio_block_barrier();                                                                                        \
        x = world->shared;                                                                                             \
        x ^= x >> 15;                                                                                                  \
        weftio_block_barrier();                                                                                        \
    } while (0)

#define FLOW_NEIGHBOR(PART)                                                                                            \
    do {                                                                                                               \
        world->cell[weftio_lane()] = x;                                                                                \
        weftio_block_barrier();                                                                                        \
        world->sum[weftio_lane()] += world->cell[(weftio_lane() + 1u) % weftio_block_lanes()] + (PART);                \
        weftio_block_barrier();                                                                                        \
    } while (0)

/* A loop that each lane leaves at another time. */
#define FLOW_STRIDE(PART)                                                                                              \
    do {                                                                                                               \
        weftio_block_barrier();                                                                                        \
        for (weftio_u32 at = weftio_lane(); at < FLOW_LANES; at += weftio_block_lanes())                               \
            world->stride[at] = world->stride[at] * 31u + (PART) + x;                                                  \
        weftio_block_barrier();                                                                                        \
    } while (0)

/*
 * `n` is the same constant for all lanes in front of lane 0's part and a barrier, and each lane's own behind them,
 * where a loop begins at once.
 */
#define FLOW_COUNT(PART)                                                                                               \
    do {                                                                                                               \
        weftio_u32 n = 0;                                                                                              \
        FLOW_LANE_0(PART);                                                                                             \
        weftio_block_barrier();                                                                                        \
        do                                                                                                             \
            ++n;                                                                                                       \
        while (n < weftio_lane() + 1u + (x & 3u));                                                                     \
        FLOW_WORK(n - weftio_lane());                                                                                  \
    } while (0)

#define FLOW_FINISH()                                                                                                  \
    do {                                                                                                               \
        world->sum[weftio_lane()] ^= x;                                                                                \
        weftio_fetch_add_u32(&world->finished, 1u);                                                                    \
    } while (0)
