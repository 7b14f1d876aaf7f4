/**
 * RDMA inside a kernel. CUDA, and C++20 for CPU kernels.
 *
 * Strong functions find a free position themselves; any threads of one block may call them at once. Weak functions are
 * given the position by the caller. A connection, and the receive queue, are each used in one of the two modes. The
 * index of a connection is 0 unless there are several. All functions return DOCA_SUCCESS, or
 *
 * - DOCA_ERROR_INVALID_VALUE  a pointer is NULL, there is no such connection, local and remote buffers are mixed up, or
 *                             the bytes reach beyond a buffer or are more than 2^31
 * - DOCA_ERROR_FULL           entries or receives fill the queue that have to be committed, or waited for, first
 * - DOCA_ERROR_IO_FAILED      the connection has failed: the log tells why
 * - DOCA_ERROR_SHUTDOWN       Weftio has stopped the queue
 */
#pragma once

#include "doca_gpunetio_dev_queue.cuh"
#include "weftio/device/rdma.h"

/** The receive queue of all connections. */
struct doca_gpu_dev_rdma_r {
    struct weftio_dev_rdma_recv *queue;
};

/** Of Weftio: one connection. */
struct weftio_doca_connection {
    struct weftio_dev_rdma *queue; /**< 0: not connected */
    weftio_u32 committed; /**< calls of commit that had entries */
    weftio_u32 waited;    /**< those of them that doca_gpu_dev_rdma_wait_all() has counted */
};

/** Made by doca_ctx_start() of an RDMA context. */
struct doca_gpu_dev_rdma {
    struct doca_gpu_dev_rdma_r receives;
    struct weftio_doca_connection *const *connections;
    weftio_u64 count;
};

enum doca_gpu_dev_rdma_write_flags {
    DOCA_GPU_RDMA_WRITE_FLAG_NONE = 0,
    DOCA_GPU_RDMA_WRITE_FLAG_IMM = 1 /**< completes a receive of the peer, which gets the immediate */
};
enum doca_gpu_dev_rdma_send_flags {
    DOCA_GPU_RDMA_SEND_FLAG_NONE = 0,
    DOCA_GPU_RDMA_SEND_FLAG_IMM = 1 /**< the receive of the peer gets the immediate too */
};
enum doca_gpu_dev_rdma_recv_wait_flags {
    DOCA_GPU_RDMA_RECV_WAIT_FLAG_NB = 0, /**< takes what has arrived */
    DOCA_GPU_RDMA_RECV_WAIT_FLAG_B = 1   /**< waits until all committed receives are complete */
};

/** What a receive without an immediate reports. */
#define WEFTIO_DOCA_NO_IMMEDIATE 0xffffffffu

/* Of Weftio: the requests. One that is refused has no segments. */

/** The connection; 0 if there is none with this index, or it is not connected. */
WEFTIO_FN struct weftio_doca_connection *weftio_doca_rdma_at(const struct doca_gpu_dev_rdma *rdma, weftio_u32 index)
{
    struct weftio_doca_connection *connection = rdma && index < rdma->count ? rdma->connections[index] : 0;

    return connection && connection->queue ? connection : 0;
}

/** Whether bytes of one message lie in a local buffer; 0 bytes need none. */
WEFTIO_FN weftio_u32 weftio_doca_rdma_is_local(const struct doca_gpu_buf *buf, weftio_u64 offset, weftio_u64 bytes)
{
    return !bytes ||
           (bytes <= WEFTIO_DEV_RDMA_MOST_BYTES && weftio_doca_buf_has(buf, offset, bytes) && !buf->is_remote);
}

/** Those bytes. */
WEFTIO_FN struct weftio_dev_buf weftio_doca_rdma_local(const struct doca_gpu_buf *buf, weftio_u64 offset,
                                                       weftio_u64 bytes)
{
    const struct weftio_dev_buf none = {0, 0, 0};

    return bytes ? weftio_doca_buf_part(buf, offset, bytes) : none;
}

