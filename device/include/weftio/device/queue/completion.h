/**
 * The completion ring of a receive queue: the NIC writes, a kernel reads.
 *
 * Indices run freely and are masked only when memory is touched. The NIC produces completions, the kernel gives receive
 * slots back through the doorbell record; neither writes the other's words.
 */
#pragma once

#include "weftio/device/cqe.h"
#include "weftio/device/platform.h"

/** Completions in the order of their index: slot = index & mask, pass = index >> log_depth. */
struct weftio_dev_completion_ring {
    WEFTIO_GLOBAL struct weftio_cqe *entries;
    weftio_u32 mask;
    weftio_u32 log_depth;
};

WEFTIO_FN WEFTIO_GLOBAL struct weftio_cqe *
weftio_dev_completion_at(const WEFTIO_GLOBAL struct weftio_dev_completion_ring *ring, weftio_u32 index)
{
    return &ring->entries[index & ring->mask];
}

/** Whether completion `index` is there; if so the rest of it, and the packet, may be read. Never blocks. */
WEFTIO_FN weftio_u32 weftio_dev_completion_ready(const WEFTIO_GLOBAL struct weftio_dev_completion_ring *ring,
                                                 weftio_u32 index)
{
    /* Acquire, pairs with the NIC's release of the publication word: payload and bytes 0..59 are visible afterwards. */
    weftio_u32 publication = weftio_load_acquire_sys_u32(&weftio_dev_completion_at(ring, index)->publication);

    return weftio_cqe_is_published(publication, index >> ring->log_depth);
}

/**
 * Counts the completions that are there among `first + lane`, `first + lane + lanes`, ... below `first + limit`.
 *
 * The NIC publishes in order, so the sum over all lanes never exceeds the length of the published run from `first`.
 */
WEFTIO_FN weftio_u32 weftio_dev_completion_count(const WEFTIO_GLOBAL struct weftio_dev_completion_ring *ring,
                                                 weftio_u32 first, weftio_u32 limit, weftio_u32 lane, weftio_u32 lanes)
{
    weftio_u32 count = 0;

    for (weftio_u32 at = lane; at < limit && weftio_dev_completion_ready(ring, first + at); at += lanes)
        ++count;
    return count;
}

#define WEFTIO_DEV_STRIDE 8u           /* completions between two looks of weftio_dev_completion_scan */
#define WEFTIO_DEV_SINGLE (1u << 22)   /* one completion of the first seven, in its sums */
#define WEFTIO_DEV_FEWEST_SCANNING 32u /* lanes */

/**
 * As weftio_dev_completion_count, for a scope of 32 lanes or more, with an eighth of the looks: of the last of every
 * eight, because the NIC publishes in order, and of each of the first seven. Fewer reads cross the bus, and a NIC that
 * is a CPU finds more of the lines that it is about to write where it left them.
 *
 * @return a share of a sum over all lanes: of completions, in eights; where there is no eight, WEFTIO_DEV_SINGLE for
 *         each
 */
WEFTIO_FN weftio_u32 weftio_dev_completion_scan(const WEFTIO_GLOBAL struct weftio_dev_completion_ring *ring,
                                                weftio_u32 first, weftio_u32 limit, weftio_u32 lane, weftio_u32 lanes)
{
    const weftio_u32 singles = WEFTIO_DEV_STRIDE - 1, is_single = lane < singles;
    weftio_u32 at = is_single ? lane : (lane - singles + 1) * WEFTIO_DEV_STRIDE - 1;
    weftio_u32 step = is_single ? limit : (lanes - singles) * WEFTIO_DEV_STRIDE;
    weftio_u32 count = 0;

    for (; at < limit && weftio_dev_completion_ready(ring, first + at); at += step)
        count += is_single ? WEFTIO_DEV_SINGLE : WEFTIO_DEV_STRIDE;
    return count;
}

/** A share of a sum: with fewer lanes of every completion that is there, else as weftio_dev_completion_scan. */
WEFTIO_FN weftio_u32 weftio_dev_completion_look(const WEFTIO_GLOBAL struct weftio_dev_completion_ring *ring,
                                                weftio_u32 first, weftio_u32 limit, weftio_u32 lane, weftio_u32 lanes)
{
    if (lanes < WEFTIO_DEV_FEWEST_SCANNING)
        return weftio_dev_completion_count(ring, first, limit, lane, lanes);
    return weftio_dev_completion_scan(ring, first, limit, lane, lanes);
}

/** Tells the NIC how many receive entries have been posted in all (low 16 bits, big-endian). */
WEFTIO_FN void weftio_dev_post_receive(WEFTIO_GLOBAL weftio_u32 *dbrec, weftio_u32 posted)
{
    /* Release, pairs with the NIC's acquire of the record: every read of the slots given back happens before. */
    weftio_store_release_sys_u32(dbrec, weftio_swap32(posted & 0xffffu));
}
