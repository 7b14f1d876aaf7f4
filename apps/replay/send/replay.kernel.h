/* The kernel of weftio-replay: one source for C++, OpenCL C and CUDA. */
#pragma once

#include "weftio/device/eth_txq.h"

#define REPLAY_BATCH 64 /* records between two commits */
#define REPLAY_PATIENT                                                                                                 \
    0x100000u /* for weftio_relax, to sleep at once: the wait is a thousand times longer than a wake-up */

/* One frame: where its bytes are, and when it is sent. */
struct replay_record {
    weftio_u64 time;  /* value of the wait entry before the frame; 0: none */
    weftio_u32 place; /* of its bytes in the arena, in units of 64 bytes */
    weftio_u32 bytes;
    weftio_u32 entry; /* timed runs: free-running position of its first entry */
    weftio_u32 flags; /* of the send entry */
};

/* Shared by the host and the kernel; each side writes a cache line of its own. */
struct replay_feed {
    weftio_u64 produced; /* host: number of records published so far */
    weftio_u64 closed;   /* host: 1: no more records follow, 2: take no more records */
    weftio_u32 depth;    /* records in the ring, which untimed runs may repeat without the host */
    weftio_u32 timed;    /* 1: records have times and positions */
    weftio_u32 lkey_be;  /* key of the arena */
    weftio_u32 host_reserved[9];
    weftio_u64 running; /* kernel: 1 once it has started */
    weftio_u64 taken;   /* kernel: number of records enqueued, written at its end */
    weftio_u64 kernel_reserved[6];
};
WEFTIO_STATIC_ASSERT(sizeof(struct replay_record) == 24, "host and device share this layout");
WEFTIO_STATIC_ASSERT(sizeof(struct replay_feed) == 128, "host and device share this layout");

/* Consecutive records, and the number of entries that they need. */
struct replay_batch {
    weftio_u32 count;
    weftio_u32 entries;
    weftio_u32 position;
    weftio_u32 ended;
};

/*
 * Waits for room in the queue. Sleeps in a timed run, whose entries are queued many milliseconds ahead: a spinning
 * kernel would take a core that the host's threads or the engine could use.
 */
WEFTIO_FN weftio_s32 replay_wait_room(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq, weftio_u32 entries,
                                      weftio_u32 timed)
{
    const weftio_u64 one_look_ns = 1;
    weftio_s32 status;

    while ((status = weftio_dev_eth_txq_wait_room(txq, entries, timed ? one_look_ns : 0)) == WEFTIO_DEV_TIMEOUT)
        weftio_relax(REPLAY_PATIENT);
    return status;
}

/* Waits for records, and for room in the queue. One lane. */
WEFTIO_FN struct replay_batch replay_next_batch(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                                                const WEFTIO_GLOBAL struct replay_record* records,
                                                const WEFTIO_GLOBAL struct replay_feed* feed, weftio_u64 taken,
                                                weftio_u32 slot)
{
    struct replay_batch batch = {0, 0, 0, 0};
    weftio_u32 mask;

    for (weftio_u32 attempt = 0; !batch.count; ++attempt) {
        /* Loads `closed` before `produced`, so that no record published before closing is missed. */
        weftio_u64 closed = weftio_load_acquire_sys_u64(&feed->closed);
        weftio_u64 ready = weftio_load_acquire_sys_u64(&feed->produced) - taken;
        batch.ended = closed == 2 || (closed && !ready) || weftio_dev_eth_txq_aborted(txq);
        if (batch.ended)
            return batch;
        batch.count = weftio_min_u32(weftio_min_u32(REPLAY_BATCH, feed->depth - slot),
                                     ready > REPLAY_BATCH ? REPLAY_BATCH : (weftio_u32)ready);
        if (!batch.count)
            weftio_relax(feed->timed ? REPLAY_PATIENT : attempt);
    }
    weftio_dev_eth_txq_get_info(txq, &batch.position, &mask);
    batch.entries = batch.count;
    if (feed->timed) {
        const WEFTIO_GLOBAL struct replay_record* last = &records[slot + batch.count - 1];
        batch.entries = last->entry + (last->time ? 2 : 1) - records[slot].entry;
    }
    batch.ended = replay_wait_room(txq, batch.entries, feed->timed) != WEFTIO_DEV_OK;
    return batch;
}

/* Enqueues one record at `position`: a wait if it has a time, then the frame. */
WEFTIO_FN void replay_enqueue(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                              const WEFTIO_GLOBAL struct replay_record* record, weftio_u32 position,
                              WEFTIO_GLOBAL weftio_u8* arena, weftio_u32 lkey_be)
{
    struct weftio_dev_buf frame;

    frame.address = arena + (weftio_u64)record->place * 64;
    frame.bytes = record->bytes;
    frame.lkey_be = lkey_be;
    if (record->time)
        weftio_dev_eth_txq_wait_time_enqueue_weak(txq, record->time, position++, WEFTIO_DEV_SEND_NONE);
    weftio_dev_eth_txq_send_enqueue_weak(txq, frame, record->bytes, position, record->flags);
}

/* Turns records into entries until the host closes the ring. One block, whose lanes share each batch. */
WEFTIO_KERNEL void replay(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                          const WEFTIO_GLOBAL struct replay_record* records, WEFTIO_GLOBAL struct replay_feed* feed,
                          WEFTIO_GLOBAL weftio_u8* arena)
{
    WEFTIO_SHARED struct replay_batch batch;
    weftio_u64 taken = 0;
    weftio_u32 slot = 0;

    if (weftio_lane() == 0)
        weftio_store_release_sys_u64(&feed->running, 1);
    for (;;) {
        if (weftio_lane() == 0)
            batch = replay_next_batch(txq, records, feed, taken, slot);
        weftio_block_barrier();
        struct replay_batch mine = batch; /* a copy, since lane 0 may write the next batch meanwhile */
        if (mine.ended)
            break;
        for (weftio_u32 i = weftio_lane(); i < mine.count; i += weftio_block_lanes()) {
            const WEFTIO_GLOBAL struct replay_record* record = &records[slot + i];
            weftio_u32 ahead = feed->timed ? record->entry - records[slot].entry : i;
            replay_enqueue(txq, record, mine.position + ahead, arena, feed->lkey_be);
        }
        weftio_block_barrier();
        taken += mine.count;
        slot = slot + mine.count == feed->depth ? 0 : slot + mine.count;
        if (weftio_lane() == 0) {
            weftio_dev_eth_txq_commit_weak(txq, mine.entries);
            weftio_dev_eth_txq_push(txq);
        }
    }
    if (weftio_lane() == 0)
        weftio_store_release_sys_u64(&feed->taken, taken);
}