/** A WRITE; a READ has another opcode. */
WEFTIO_FN struct weftio_dev_rdma_request
weftio_doca_rdma_write(const struct doca_gpu_buf *remote, weftio_u64 remote_offset, const struct doca_gpu_buf *local,
                       weftio_u64 local_offset, weftio_u64 bytes, weftio_u32 opcode, weftio_u32 immediate)
{
    struct weftio_dev_rdma_request request = weftio_dev_rdma_begin(opcode, immediate);
    struct weftio_dev_remote memory;

    request.segments = 0;
    if (!weftio_doca_buf_has(remote, remote_offset, bytes) || !remote->is_remote ||
        !weftio_doca_rdma_is_local(local, local_offset, bytes))
        return request;
    memory.address = remote->address;
    memory.bytes = remote->bytes;
    memory.rkey_be = remote->key_be;
    memory.reserved = 0;
    request = weftio_dev_rdma_write_request(memory, remote_offset, weftio_doca_rdma_local(local, local_offset, bytes),
                                            0, bytes);
    request.opcode = opcode;
    request.immediate_be = weftio_swap32(immediate);
    return request;
}

WEFTIO_FN struct weftio_dev_rdma_request weftio_doca_rdma_send(const struct doca_gpu_buf *local, weftio_u64 offset,
                                                               weftio_u64 bytes, weftio_u32 opcode,
                                                               weftio_u32 immediate)
{
    struct weftio_dev_rdma_request request = weftio_dev_rdma_begin(opcode, immediate);

    request.segments = 0;
    if (!weftio_doca_rdma_is_local(local, offset, bytes))
        return request;
    request = weftio_dev_rdma_send_request(weftio_doca_rdma_local(local, offset, bytes), 0, bytes);
    request.opcode = opcode;
    request.immediate_be = weftio_swap32(immediate);
    return request;
}

/** Opcode and immediate of a WRITE and of a SEND. */
WEFTIO_FN weftio_u32 weftio_doca_rdma_write_opcode(weftio_u32 flags)
{
    return flags & DOCA_GPU_RDMA_WRITE_FLAG_IMM ? WEFTIO_OPCODE_RDMA_WRITE_IMMEDIATE : WEFTIO_OPCODE_RDMA_WRITE;
}
WEFTIO_FN weftio_u32 weftio_doca_rdma_send_opcode(weftio_u32 flags)
{
    return flags & DOCA_GPU_RDMA_SEND_FLAG_IMM ? WEFTIO_OPCODE_SEND_IMMEDIATE : WEFTIO_OPCODE_SEND;
}
WEFTIO_FN weftio_u32 weftio_doca_rdma_immediate(weftio_u32 has_one, weftio_u32 immediate)
{
    return has_one ? immediate : 0;
}

/** Enqueues at the next free position; while the ring is full of committed entries, waits until one is done. */
WEFTIO_FN doca_error_t weftio_doca_rdma_strong(const struct doca_gpu_dev_rdma *rdma, weftio_u32 index,
                                               struct weftio_dev_rdma_request request)
{
    const struct weftio_doca_connection *connection = weftio_doca_rdma_at(rdma, index);

    if (!connection || !request.segments)
        return DOCA_ERROR_INVALID_VALUE;
    struct weftio_dev_rdma *queue = connection->queue;
    for (weftio_u32 attempt = 0;; ++attempt) {
        const weftio_s32 status = weftio_dev_rdma_enqueue(queue, request, WEFTIO_DEV_SEND_NONE);
        if (status != WEFTIO_DEV_FULL)
            return weftio_doca_error(status);
        const doca_error_t error = weftio_doca_queue_full(&queue->queue, attempt);
        if (error != DOCA_SUCCESS)
            return error;
    }
}

/** Writes the entry at `position`, masked or running on; waits while the entry that was there is not done. */
WEFTIO_FN doca_error_t weftio_doca_rdma_weak(const struct doca_gpu_dev_rdma *rdma, weftio_u32 index,
                                             struct weftio_dev_rdma_request request, weftio_u32 position)
{
    const struct weftio_doca_connection *connection = weftio_doca_rdma_at(rdma, index);

