/**
 * The ring of a send queue: a kernel writes entries, the NIC executes them.
 *
 * Indices run freely and are masked only when memory is touched.
 */
#pragma once

#include "weftio/device/cqe.h"
#include "weftio/device/platform.h"
#include "weftio/device/wqe.h"

/**
 * The send ring: entries from the kernel to the NIC.
 *
 * reserved >= ready >= completed. A kernel *reserves* entries, fills them, *commits* them (moves `ready` and the
 * doorbell record; the NIC may then execute them) and *pushes* (rings the doorbell, which wakes a sleeping NIC). The
 * NIC reports through a collapsed completion queue: a single completion that always names the last entry done, and
 * covers all entries before it.
 *
 * Layout: a weak enqueue reads only the first 24 bytes, which share a 32-byte sector of a GPU with the words before
 * them in a handle. The words that claims and pushes write come last, in another cache line than the words that every
 * lane reads.
 */
struct weftio_dev_send_ring {
    WEFTIO_GLOBAL weftio_u32 *segments; /**< depth x 4 segments of 4 words */
    weftio_u32 mask;
    weftio_u32 queue;                   /**< number of the queue at its NIC */
    weftio_u32 checksums;               /**< WEFTIO_ETH_*_CHECKSUM, added to the flags of every entry of a frame */
    weftio_u32 ready;                   /**< next index to commit */
    WEFTIO_GLOBAL weftio_u32 *dbrec;    /**< send doorbell record: ready, low 16 bits, big-endian */
    WEFTIO_GLOBAL weftio_u64 *doorbell; /**< 8 bytes in the form of a control segment's first half */
    const WEFTIO_GLOBAL struct weftio_cqe *completion; /**< the collapsed completion */
    WEFTIO_GLOBAL weftio_u32 *filled; /**< strong mode: one word per block: how many filled ones begin there, or 0 */
    weftio_u32 reserved;              /**< next index to hand out */
    weftio_u32 asked;                 /**< `reserved` plus the claims that are being granted or refused at the moment */
    weftio_u32 completed;             /**< cached count of entries that are done; may lag behind the completion */
    weftio_u32 commits;               /**< strong commits under way; the first of them publishes for all (send.h) */
    weftio_u32 refreshing;            /**< where the host is far: begins and ends of loads of the completion */
    weftio_u32 needs_flush;           /**< queue pairs: 1 or 0, what weftio_dev_rdma_needs_flush() returns; constant */
};

/**
 * What does not change while a ring lives, by value. Loaded at once and early: one load after the other costs a GPU a
 * round trip each behind a fence, which empties its cache.
 */
struct weftio_dev_send_parts {
    WEFTIO_GLOBAL weftio_u32 *segments;
    WEFTIO_GLOBAL weftio_u32 *dbrec;
    WEFTIO_GLOBAL weftio_u64 *doorbell;
    WEFTIO_GLOBAL weftio_u32 *filled;
    weftio_u32 mask;
    weftio_u32 queue;
    weftio_u32 checksums;
};
WEFTIO_FN struct weftio_dev_send_parts weftio_dev_send_parts_of(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring)
{
    struct weftio_dev_send_parts parts;

    parts.segments = (WEFTIO_GLOBAL weftio_u32 *)weftio_load_constant_u64(&ring->segments);
    parts.dbrec = (WEFTIO_GLOBAL weftio_u32 *)weftio_load_constant_u64(&ring->dbrec);
    parts.doorbell = (WEFTIO_GLOBAL weftio_u64 *)weftio_load_constant_u64(&ring->doorbell);
    parts.filled = (WEFTIO_GLOBAL weftio_u32 *)weftio_load_constant_u64(&ring->filled);
    parts.mask = weftio_load_constant_u32(&ring->mask);
    parts.queue = weftio_load_constant_u32(&ring->queue);
    parts.checksums = weftio_load_constant_u32(&ring->checksums);
    return parts;
}

/**
 * Number of entries that the NIC is done with in all. Never blocks; any lane.
 *
 * The completion has the low 16 bits, and `ready` supplies the upper bits: `ready` is at most 2^15 (the deepest ring)
 * ahead of the completion. If the lane is preempted between the two loads of `ready` while others commit 2^15 entries
 * or more, it retries.
 */
WEFTIO_FN weftio_u32 weftio_dev_send_completed(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring)
{
    const WEFTIO_GLOBAL weftio_u32 *publication = &ring->completion->publication;

    for (;;) {
        weftio_u32 before = weftio_load_acquire_u32(&ring->ready);
        /*
         * Acquire, pairs with the NIC's release: an entry is overwritten, and its buffer used, only once the NIC is
         * done.
         */
        weftio_u32 last = weftio_cqe_wqe_counter(weftio_load_acquire_sys_u32(publication));
        weftio_u32 ready = weftio_load_relaxed_u32(&ring->ready);

        if (ready - before < 0x8000u)
            return ready - ((ready - (last + 1)) & 0xffffu);
    }
}

