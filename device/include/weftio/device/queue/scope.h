/**
 * The scope that uses a queue together, a thread, a warp or a block; and the call that runs a NIC without a thread of
 * its own (inline mode).
 */
#pragma once

#include "weftio/device/platform.h"

enum weftio_dev_scope { WEFTIO_DEV_SCOPE_THREAD, WEFTIO_DEV_SCOPE_WARP, WEFTIO_DEV_SCOPE_BLOCK };

WEFTIO_FN weftio_u32 weftio_dev_scope_sum(enum weftio_dev_scope scope, weftio_u32 value,
                                          WEFTIO_GLOBAL weftio_u32 *scratch)
{
    if (scope == WEFTIO_DEV_SCOPE_BLOCK)
        return weftio_block_sum_u32(value, scratch);
    return scope == WEFTIO_DEV_SCOPE_WARP ? weftio_warp_sum_u32(value) : value;
}
WEFTIO_FN void weftio_dev_scope_barrier(enum weftio_dev_scope scope)
{
    if (scope == WEFTIO_DEV_SCOPE_BLOCK)
        weftio_block_barrier();
    else if (scope == WEFTIO_DEV_SCOPE_WARP)
        weftio_warp_barrier();
}

/** This lane in its scope. */
WEFTIO_FN weftio_u32 weftio_dev_scope_lane(enum weftio_dev_scope scope)
{
    if (scope == WEFTIO_DEV_SCOPE_BLOCK)
        return weftio_lane();
    return scope == WEFTIO_DEV_SCOPE_WARP ? weftio_warp_lane() : 0;
}
/** The value of lane 0, returned to every lane. Also a barrier. */
WEFTIO_FN weftio_u64 weftio_dev_scope_first(enum weftio_dev_scope scope, weftio_u64 value,
                                            WEFTIO_GLOBAL weftio_u32 *scratch)
{
    if (scope == WEFTIO_DEV_SCOPE_BLOCK)
        return weftio_block_first_u64(value, scratch);
    return scope == WEFTIO_DEV_SCOPE_WARP ? weftio_warp_first_u64(value) : value;
}

/** In inline mode the calling lane runs the engine itself; otherwise this does nothing. */
WEFTIO_FN void weftio_dev_nic_turn(weftio_u64 turn, weftio_u64 context)
{
#if defined(__cplusplus) && !defined(__CUDACC__)
    if (turn)
        reinterpret_cast<void (*)(void *)>(turn)(reinterpret_cast<void *>(context));
#else
    (void)turn;
    (void)context;
#endif
}