    if (!connection || !request.segments)
        return DOCA_ERROR_INVALID_VALUE;
    const doca_error_t error = weftio_doca_queue_place(&connection->queue->queue, &position);
    if (error != DOCA_SUCCESS)
        return error;
    return weftio_doca_error(weftio_dev_rdma_enqueue_weak(connection->queue, request, position, WEFTIO_DEV_SEND_NONE));
}

/** Counts a commit that has moved the ring on from `before`. */
WEFTIO_FN doca_error_t weftio_doca_rdma_committed(struct weftio_doca_connection *connection, weftio_u32 before,
                                                  weftio_s32 status)
{
    if (weftio_load_relaxed_u32(&connection->queue->queue.ring.ready) != before)
        weftio_store_relaxed_u32(&connection->committed, weftio_load_relaxed_u32(&connection->committed) + 1);
    return weftio_doca_error(status);
}

/* Of the API. */

/** Position of the next entry of a connection, and the mask of positions, for weak mode. While no thread enqueues. */
WEFTIO_FN doca_error_t doca_gpu_dev_rdma_get_info(struct doca_gpu_dev_rdma *rdma, weftio_u32 connection_index,
                                                  weftio_u32 *position, weftio_u32 *mask)
{
    const struct weftio_doca_connection *connection = weftio_doca_rdma_at(rdma, connection_index);

    if (!connection)
        return DOCA_ERROR_INVALID_VALUE;
    weftio_dev_rdma_get_info(connection->queue, position, mask);
    return DOCA_SUCCESS;
}

/**
 * Enqueues a WRITE of `bytes` bytes, 2^31 at most, to a peer's buffer. Do not change the bytes before
 * doca_gpu_dev_rdma_wait_all() has returned.
 *
 * @param remote     of an array on an mmap of doca_mmap_create_from_export()
 * @param local      may be NULL if there are 0 bytes
 * @param immediate  for the peer, with DOCA_GPU_RDMA_WRITE_FLAG_IMM
 */
WEFTIO_FN doca_error_t doca_gpu_dev_rdma_write_strong(struct doca_gpu_dev_rdma *rdma, weftio_u32 connection_index,
                                                      struct doca_gpu_buf *remote, weftio_u64 remote_offset,
                                                      struct doca_gpu_buf *local, weftio_u64 local_offset, size_t bytes,
                                                      weftio_u32 immediate, enum doca_gpu_dev_rdma_write_flags flags)
{
    return weftio_doca_rdma_strong(rdma, connection_index,
                                   weftio_doca_rdma_write(remote, remote_offset, local, local_offset, bytes,
                                                          weftio_doca_rdma_write_opcode(flags),
                                                          weftio_doca_rdma_immediate(flags, immediate)));
}

/** Weak mode: the same at `position`, modulo the ring. */
WEFTIO_FN doca_error_t doca_gpu_dev_rdma_write_weak(struct doca_gpu_dev_rdma *rdma, weftio_u32 connection_index,
                                                    struct doca_gpu_buf *remote, weftio_u64 remote_offset,
                                                    struct doca_gpu_buf *local, weftio_u64 local_offset, size_t bytes,
                                                    weftio_u32 immediate, enum doca_gpu_dev_rdma_write_flags flags,
                                                    weftio_u32 position)
{
    return weftio_doca_rdma_weak(rdma, connection_index,
                                 weftio_doca_rdma_write(remote, remote_offset, local, local_offset, bytes,
                                                        weftio_doca_rdma_write_opcode(flags),
                                                        weftio_doca_rdma_immediate(flags, immediate)),
                                 position);
}

