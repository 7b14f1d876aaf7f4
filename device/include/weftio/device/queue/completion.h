/**
 * The completion ring of a receive queue: the NIC writes it, a kernel reads it.
 *
 * Indices run freely and are masked only when memory is touched. The NIC produces completions; the kernel returns
 * receive slots through the doorbell record. Neither writes the other's words.
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

/**
 * Whether completion `index` has been published. If so, the rest of it may be read, and the bytes of its packet or
 * message (docs/gpu.md, "In which order a NIC's writes are seen"). Never blocks.
 *
 * - Bytes in pinned memory (memory_kind::cpu_device): at once.
 * - Bytes in memory of this device (memory_kind::device): at once, or behind a flush where
 *   weftio_dev_rdma_needs_flush() returns 1.
 * - Bytes in memory of another GPU: at once if an engine of Weftio wrote them, else behind a flush there.
 */
WEFTIO_FN weftio_u32 weftio_dev_completion_ready(const WEFTIO_GLOBAL struct weftio_dev_completion_ring *ring,
                                                 weftio_u32 index)
{
    /* Acquire, pairs with the NIC's release of the publication word: payload and bytes 0..59 are visible afterwards. */
    weftio_u32 publication = weftio_load_acquire_sys_u32(&weftio_dev_completion_at(ring, index)->publication);

    return weftio_cqe_is_published(publication, index >> ring->log_depth);
}

/**
 * Counts the published completions among `first + lane`, `first + lane + lanes`, ... below `first + limit`. Never
 * blocks.
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

#define WEFTIO_DEV_STRIDE 8u           /* completions per load of weftio_dev_completion_scan */
#define WEFTIO_DEV_FEWEST_SCANNING 32u /* fewest lanes of a scope that uses weftio_dev_completion_scan */

/** Why a receive ends before it has enough packets. */
#define WEFTIO_DEV_STOP_TIMEOUT 1u
#define WEFTIO_DEV_STOP_ABORT 2u

/**
 * What one round of a receive call has found, by one lane in its share of the completions or by the whole scope.
 *
 * With fewer than WEFTIO_DEV_FEWEST_SCANNING lanes, `packets` counts all packets that have arrived. With that many or
 * more, it counts whole groups of WEFTIO_DEV_STRIDE packets, and up to 7 more packets may have arrived. `singles` then
 * counts the first 7 packets; it is used only when `packets` is 0.
 */
struct weftio_dev_round {
    weftio_u32 packets; /**< at most 2^16, the deepest ring */
    weftio_u32 singles; /**< at most 7 */
    weftio_u32 stop;    /**< one of WEFTIO_DEV_STOP_* or 0; lane 0 alone sets it */
};

/*
 * A round in 32 bits: the sum of the lanes' rounds is the round of the scope, and takes one reduction. No field carries
 * into the next: packets in bits 0..19, stop in bits 20..21, singles in bits 22..31.
 */
#define WEFTIO_DEV_ROUND_STOP_SHIFT 20u
#define WEFTIO_DEV_ROUND_SINGLES_SHIFT 22u

WEFTIO_FN weftio_u32 weftio_dev_round_pack(struct weftio_dev_round round)
{
    return round.packets | round.stop << WEFTIO_DEV_ROUND_STOP_SHIFT | round.singles << WEFTIO_DEV_ROUND_SINGLES_SHIFT;
}
WEFTIO_FN struct weftio_dev_round weftio_dev_round_unpack(weftio_u32 sum)
{
    struct weftio_dev_round round;

    round.packets = sum & ((1u << WEFTIO_DEV_ROUND_STOP_SHIFT) - 1);
    round.singles = sum >> WEFTIO_DEV_ROUND_SINGLES_SHIFT;
    round.stop = sum >> WEFTIO_DEV_ROUND_STOP_SHIFT & (WEFTIO_DEV_STOP_TIMEOUT | WEFTIO_DEV_STOP_ABORT);
    return round;
}

/**
 * Number of packets that a round of the whole scope has found. `singles` lie within the first group of eight, so they
 * are not added.
 */
WEFTIO_FN weftio_u32 weftio_dev_round_found(struct weftio_dev_round round)
{
    return round.packets ? round.packets : round.singles;
}

/**
 * As weftio_dev_completion_count, for a scope of WEFTIO_DEV_FEWEST_SCANNING lanes or more, with about an eighth of the
 * loads: it loads the last completion of each group of eight (the NIC publishes in order), and each of the first seven.
 * Fewer loads cross the bus, and fewer cache lines that a software NIC is about to write are taken away from its CPU.
 *
 * One loop serves both kinds of lanes, so that the lanes of a warp load together.
 */
WEFTIO_FN struct weftio_dev_round
weftio_dev_completion_scan(const WEFTIO_GLOBAL struct weftio_dev_completion_ring *ring, weftio_u32 first,
                           weftio_u32 limit, weftio_u32 lane, weftio_u32 lanes)
{
    const weftio_u32 singles = WEFTIO_DEV_STRIDE - 1, is_single = lane < singles;
    weftio_u32 at = is_single ? lane : (lane - singles + 1) * WEFTIO_DEV_STRIDE - 1;
    weftio_u32 step = is_single ? limit : (lanes - singles) * WEFTIO_DEV_STRIDE;
    weftio_u32 seen = 0;
    struct weftio_dev_round round = {0, 0, 0};

    for (; at < limit && weftio_dev_completion_ready(ring, first + at); at += step)
        ++seen;
    round.packets = is_single ? 0 : seen * WEFTIO_DEV_STRIDE;
    round.singles = is_single ? seen : 0;
    return round;
}

/** One lane's share of a round: counts each completion with few lanes, else as weftio_dev_completion_scan. */
WEFTIO_FN struct weftio_dev_round
weftio_dev_completion_look(const WEFTIO_GLOBAL struct weftio_dev_completion_ring *ring, weftio_u32 first,
                           weftio_u32 limit, weftio_u32 lane, weftio_u32 lanes)
{
    struct weftio_dev_round round = {0, 0, 0};

    if (lanes >= WEFTIO_DEV_FEWEST_SCANNING)
        return weftio_dev_completion_scan(ring, first, limit, lane, lanes);
    round.packets = weftio_dev_completion_count(ring, first, limit, lane, lanes);
    return round;
}

/** Writes the doorbell record of a receive ring: the number of entries posted in all (low 16 bits, big-endian). */
WEFTIO_FN void weftio_dev_post_receive(WEFTIO_GLOBAL weftio_u32 *dbrec, weftio_u32 posted)
{
    /* Release, pairs with the NIC's acquire of the record: every read of the returned slots happens before. */
    weftio_store_release_sys_u32(dbrec, weftio_swap32(posted & 0xffffu));
}