/** Whether the NIC has moved the queue to the error state. Never blocks; any lane. */
WEFTIO_FN weftio_u32 weftio_dev_send_failed(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring)
{
    weftio_u32 publication = weftio_load_acquire_sys_u32(&ring->completion->publication);

    return weftio_cqe_opcode(publication) == WEFTIO_CQE_OPCODE_REQUESTER_ERROR;
}

/**
 * weftio_dev_send_completed, kept as `completed` for others. `known` is what `completed` was.
 *
 * Where the host is far, one lane at a time reads the completion, and the others wait for what it finds: loads of many
 * lanes over a bus wait for each other. `refreshing` counts begins and ends of those loads, and is odd during one. A
 * lane takes what was loaded after its call, not what was on its way before: else a ring would seem full that is not.
 */
WEFTIO_FN weftio_u32 weftio_dev_send_refresh(WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 known)
{
    weftio_u32 completed;

#if WEFTIO_HOST_IS_FAR
    weftio_u32 now = weftio_load_acquire_u32(&ring->refreshing);
    const weftio_u32 end = (now + 3) & ~1u; /* of a load that begins from here on */

    while ((now & 1) || weftio_compare_exchange_acquire_u32(&ring->refreshing, now, now + 1) != now) {
        now = weftio_load_acquire_u32(&ring->refreshing);
        if (now - end < 0x80000000u)
            return weftio_load_acquire_u32(&ring->completed);
    }
#endif
    completed = weftio_dev_send_completed(ring);
    if (completed != known && weftio_load_relaxed_u32(&ring->reserved) - completed <= ring->mask + 1)
        weftio_store_release_u32(&ring->completed, completed);
#if WEFTIO_HOST_IS_FAR
    weftio_store_release_u32(&ring->refreshing, now + 2);
#endif
    return completed;
}

/**
 * Number of entries that can be reserved now. Never blocks; any lane. Reads the completion only if fewer than `wanted`
 * entries are known to be free.
 */
WEFTIO_FN weftio_u32 weftio_dev_send_room(WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 wanted)
{
    weftio_u32 reserved = weftio_load_relaxed_u32(&ring->reserved); /* first: nothing waits for it */
    weftio_u32 completed = weftio_load_acquire_u32(&ring->completed);
    weftio_u32 room = ring->mask + 1 - (reserved - completed);

    if (room >= wanted && room <= ring->mask + 1)
        return room;
    completed = weftio_dev_send_refresh(ring, completed);
    room = ring->mask + 1 - (weftio_load_relaxed_u32(&ring->reserved) - completed);
    return room <= ring->mask + 1 ? room : 0; /* a completion that names no entry of the ring frees nothing */
}

/**
 * Claims a multiple of `count` consecutive entries: `count * times` if that many are free, fewer if not, or none.
 * Returns how many; the first is `*first`. Never blocks.
 *
 * There is no compare-and-swap loop: `asked` decides whether a claim is granted, and `reserved` which entries it gets.
 * A refused claim is subtracted from `asked` afterwards, so a concurrent claim may be refused although entries are
 * free.
 */
WEFTIO_FN weftio_u32 weftio_dev_send_claim(WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 count,
                                           weftio_u32 times, weftio_u32 *first)
{
    weftio_u32 depth = ring->mask + 1, wanted = count * times;
    weftio_u32 asked = weftio_fetch_add_relaxed_u32(&ring->asked, wanted);
    weftio_u32 completed = weftio_load_acquire_u32(&ring->completed);
    weftio_s32 room = (weftio_s32)(completed + depth - asked);

    if (room < (weftio_s32)wanted) {
        completed = weftio_dev_send_refresh(ring, completed);
        room = (weftio_s32)(completed + depth - asked);
    }
    weftio_u32 claimed = room > 0 ? weftio_min_u32((weftio_u32)room, wanted) / count * count : 0;
    if (claimed != wanted)
        weftio_fetch_add_relaxed_u32(&ring->asked, claimed - wanted);
    if (!claimed)
        return 0;
    *first = weftio_fetch_add_relaxed_u32(&ring->reserved, claimed);
    /*
     * The entries may be those that a concurrent claim found free by a later completion: acquire that completion here
     * too.
     */
    if (*first + claimed - completed > depth)
        weftio_dev_send_completed(ring);
    return claimed;
}

/** Consecutive entries that one lane has claimed, and the lanes of its warp whose entries lie beside them. */
struct weftio_dev_send_range {
    weftio_u32 first; /**< free-running index */
    weftio_u32 count;
    struct weftio_peers group; /**< the entries of rank 0 are the first ones of the group */
};

/**
 * Claims `count` consecutive entries, or none. Never blocks. Several lanes of several blocks may call at once; lanes of
 * a warp that call together claim with one atomic. Those that get entries then all call weftio_dev_send_fill.
 *
 * @return `count`, or 0 when fewer are free (the queue is then unchanged)
 */
WEFTIO_FN weftio_u32 weftio_dev_send_reserve(WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 count,
                                             struct weftio_dev_send_range *claim)
{
    struct weftio_peers peers =
        weftio_find_peers((weftio_u64)ring + count); /* a ring has more bytes than an entry has blocks */
    weftio_u32 start = 0, claimed = 0;