/** Enqueues a READ of `bytes` bytes of a peer's buffer, which are there when doca_gpu_dev_rdma_wait_all() returns. */
WEFTIO_FN doca_error_t doca_gpu_dev_rdma_read_strong(struct doca_gpu_dev_rdma *rdma, weftio_u32 connection_index,
                                                     struct doca_gpu_buf *remote, weftio_u64 remote_offset,
                                                     struct doca_gpu_buf *local, weftio_u64 local_offset, size_t bytes,
                                                     weftio_u32 flags)
{
    (void)flags;
    return weftio_doca_rdma_strong(
        rdma, connection_index,
        weftio_doca_rdma_write(remote, remote_offset, local, local_offset, bytes, WEFTIO_OPCODE_RDMA_READ, 0));
}

/** Weak mode: the same at `position`, modulo the ring. */
WEFTIO_FN doca_error_t doca_gpu_dev_rdma_read_weak(struct doca_gpu_dev_rdma *rdma, weftio_u32 connection_index,
                                                   struct doca_gpu_buf *remote, weftio_u64 remote_offset,
                                                   struct doca_gpu_buf *local, weftio_u64 local_offset, size_t bytes,
                                                   weftio_u32 flags, weftio_u32 position)
{
    (void)flags;
    return weftio_doca_rdma_weak(
        rdma, connection_index,
        weftio_doca_rdma_write(remote, remote_offset, local, local_offset, bytes, WEFTIO_OPCODE_RDMA_READ, 0),
        position);
}

/** Enqueues a message of `bytes` bytes, which goes to the oldest receive of the peer; as a WRITE otherwise. */
WEFTIO_FN doca_error_t doca_gpu_dev_rdma_send_strong(struct doca_gpu_dev_rdma *rdma, weftio_u32 connection_index,
                                                     struct doca_gpu_buf *local, weftio_u64 local_offset, size_t bytes,
                                                     weftio_u32 immediate, enum doca_gpu_dev_rdma_send_flags flags)
{
    return weftio_doca_rdma_strong(rdma, connection_index,
                                   weftio_doca_rdma_send(local, local_offset, bytes,
                                                         weftio_doca_rdma_send_opcode(flags),
                                                         weftio_doca_rdma_immediate(flags, immediate)));
}

/** Weak mode: the same at `position`, modulo the ring. */
WEFTIO_FN doca_error_t doca_gpu_dev_rdma_send_weak(struct doca_gpu_dev_rdma *rdma, weftio_u32 connection_index,
                                                   struct doca_gpu_buf *local, weftio_u64 local_offset, size_t bytes,
                                                   weftio_u32 immediate, enum doca_gpu_dev_rdma_send_flags flags,
                                                   weftio_u32 position)
{
    return weftio_doca_rdma_weak(rdma, connection_index,
                                 weftio_doca_rdma_send(local, local_offset, bytes, weftio_doca_rdma_send_opcode(flags),
                                                       weftio_doca_rdma_immediate(flags, immediate)),
                                 position);
}

/** Has the NIC execute the enqueued entries, also if there are none. One thread, after a barrier behind the last. */
WEFTIO_FN doca_error_t doca_gpu_dev_rdma_commit_strong(struct doca_gpu_dev_rdma *rdma, weftio_u32 connection_index)
{
    struct weftio_doca_connection *connection = weftio_doca_rdma_at(rdma, connection_index);

    if (!connection)
        return DOCA_ERROR_INVALID_VALUE;
    const weftio_u32 before = weftio_load_relaxed_u32(&connection->queue->queue.ring.ready);
    return weftio_doca_rdma_committed(connection, before, weftio_dev_rdma_commit(connection->queue));
}

/** Weak mode: the same for the next `count` entries. */
WEFTIO_FN doca_error_t doca_gpu_dev_rdma_commit_weak(struct doca_gpu_dev_rdma *rdma, weftio_u32 connection_index,
                                                     weftio_u32 count)
{
    struct weftio_doca_connection *connection = weftio_doca_rdma_at(rdma, connection_index);

    if (!connection)
        return DOCA_ERROR_INVALID_VALUE;
    const weftio_u32 before = weftio_load_relaxed_u32(&connection->queue->queue.ring.ready);
    return weftio_doca_rdma_committed(connection, before, weftio_dev_rdma_commit_weak(connection->queue, count));
}

