/** State and statements of the generated programs (flow_programs.py). */
#pragma once

#include "weftio/device/platform.h"

#define FLOW_TRACE 1024u
#define FLOW_LANES 64u

struct flow_world {
    weftio_u32 state;    /* the conditions depend on it */
    weftio_u32 shared;   /* passed from lane 0 to all lanes */
    weftio_u32 count;    /* number of parts that lane 0 has executed */
    weftio_u32 finished; /* number of lanes that have ended */
    weftio_u32 trace[FLOW_TRACE];
    weftio_u32 cell[FLOW_LANES];
    weftio_u32 sum[FLOW_LANES];    /* one for each lane */
    weftio_u32 stride[FLOW_LANES]; /* distributed over the lanes */
};

#define FLOW_WORK(PART) (world->sum[weftio_lane()] = world->sum[weftio_lane()] * 31u + (PART) + x)

#define FLOW_LANE_0(PART)                                                                                              \
    do {                                                                                                               \
        if (weftio_lane() == 0) {                                                                                      \
            world->trace[world->count % FLOW_TRACE] = (PART) + x;                                                      \
            world->count += 1;                                                                                         \
        }                                                                                                              \
    } while (0)

/* Lane 0 computes the next state for all lanes. */
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

/* A loop with another number of iterations for each lane. */
#define FLOW_STRIDE(PART)                                                                                              \
    do {                                                                                                               \
        weftio_block_barrier();                                                                                        \
        for (weftio_u32 at = weftio_lane(); at < FLOW_LANES; at += weftio_block_lanes())                               \
            world->stride[at] = world->stride[at] * 31u + (PART) + x;                                                  \
        weftio_block_barrier();                                                                                        \
    } while (0)

/*
 * `n` is the same constant for all lanes until after lane 0's part and a barrier. Right after the barrier, a loop makes
 * it different in each lane.
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
