/*
 * How kernels of the benchmark post an RDMA WRITE: into a queue pair that they own, or as a request to a CPU proxy,
 * which posts the same entry to a queue pair of the host. Kernels and the host include this file.
 */
#pragma once

#include "weftio/device/rdma.h"

#define INITIATED_PATIENCE_NS 20000000000ul /* timeout of a wait; only an error reaches it */

/* A WRITE. 16 bytes: a lane stores it at once. */
struct initiated_write {
    weftio_u32 remote_offset;
    weftio_u32 shape; /* bytes | queue << INITIATED_QUEUE_SHIFT | INITIATED_VALUE */
    weftio_u32 low;   /* offset of the bytes in local memory; or the value */
    weftio_u32 high;
};
WEFTIO_STATIC_ASSERT(sizeof(struct initiated_write) == 16, "a lane stores it at once");

#define INITIATED_MOST_BYTES 0x1fffffu
#define INITIATED_QUEUE_SHIFT 21
#define INITIATED_MOST_QUEUES 1024u
#define INITIATED_VALUE 0x80000000u /* 8 bytes travel in the entry */

/* The words of a ring to a proxy, in memory of the host: a line for each side that writes. */
struct initiated_words {
    weftio_u32 posted; /* requests so far; written by the kernel */
    weftio_u32 kernel_reserved[31];
    weftio_u32 done; /* requests whose WRITE is done (one queue), or that were taken (several); written by the proxy */
    weftio_u32 failed; /* a queue has failed: nothing more will be done */
    weftio_u32 proxy_reserved[30];
};
WEFTIO_STATIC_ASSERT(sizeof(struct initiated_words) == 256, "host and device share this layout");

/* Where a scope of lanes posts, in memory that the kernel reads fast. One scope owns it. */
struct initiated_way {
    WEFTIO_GLOBAL struct weftio_dev_rdma* queue; /* the kernel posts; 0: the proxy does */
    WEFTIO_GLOBAL struct initiated_words* words; /* of the ring to the proxy */
    WEFTIO_GLOBAL weftio_u32* requests;          /* 4 words each */
    weftio_u32 depth;                            /* of the queue, and of the ring to the proxy; a power of two */
    weftio_u32 number;                           /* of the queue, for the proxy */
    struct weftio_dev_remote remote;
    struct weftio_dev_buf here;
};

/* What the owner of a way remembers. */
struct initiated_place {
    weftio_u32 position; /* of the next WRITE */
    weftio_u32 done;     /* of the ring to the proxy: as last read */
};

WEFTIO_FN struct initiated_write initiated_write_of(weftio_u32 queue, weftio_u32 remote_offset, weftio_u32 bytes,
                                                    weftio_u64 local_offset)
{
    struct initiated_write write;

    write.remote_offset = remote_offset;
    write.shape = bytes | queue << INITIATED_QUEUE_SHIFT;
    write.low = (weftio_u32)local_offset;
    write.high = (weftio_u32)(local_offset >> 32);
    return write;
}
/* A WRITE of the 8 bytes of `value`, which travel in the entry. */
WEFTIO_FN struct initiated_write initiated_write_value(weftio_u32 queue, weftio_u32 remote_offset, weftio_u64 value)
{
    struct initiated_write write = initiated_write_of(queue, remote_offset, 8, value);

    write.shape |= INITIATED_VALUE;
    return write;
}

/* The request to the NIC: the same whether the kernel or the proxy makes it. */
WEFTIO_FN struct weftio_dev_rdma_request initiated_request(struct weftio_dev_remote remote, struct weftio_dev_buf here,
                                                           struct initiated_write write)
{
    const weftio_u64 rest = (weftio_u64)write.high << 32 | write.low;

    if (write.shape & INITIATED_VALUE)
        return weftio_dev_rdma_write_value_request(remote, write.remote_offset, rest);
    return weftio_dev_rdma_write_request(remote, write.remote_offset, here, rest, write.shape & INITIATED_MOST_BYTES);
}

/* Position of the first WRITE. */
WEFTIO_FN struct initiated_place initiated_begin(const WEFTIO_GLOBAL struct initiated_way* way)
{
    struct initiated_place place = {0, 0};
    weftio_u32 mask;

    if (way->queue) {
        weftio_dev_rdma_get_info(way->queue, &place.position, &mask);
        return place;
    }
    place.position = weftio_load_relaxed_u32(&way->words->posted);
    place.done = weftio_load_acquire_sys_u32(&way->words->done);
    return place;
}

/* Waits until at most `most` WRITEs before `place->position` are not done. One lane. As weftio_dev_rdma_wait_room(). */
WEFTIO_FN weftio_s32 initiated_wait(const WEFTIO_GLOBAL struct initiated_way* way,
                                    const WEFTIO_GLOBAL struct weftio_dev_clock* clock, struct initiated_place* place,
                                    weftio_u32 most)
{
    if (way->queue)
        return weftio_dev_rdma_wait_room(way->queue, way->depth - most, INITIATED_PATIENCE_NS);
    if (place->position - place->done <= most)
        return WEFTIO_DEV_OK;
    const weftio_u64 begin_ns = weftio_dev_clock_ns(clock);
    for (weftio_u32 attempt = 0;; ++attempt) {
        place->done = weftio_load_acquire_sys_u32(&way->words->done);
        if (place->position - place->done <= most)
            return WEFTIO_DEV_OK;
        if (weftio_load_relaxed_u32(&way->words->failed))
            return WEFTIO_DEV_QUEUE_ERROR;
        if (weftio_dev_clock_ns(clock) - begin_ns >= INITIATED_PATIENCE_NS)
            return WEFTIO_DEV_TIMEOUT;
        weftio_relax(attempt);
    }
}

/* Writes the entry or the request of `position`. Lanes of the scope, each at positions of its own. */
WEFTIO_FN weftio_s32 initiated_put(const WEFTIO_GLOBAL struct initiated_way* way, weftio_u32 position,
                                   struct initiated_write write)
{
    if (way->queue)
        return weftio_dev_rdma_enqueue_weak(way->queue, initiated_request(way->remote, way->here, write), position,
                                            WEFTIO_DEV_SEND_NONE);
    weftio_store_x4(way->requests + (position & (way->depth - 1)) * 4, write.remote_offset, write.shape, write.low,
                    write.high);
    return WEFTIO_DEV_OK;
}

/* Publishes the next `count`. One lane, behind a barrier. */
WEFTIO_FN weftio_s32 initiated_submit(const WEFTIO_GLOBAL struct initiated_way* way, struct initiated_place* place,
                                      weftio_u32 count)
{
    place->position += count;
    if (way->queue)
        return weftio_dev_rdma_commit_weak(way->queue, count);
    /* Release, pairs with the proxy's acquire: requests, and bytes that they name, are written before. */
    weftio_store_release_sys_u32(&way->words->posted, place->position);
    return WEFTIO_DEV_OK;
}