/**
 * Waits until what one connection has committed is done, and adds those commits to `*commits`. A connection that has
 * failed without them is left out: it may be nobody's any more.
 */
WEFTIO_FN doca_error_t weftio_doca_rdma_wait(struct weftio_doca_connection *connection, weftio_u32 *commits)
{
    const weftio_u32 committed = weftio_load_relaxed_u32(&connection->committed);

    if (!connection->queue || committed == weftio_load_relaxed_u32(&connection->waited))
        return DOCA_SUCCESS;
    struct weftio_dev_send_queue *queue = &connection->queue->queue;
    const weftio_u32 ready = weftio_load_relaxed_u32(&queue->ring.ready);
    const weftio_s32 status = weftio_dev_send_completed(&queue->ring) == ready
                                  ? weftio_dev_send_queue_status(queue)
                                  : weftio_dev_send_queue_wait_completed(queue, ready - 1, 0);

    if (status != WEFTIO_DEV_OK)
        return weftio_doca_error(status);
    *commits += committed - weftio_load_relaxed_u32(&connection->waited);
    weftio_store_relaxed_u32(&connection->waited, committed);
    return DOCA_SUCCESS;
}

/**
 * Waits until all committed entries of all connections are done: peers have acknowledged them. One thread.
 *
 * @param[out] commits  how many commits are done, of connections that have not failed, since the last call
 * @return of connections that have failed with commits, the first failure; again in later calls
 */
WEFTIO_FN doca_error_t doca_gpu_dev_rdma_wait_all(struct doca_gpu_dev_rdma *rdma, weftio_u32 *commits)
{
    doca_error_t first = DOCA_SUCCESS;
    weftio_u32 done = 0;

    if (!rdma || !commits)
        return DOCA_ERROR_INVALID_VALUE;
    for (weftio_u32 index = 0; index < rdma->count; ++index) {
        const doca_error_t error = weftio_doca_rdma_wait(rdma->connections[index], &done);
        if (first == DOCA_SUCCESS)
            first = error;
    }
    *commits = done;
    return first;
}

/** The receive queue, which all connections share. */
WEFTIO_FN doca_error_t doca_gpu_dev_rdma_get_recv(struct doca_gpu_dev_rdma *rdma, struct doca_gpu_dev_rdma_r **receives)
{
    if (!rdma || !receives)
        return DOCA_ERROR_INVALID_VALUE;
    *receives = &rdma->receives;
    return DOCA_SUCCESS;
}

/** Position of the next receive, and the mask of positions, for weak mode. While no thread posts. */
WEFTIO_FN doca_error_t doca_gpu_dev_rdma_recv_get_info(struct doca_gpu_dev_rdma_r *receives, weftio_u32 *position,
                                                       weftio_u32 *mask)
{
    if (!receives)
        return DOCA_ERROR_INVALID_VALUE;
    weftio_dev_rdma_recv_get_info(receives->queue, position, mask);
    return DOCA_SUCCESS;
}

/**
 * Posts a receive. Its bytes are the program's again when doca_gpu_dev_rdma_recv_wait_all() has counted it. Never
 * waits: only that call makes room.
 *
 * @param buf    NULL for WRITEs with an immediate, whose bytes lie where the peer has written them
 * @param flags  0
 */
WEFTIO_FN doca_error_t doca_gpu_dev_rdma_recv_strong(struct doca_gpu_dev_rdma_r *receives, struct doca_gpu_buf *buf,
                                                     size_t bytes, weftio_u64 offset, weftio_u32 flags)
{
    const weftio_u64 used = buf ? bytes : 0;

    (void)flags;
    if (!receives || !weftio_doca_rdma_is_local(buf, offset, used))
        return DOCA_ERROR_INVALID_VALUE;
    return weftio_doca_error(
        weftio_dev_rdma_recv_post(receives->queue, weftio_doca_rdma_local(buf, offset, used), 0, used));
}