    if (peers.rank == 0)
        claimed = weftio_dev_send_claim(ring, count, peers.count, &start);
    claimed = weftio_of_first_peer(peers, claimed);
    claim->first = weftio_of_first_peer(peers, start) + peers.rank * count;
    claim->count = count;
    claim->group = weftio_first_peers(peers, claimed / count);
    return (peers.rank + 1) * count <= claimed ? count : 0;
}

/** Address of the first block of the entry at `index`. */
WEFTIO_FN WEFTIO_GLOBAL weftio_u32 *weftio_dev_send_block(struct weftio_dev_send_parts ring, weftio_u32 index)
{
    return ring.segments + (weftio_u64)(index & ring.mask) * (WEFTIO_WQE_BLOCK_BYTES / 4);
}

/** Writes segment `segment` of the entry at `index`; an entry may continue at the start of the ring. */
WEFTIO_FN void weftio_dev_send_segment(struct weftio_dev_send_parts ring, weftio_u32 index, weftio_u32 segment,
                                       weftio_u32 a, weftio_u32 b, weftio_u32 c, weftio_u32 d)
{
    weftio_u32 at = (index * WEFTIO_WQE_BLOCK_SEGMENTS + segment) & (ring.mask * WEFTIO_WQE_BLOCK_SEGMENTS + 3);

    weftio_store_x4(ring.segments + (weftio_u64)at * 4, a, b, c, d);
}

/** Strong mode: marks the claimed entries as filled. Lanes of a group mark with one store. */
WEFTIO_FN void weftio_dev_send_fill(struct weftio_dev_send_parts ring, struct weftio_dev_send_range claim)
{
    weftio_join_peers(claim.group);
    /* Release, pairs with the acquire in weftio_dev_send_scan: the entries are written before their mark. */
    if (claim.group.rank == 0)
        weftio_store_release_u32(&ring.filled[claim.first & ring.mask], claim.group.count * claim.count);
}

/**
 * Returns the index after the filled blocks that start at `ready` without a gap, and clears their marks. One lane at a
 * time; weftio_dev_send_publish_at orders what was seen here.
 *
 * A load is a round trip to the memory of a GPU, so several marks are loaded at a time: where they lie if each counts
 * as many blocks as the one before, or at first as a warp has lanes. Marks behind one that does not are loaded anew.
 */
WEFTIO_FN weftio_u32 weftio_dev_send_scan(struct weftio_dev_send_parts ring, weftio_u32 ready)
{
    weftio_u32 marks[WEFTIO_LOADS_AT_ONCE], run = WEFTIO_WARP_LANES, mark = run;

    while (mark) {
        for (weftio_u32 i = 0; i < WEFTIO_LOADS_AT_ONCE; ++i)
            marks[i] = weftio_load_fenced_u32(&ring.filled[(ready + i * run) & ring.mask]);
        for (weftio_u32 i = 0; i < WEFTIO_LOADS_AT_ONCE && i * run <= ring.mask && (mark = marks[i]) != 0; ++i) {
            weftio_store_relaxed_u32(&ring.filled[ready & ring.mask], 0);
            ready += mark;
            if (mark != run)
                break;
        }
        run = mark;
    }
    return ready;
}

/**
 * Moves the doorbell record to `ready`: all entries below it are published, and the NIC may execute them from now on.
 */
WEFTIO_FN void weftio_dev_send_publish_at(WEFTIO_GLOBAL struct weftio_dev_send_ring *ring,
                                          WEFTIO_GLOBAL weftio_u32 *dbrec, weftio_u32 ready)
{
    weftio_store_relaxed_u32(&ring->ready, ready);
    /*
     * Acquire, pairs with the releases of the marks in a scan. Release, pairs with the NIC's acquire of the record: the
     * entries are written first.
     */
    weftio_store_fenced_sys_u32(dbrec, weftio_swap32(ready & 0xffffu));
}

/** The same, with a load of where the record is. */
WEFTIO_FN void weftio_dev_send_publish(WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 ready)
{
    weftio_dev_send_publish_at(ring, ring->dbrec, ready);
}

/**
 * Rings the doorbell: the NIC reads the doorbell record. Any lane, several at once: a NIC reacts to each ring and takes
 * from it only that the record has moved.
 */
WEFTIO_FN void weftio_dev_send_doorbell_at(struct weftio_dev_send_parts ring, weftio_u32 ready)
{
    weftio_u32 index_be = weftio_swap32((ready & 0xffffu) << 8);

    weftio_store_doorbell_u64(ring.doorbell, (weftio_u64)weftio_swap32(ring.queue << 8) << 32 | index_be);
}

/** The same, for what has been committed. */
WEFTIO_FN void weftio_dev_send_doorbell(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring)
{
    weftio_dev_send_doorbell_at(weftio_dev_send_parts_of(ring), weftio_load_relaxed_u32(&ring->ready));
}
