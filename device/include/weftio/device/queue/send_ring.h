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
    WEFTIO_GLOBAL weftio_u32 *filled; /**< strong mode: one bit per block, 1 while it is filled and not committed */
    weftio_u32 reserved;              /**< next index to hand out */
    weftio_u32 asked;                 /**< `reserved` plus the claims that are being granted or refused at the moment */
    weftio_u32 completed;             /**< cached count of entries that are done; may lag behind the completion */
    weftio_u32 lock;                  /**< held during a strong commit, and while a push rings the doorbell */
};

/**
 * Number of entries that the NIC is done with in all. Never blocks; any lane.
 *
 * The completion has the low 16 bits, and `ready` supplies the upper bits: `ready` is at most 2^15 (the deepest ring)
 * ahead of the completion. If the lane is preempted between the two loads of `ready` while others commit 2^15 entries
 * or more, it retries.
 */
WEFTIO_FN weftio_u32 weftio_dev_send_completed(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring)
{
    for (;;) {
        weftio_u32 before = weftio_load_acquire_u32(&ring->ready);
        /*
         * Acquire, pairs with the NIC's release: an entry is overwritten, and its buffer used, only once the NIC is
         * done.
         */
        weftio_u32 last = weftio_cqe_wqe_counter(weftio_load_acquire_sys_u32(&ring->completion->publication));
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
 * Number of entries that can be reserved now. Never blocks; any lane. Reads the completion only if fewer than `wanted`
 * entries are known to be free.
 */
WEFTIO_FN weftio_u32 weftio_dev_send_room(WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 wanted)
{
    weftio_u32 completed = weftio_load_acquire_u32(&ring->completed);
    weftio_u32 room = ring->mask + 1 - (weftio_load_relaxed_u32(&ring->reserved) - completed);

    if (room >= wanted && room <= ring->mask + 1)
        return room;
    completed = weftio_dev_send_completed(ring);
    weftio_store_release_u32(&ring->completed, completed);
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
        completed = weftio_dev_send_completed(ring);
        room = (weftio_s32)(completed + depth - asked);
        if (room > 0)
            weftio_store_release_u32(&ring->completed, completed);
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

/**
 * Claims `count` consecutive entries, or none. Never blocks. Several lanes of several blocks may call at once; lanes of
 * a warp that call together claim with one atomic.
 *
 * @param[out] first  free-running index of the first entry
 * @return `count`, or 0 when fewer are free (the queue is then unchanged)
 */
WEFTIO_FN weftio_u32 weftio_dev_send_reserve(WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 count,
                                             weftio_u32 *first)
{
    struct weftio_peers peers =
        weftio_find_peers((weftio_u64)ring + count); /* a ring has more bytes than an entry has blocks */
    weftio_u32 start = 0, claimed = 0;

    if (peers.rank == 0)
        claimed = weftio_dev_send_claim(ring, count, peers.count, &start);
    claimed = weftio_of_first_peer(peers, claimed);
    *first = weftio_of_first_peer(peers, start) + peers.rank * count;
    return (peers.rank + 1) * count <= claimed ? count : 0;
}

/** Address of the first block of the entry at `index`. */
WEFTIO_FN WEFTIO_GLOBAL weftio_u32 *weftio_dev_send_block(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring,
                                                          weftio_u32 index)
{
    return ring->segments + (weftio_u64)(index & ring->mask) * (WEFTIO_WQE_BLOCK_BYTES / 4);
}

/** Writes segment `segment` of the entry at `index`; an entry may continue at the start of the ring. */
WEFTIO_FN void weftio_dev_send_segment(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 index,
                                       weftio_u32 segment, weftio_u32 a, weftio_u32 b, weftio_u32 c, weftio_u32 d)
{
    weftio_u32 at = (index * WEFTIO_WQE_BLOCK_SEGMENTS + segment) & (ring->mask * WEFTIO_WQE_BLOCK_SEGMENTS + 3);

    weftio_store_x4(ring->segments + (weftio_u64)at * 4, a, b, c, d);
}

/** Strong mode: marks the block at `index` as filled. Lanes of a warp that call together mark with one atomic. */
WEFTIO_FN void weftio_dev_send_mark(WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 index)
{
    WEFTIO_GLOBAL weftio_u32 *word = &ring->filled[(index & ring->mask) / 32];
    struct weftio_peers peers = weftio_find_peers((weftio_u64)word);
    weftio_u32 marks = weftio_or_of_peers(peers, 1u << index % 32);

    /* Release, pairs with the acquire in weftio_dev_send_scan: the entries are written before their marks. */
    if (peers.rank == 0)
        weftio_xor_release_u32(word, marks);
}

/**
 * Strong mode: marks blocks [index, index + blocks) as filled. The first block is marked last, so that no commit
 * publishes half an entry.
 */
WEFTIO_FN void weftio_dev_send_fill(WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 index,
                                    weftio_u32 blocks)
{
    for (weftio_u32 end = index + blocks; end != index; --end)
        weftio_dev_send_mark(ring, end - 1);
}

/** Clears the consecutive marks from `ready` on, within one word. Returns the index after the last of them. */
WEFTIO_FN weftio_u32 weftio_dev_send_take_bits(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 ready)
{
    WEFTIO_GLOBAL weftio_u32 *word = &ring->filled[(ready & ring->mask) / 32];
    weftio_u32 at = ready % 32, run = weftio_trailing_ones_u32(weftio_load_fenced_u32(word) >> at);

    if (run)
        weftio_xor_relaxed_u32(word, 0xffffffffu >> (32 - run) << at);
    return ready + run;
}

#define WEFTIO_DEV_LOOK_WORDS 16u /* words loaded at the same time: each load is a round trip to the memory of a GPU */

/** As weftio_dev_send_take_bits, for up to WEFTIO_DEV_LOOK_WORDS whole words. @pre `ready` is at the start of a word */
WEFTIO_FN weftio_u32 weftio_dev_send_take_words(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 ready)
{
    weftio_u32 marks[WEFTIO_DEV_LOOK_WORDS], first = (ready & ring->mask) / 32, last = ring->mask / 32;

    for (weftio_u32 i = 0; i < WEFTIO_DEV_LOOK_WORDS; ++i)
        marks[i] = weftio_load_fenced_u32(&ring->filled[(first + i) & last]);
    for (weftio_u32 i = 0; i < WEFTIO_DEV_LOOK_WORDS && i <= last && marks[i] == 0xffffffffu; ++i, ready += 32)
        weftio_store_relaxed_u32(&ring->filled[(first + i) & last], 0);
    return ready;
}

/**
 * Returns the index after the run of filled blocks that starts at `ready`, and clears their marks. One lane at a time.
 *
 * An entry may continue in the next word. A run that reaches the end of a word is therefore over only if a later load
 * of the next word shows its first block unfilled.
 */
WEFTIO_FN weftio_u32 weftio_dev_send_scan(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 ready)
{
    weftio_u32 before;

    do {
        before = ready;
        if (ready % 32 == 0)
            ready = weftio_dev_send_take_words(ring, ready);
        ready = weftio_dev_send_take_bits(ring, ready);
    } while (ready % 32 == 0 && ready != before);
    /* Acquire, pairs with the releases in weftio_dev_send_mark: what is committed has been written. */
    weftio_fence_acquire();
    return ready;
}

/**
 * Moves the doorbell record to `ready`: all entries below it are published, and the NIC may execute them from now on.
 */
WEFTIO_FN void weftio_dev_send_publish(WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 ready)
{
    weftio_store_relaxed_u32(&ring->ready, ready);
    /* Release, pairs with the NIC's acquire of the record: the entries are written first. */
    weftio_store_release_sys_u32(ring->dbrec, weftio_swap32(ready & 0xffffu));
}

/**
 * Rings the doorbell: the NIC reads the doorbell record. One lane at a time: an older value that overwrites a newer one
 * could equal what the NIC has seen already, and the NIC would not react.
 */
WEFTIO_FN void weftio_dev_send_doorbell(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring)
{
    weftio_u32 index_be = weftio_swap32((weftio_load_relaxed_u32(&ring->ready) & 0xffffu) << 8);

    weftio_store_doorbell_u64(ring->doorbell, (weftio_u64)weftio_swap32(ring->queue << 8) << 32 | index_be);
}