/** Weak mode: the same at `position`, modulo the ring. */
WEFTIO_FN doca_error_t doca_gpu_dev_rdma_recv_weak(struct doca_gpu_dev_rdma_r *receives, struct doca_gpu_buf *buf,
                                                   size_t bytes, weftio_u64 offset, weftio_u32 flags,
                                                   weftio_u32 position)
{
    const weftio_u64 used = buf ? bytes : 0;

    (void)flags;
    if (!receives || !weftio_doca_rdma_is_local(buf, offset, used))
        return DOCA_ERROR_INVALID_VALUE;
    struct weftio_dev_send_ring *ring = &receives->queue->queue.ring;
    position = weftio_dev_send_queue_unmask(&receives->queue->queue, position & ring->mask);
    if (position - weftio_dev_send_completed(ring) > ring->mask)
        return DOCA_ERROR_FULL;
    return weftio_doca_error(
        weftio_dev_rdma_recv_post_weak(receives->queue, weftio_doca_rdma_local(buf, offset, used), 0, used, position));
}

/** Lets messages use the posted receives. One thread, after a barrier behind the last. */
WEFTIO_FN doca_error_t doca_gpu_dev_rdma_recv_commit_strong(struct doca_gpu_dev_rdma_r *receives)
{
    return receives ? weftio_doca_error(weftio_dev_rdma_recv_commit(receives->queue)) : DOCA_ERROR_INVALID_VALUE;
}

/** Weak mode: the same for the next `count` receives. */
WEFTIO_FN doca_error_t doca_gpu_dev_rdma_recv_commit_weak(struct doca_gpu_dev_rdma_r *receives, weftio_u32 count)
{
    return receives ? weftio_doca_error(weftio_dev_rdma_recv_commit_weak(receives->queue, count))
                    : DOCA_ERROR_INVALID_VALUE;
}

/**
 * Takes committed receives that messages have completed. One thread.
 *
 * @param flags            whether to wait for all of them
 * @param[out] count       how many it took: at most as many as are committed, also when it returns an error
 * @param[out] immediates  of each, in the order in which the messages arrived; 0xFFFFFFFF where there was none; may be
 *                         NULL
 */
WEFTIO_FN doca_error_t doca_gpu_dev_rdma_recv_wait_all(struct doca_gpu_dev_rdma_r *receives,
                                                       enum doca_gpu_dev_rdma_recv_wait_flags flags, weftio_u32 *count,
                                                       weftio_u32 *immediates)
{
    weftio_u32 first = 0;
    weftio_s32 status = WEFTIO_DEV_OK;

    if (!receives || !count)
        return DOCA_ERROR_INVALID_VALUE;
    struct weftio_dev_rdma_recv *queue = receives->queue;
    const weftio_u32 wanted =
        weftio_load_relaxed_u32(&queue->queue.ring.ready) - weftio_load_relaxed_u32(&queue->received);
    *count = 0;
    if (!wanted)
        return weftio_doca_error(weftio_dev_rdma_recv_status(queue));
    if (flags == DOCA_GPU_RDMA_RECV_WAIT_FLAG_B)
        status = weftio_dev_rdma_recv_wait(queue, wanted, 0, count, &first);
    else
        status = weftio_dev_rdma_recv_poll(queue, wanted, count, &first);
    for (weftio_u32 message = 0; message < *count; ++message) {
        struct weftio_dev_rdma_message arrived;
        const weftio_s32 how = weftio_dev_rdma_recv_message(queue, first + message, &arrived);
        const weftio_u32 has_one = how == WEFTIO_DEV_OK && (arrived.kind == WEFTIO_DEV_RDMA_SEND_IMM ||
                                                            arrived.kind == WEFTIO_DEV_RDMA_WRITE_IMM);
        if (immediates)
            immediates[message] = has_one ? arrived.immediate : WEFTIO_DOCA_NO_IMMEDIATE;
        if (how == WEFTIO_DEV_QUEUE_ERROR)
            status = how;
    }
    return weftio_doca_error(status);
}
