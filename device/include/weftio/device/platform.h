/**
 * The platform list: all atomics, fences, address spaces and functions for the shape of a launch.
 *
 * Each platform header defines the same list, in the same order. All other headers in `device/` use a C99 subset and
 * this list, so that the same source compiles as C++20, CUDA C++ and OpenCL C 3.0.
 *
 *   1. types          weftio_u8 .. weftio_u64, WEFTIO_FN, WEFTIO_FN_APART, WEFTIO_KERNEL, WEFTIO_GLOBAL,
 *                     WEFTIO_SHARED, WEFTIO_STATIC_ASSERT
 *   2. loads          weftio_load_relaxed_u32, weftio_load_constant_{u32,u64}, weftio_load_quiet_u32,
 *                     weftio_load_acquire_u32, weftio_load_acquire_sys_{u32,u64}, weftio_load_x4
 *   3. stores         weftio_store_relaxed_u32, weftio_store_release_u32, weftio_store_release_sys_{u32,u64},
 *                     weftio_store_fenced_sys_u32, weftio_store_x4, weftio_store_doorbell_u64
 *   4. read-modify    weftio_fetch_add_u32, weftio_fetch_add_relaxed_u32, weftio_fetch_add_acquire_u32,
 *                     weftio_compare_exchange_acquire_u32
 *   5. fence          weftio_load_fenced_u32, several times, then one weftio_store_fenced_sys_u32: acquires several
 *                     words, and a GPU waits only once; WEFTIO_LOADS_AT_ONCE, how many such loads it has under way at a
 *                     time
 *   6. bits           weftio_swap16, weftio_swap32, weftio_swap64 (big-endian <-> host; every supported host is
 *                     little-endian)
 *   7. identity       weftio_lane, weftio_block_lanes, weftio_block, weftio_blocks, weftio_warp_lane, weftio_warp_lanes
 *   8. collectives    weftio_block_barrier, weftio_warp_barrier, weftio_block_sum_u32, weftio_warp_sum_u32,
 *                     weftio_block_first_u64, weftio_warp_first_u64; struct weftio_peers, weftio_find_peers,
 *                     weftio_of_first_peer, weftio_first_peers, weftio_join_peers
 *   9. waiting        weftio_relax, weftio_timer_ns (where WEFTIO_HAS_TIMER is 1); WEFTIO_HOST_IS_FAR is 1 where memory
 *                     of the host is behind a bus
 *
 * `_sys` functions are ordered against every agent that can access the memory, the NIC included. Functions without
 * `_sys` are ordered against lanes of the same device only; a GPU then does not wait for its writes across the bus.
 * `relaxed` stores and loads are atomic (never torn) and order nothing.
 */
#pragma once

#if defined(__OPENCL_C_VERSION__)
#include "weftio/device/platform/opencl.h"
#elif defined(__CUDA_ARCH__) || defined(__CUDACC__)
#include "weftio/device/platform/cuda.h"
#else
#include "weftio/device/platform/cpu.h"
#endif

/**
 * Return values of device functions. Negative values are errors; the queue is then unchanged unless the comment of the
 * function says otherwise.
 */
enum weftio_dev_status {
    WEFTIO_DEV_OK = 0,
    WEFTIO_DEV_ABORTED = -1,          /**< the host asked the kernel to end */
    WEFTIO_DEV_NOT_FOUND = -2,        /**< no such completion, item or packet, or not yet */
    WEFTIO_DEV_FULL = -3,             /**< no position of the ring is free */
    WEFTIO_DEV_OUT_OF_ORDER = -4,     /**< `first` is not the oldest entry still held */
    WEFTIO_DEV_INVALID_ARGUMENT = -5, /**< a count, length or position outside the ring; or a wrong handle (handle.h) */
    WEFTIO_DEV_TIMEOUT = -6,          /**< the timeout passed first */
    WEFTIO_DEV_QUEUE_ERROR = -7       /**< the queue is in the error state; the host must reset it */
};

/** Smaller of two. */
WEFTIO_FN weftio_u32 weftio_min_u32(weftio_u32 a, weftio_u32 b)
{
    return a < b ? a : b;
}
