/**
 * The file queue inside a kernel: a file engine reads and writes files while the kernel continues.
 *
 * *Enqueue* functions write one entry each: a read, a write or a sync. *Commit* publishes the entries, and the file
 * engine executes and completes them. *Strong* functions find a free position themselves; any lane of any block may
 * call them. *Weak* functions are given the position by the caller and use no atomics. A queue is used in one of the
 * two modes at a time.
 *
 * A file is named by its key (`file::key()` on the host). Memory is a buffer (buf.h) in a region that the host has
 * registered with the engine. The format of entries is that of docs/formats.md, section "Entries".
 *
 * Order: entries of a queue are independent, and several are in flight at once. An entry with WEFTIO_DEV_FILE_FENCE
 * starts when all entries before it are done, and so does every sync. Entries complete in order.
 */
#pragma once

#include "weftio/device/buf.h"
#include "weftio/device/queue/reserve.h"

/** Made by the host class `file_queue`. Kernels use it through the functions below only. */
struct weftio_dev_file_queue {
    struct weftio_dev_send_queue queue;
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_file_queue) == (WEFTIO_DEV_ABI_FILE_QUEUE & 0xffffu),
                     "host and device share this layout");

/** The most bytes that one entry reads or writes. */
#define WEFTIO_DEV_FILE_MOST_BYTES 0x80000000u

/** Flag of an enqueue call, beside WEFTIO_DEV_SEND_NONE and WEFTIO_DEV_SEND_NOTIFY. */
#define WEFTIO_DEV_FILE_FENCE 0x4u /**< starts when all earlier entries of the queue are done */

/** What an entry asks the engine for, before it has a position in the ring. */
struct weftio_dev_file_request {
    weftio_u32 opcode;
    weftio_u32 segments; /**< of the entry, control segment included; 0: the request is refused */
    weftio_u32 body[8];  /**< the segments after the control segment */
};

/** Begins a request with the file and an offset in it. */
WEFTIO_FN struct weftio_dev_file_request weftio_dev_file_begin(weftio_u32 opcode, weftio_u32 file, weftio_u64 offset)
{
    struct weftio_dev_file_request request = {0, 2, {0, 0, 0, 0, 0, 0, 0, 0}};
    weftio_u64 offset_be = weftio_swap64(offset);

    request.opcode = opcode;
    request.body[0] = (weftio_u32)offset_be;
    request.body[1] = (weftio_u32)(offset_be >> 32);
    request.body[2] = weftio_swap32(file);
    return request;
}

/**
 * A read or a write of [buffer_offset, buffer_offset + bytes) of a buffer. Has 0 segments, so that enqueuing it is
 * refused, if `bytes` is 0 or too large or reaches beyond the buffer.
 */
WEFTIO_FN struct weftio_dev_file_request weftio_dev_file_transfer(weftio_u32 opcode, weftio_u32 file,
                                                                  weftio_u64 file_offset, struct weftio_dev_buf buffer,
                                                                  weftio_u64 buffer_offset, weftio_u64 bytes)
{
    struct weftio_dev_file_request request = weftio_dev_file_begin(opcode, file, file_offset);
    weftio_u64 address_be = weftio_swap64((weftio_u64)buffer.address + buffer_offset);

    request.body[4] = weftio_swap32((weftio_u32)bytes & (WEFTIO_DEV_FILE_MOST_BYTES - 1)); /* 2^31 is coded 0 */
    request.body[5] = buffer.lkey_be;
    request.body[6] = (weftio_u32)address_be;
    request.body[7] = (weftio_u32)(address_be >> 32);
    request.segments = bytes && bytes <= WEFTIO_DEV_FILE_MOST_BYTES && buffer_offset <= buffer.bytes &&
                               bytes <= buffer.bytes - buffer_offset
                           ? 3
                           : 0;
    return request;
}

/** Read of `bytes` bytes of the file, from `file_offset` on, into a buffer whose region has access::local_write. */
WEFTIO_FN struct weftio_dev_file_request weftio_dev_file_read_request(weftio_u32 file, weftio_u64 file_offset,
                                                                      struct weftio_dev_buf buffer,
                                                                      weftio_u64 buffer_offset, weftio_u64 bytes)
{
    return weftio_dev_file_transfer(WEFTIO_OPCODE_RDMA_READ, file, file_offset, buffer, buffer_offset, bytes);
}

/** Write of `bytes` bytes of a buffer to the file, from `file_offset` on. */
WEFTIO_FN struct weftio_dev_file_request weftio_dev_file_write_request(weftio_u32 file, weftio_u64 file_offset,
                                                                       struct weftio_dev_buf buffer,
                                                                       weftio_u64 buffer_offset, weftio_u64 bytes)
{
    return weftio_dev_file_transfer(WEFTIO_OPCODE_RDMA_WRITE, file, file_offset, buffer, buffer_offset, bytes);
}

/**
 * Sync: makes durable what earlier entries of the queue wrote to the file, as fsync(2). It starts when they are done.
 */
WEFTIO_FN struct weftio_dev_file_request weftio_dev_file_sync_request(weftio_u32 file)
{
    return weftio_dev_file_begin(WEFTIO_OPCODE_FILE_SYNC, file, 0);
}

/** Writes the entry of a request at `index`: one block, control segment last. */
WEFTIO_FN void weftio_dev_write_file(struct weftio_dev_send_parts ring, weftio_u32 index,
                                     struct weftio_dev_file_request request, weftio_u32 flags)
{
    WEFTIO_GLOBAL weftio_u32 *block = weftio_dev_send_block(ring, index);
    weftio_u32 fence = flags & WEFTIO_DEV_FILE_FENCE ? WEFTIO_FENCE : 0;

    weftio_store_x4(block + 4, request.body[0], request.body[1], request.body[2], request.body[3]);
    weftio_store_x4(block + 8, request.body[4], request.body[5], request.body[6], request.body[7]);
    weftio_dev_write_control_modes(block, index, request.opcode, ring.queue << 8 | request.segments,
                                   weftio_dev_completion_mode(flags) | fence, 0);
}

/**
 * Enqueues a request at the next free position and returns that position. Never blocks. Any lane of any block, several
 * at once.
 *
 * Until the entry is done, do not change bytes that it writes to a file, and do not use bytes that it reads from one.
 * An entry whose buffer bytes or file range another entry of the queue writes needs WEFTIO_DEV_FILE_FENCE.
 *
 * @param request        from weftio_dev_file_read_request() or one of the functions beside it
 * @param flags          WEFTIO_DEV_SEND_NONE, or any of WEFTIO_DEV_SEND_NOTIFY and WEFTIO_DEV_FILE_FENCE
 * @param[out] position  free-running index of the entry, for weftio_dev_file_wait(); unchanged on error
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_FULL no position is free; WEFTIO_DEV_INVALID_ARGUMENT the request has 0 bytes or
 *         too many, or reaches beyond its buffer; with WEFTIO_DEV_CHECKS (handle.h) also: `files` is no file queue, or
 *         another version's. On error nothing is enqueued.
 */
WEFTIO_FN weftio_s32 weftio_dev_file_enqueue_position(WEFTIO_GLOBAL struct weftio_dev_file_queue *files,
                                                      struct weftio_dev_file_request request, weftio_u32 flags,
                                                      weftio_u32 *position)
{
    struct weftio_dev_send_range claim;

    if (!weftio_dev_is_handle(files->queue.abi, WEFTIO_DEV_ABI_FILE_QUEUE) || !request.segments)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    const struct weftio_dev_send_parts ring = weftio_dev_send_parts_of(&files->queue.ring);
    if (!weftio_dev_send_reserve(&files->queue.ring, 1, &claim))
        return WEFTIO_DEV_FULL;
    weftio_dev_write_file(ring, claim.first, request, flags);
    weftio_dev_send_fill(ring, claim);
    *position = claim.first;
    return WEFTIO_DEV_OK;
}

/**
 * Weak mode: writes the entry of a request at `position`. Never blocks. Lanes of one block may call at once, each with
 * positions of its own. Before commit_weak every position must have its entry.
 *
 * @pre the engine is done with the entry at `position` - depth: see weftio_dev_file_wait_room()
 * @param position  free-running, from weftio_dev_file_get_info() on
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_INVALID_ARGUMENT as weftio_dev_file_enqueue_position, or `position` has been
 *         committed, or is the depth of the ring or more beyond the next one to commit. On error nothing is written.
 */
WEFTIO_FN weftio_s32 weftio_dev_file_enqueue_weak(WEFTIO_GLOBAL struct weftio_dev_file_queue *files,
                                                  struct weftio_dev_file_request request, weftio_u32 position,
                                                  weftio_u32 flags)
{
    if (!weftio_dev_is_handle(files->queue.abi, WEFTIO_DEV_ABI_FILE_QUEUE) || !request.segments)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    const struct weftio_dev_send_parts ring = weftio_dev_send_parts_of(&files->queue.ring);
    if (!weftio_dev_weak_fits(&files->queue.ring, position))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_dev_write_file(ring, position, request, flags);
    return WEFTIO_DEV_OK;
}

/*
 * The functions below do what weftio_dev_file_enqueue_position and weftio_dev_file_enqueue_weak do, for one kind of
 * request each. Flags, threads, ownership and errors are the same.
 */

/** Reads `bytes` bytes of the file at `file_offset` into a buffer. */
WEFTIO_FN weftio_s32 weftio_dev_file_read_position(WEFTIO_GLOBAL struct weftio_dev_file_queue *files, weftio_u32 file,
                                                   weftio_u64 file_offset, struct weftio_dev_buf buffer,
                                                   weftio_u64 buffer_offset, weftio_u64 bytes, weftio_u32 flags,
                                                   weftio_u32 *position)
{
    return weftio_dev_file_enqueue_position(
        files, weftio_dev_file_read_request(file, file_offset, buffer, buffer_offset, bytes), flags, position);
}

/** Same, without returning the position. */
WEFTIO_FN weftio_s32 weftio_dev_file_read(WEFTIO_GLOBAL struct weftio_dev_file_queue *files, weftio_u32 file,
                                          weftio_u64 file_offset, struct weftio_dev_buf buffer,
                                          weftio_u64 buffer_offset, weftio_u64 bytes, weftio_u32 flags)
{
    weftio_u32 position;

    return weftio_dev_file_read_position(files, file, file_offset, buffer, buffer_offset, bytes, flags, &position);
}

/** Weak mode: the same at `position`. */
WEFTIO_FN weftio_s32 weftio_dev_file_read_weak(WEFTIO_GLOBAL struct weftio_dev_file_queue *files, weftio_u32 file,
                                               weftio_u64 file_offset, struct weftio_dev_buf buffer,
                                               weftio_u64 buffer_offset, weftio_u64 bytes, weftio_u32 position,
                                               weftio_u32 flags)
{
    return weftio_dev_file_enqueue_weak(
        files, weftio_dev_file_read_request(file, file_offset, buffer, buffer_offset, bytes), position, flags);
}

/** Writes `bytes` bytes of a buffer to the file at `file_offset`. */
WEFTIO_FN weftio_s32 weftio_dev_file_write_position(WEFTIO_GLOBAL struct weftio_dev_file_queue *files, weftio_u32 file,
                                                    weftio_u64 file_offset, struct weftio_dev_buf buffer,
                                                    weftio_u64 buffer_offset, weftio_u64 bytes, weftio_u32 flags,
                                                    weftio_u32 *position)
{
    return weftio_dev_file_enqueue_position(
        files, weftio_dev_file_write_request(file, file_offset, buffer, buffer_offset, bytes), flags, position);
}

/** Same, without returning the position. */
WEFTIO_FN weftio_s32 weftio_dev_file_write(WEFTIO_GLOBAL struct weftio_dev_file_queue *files, weftio_u32 file,
                                           weftio_u64 file_offset, struct weftio_dev_buf buffer,
                                           weftio_u64 buffer_offset, weftio_u64 bytes, weftio_u32 flags)
{
    weftio_u32 position;

    return weftio_dev_file_write_position(files, file, file_offset, buffer, buffer_offset, bytes, flags, &position);
}

/** Weak mode: the same at `position`. */
WEFTIO_FN weftio_s32 weftio_dev_file_write_weak(WEFTIO_GLOBAL struct weftio_dev_file_queue *files, weftio_u32 file,
                                                weftio_u64 file_offset, struct weftio_dev_buf buffer,
                                                weftio_u64 buffer_offset, weftio_u64 bytes, weftio_u32 position,
                                                weftio_u32 flags)
{
    return weftio_dev_file_enqueue_weak(
        files, weftio_dev_file_write_request(file, file_offset, buffer, buffer_offset, bytes), position, flags);
}

/** Makes durable what earlier entries of the queue wrote to the file, as fsync(2). It starts when they are done. */
WEFTIO_FN weftio_s32 weftio_dev_file_sync_position(WEFTIO_GLOBAL struct weftio_dev_file_queue *files, weftio_u32 file,
                                                   weftio_u32 flags, weftio_u32 *position)
{
    return weftio_dev_file_enqueue_position(files, weftio_dev_file_sync_request(file), flags, position);
}

/** Same, without returning the position. */
WEFTIO_FN weftio_s32 weftio_dev_file_sync(WEFTIO_GLOBAL struct weftio_dev_file_queue *files, weftio_u32 file,
                                          weftio_u32 flags)
{
    weftio_u32 position;

    return weftio_dev_file_sync_position(files, file, flags, &position);
}

/** Weak mode: the same at `position`. */
WEFTIO_FN weftio_s32 weftio_dev_file_sync_weak(WEFTIO_GLOBAL struct weftio_dev_file_queue *files, weftio_u32 file,
                                               weftio_u32 position, weftio_u32 flags)
{
    return weftio_dev_file_enqueue_weak(files, weftio_dev_file_sync_request(file), position, flags);
}

/** Position of the next entry and mask of positions, for weak mode: as weftio_dev_send_queue_get_info. */
WEFTIO_FN void weftio_dev_file_get_info(const WEFTIO_GLOBAL struct weftio_dev_file_queue *files, weftio_u32 *position,
                                        weftio_u32 *mask)
{
    weftio_dev_send_queue_get_info(&files->queue, position, mask);
}

/**
 * Publishes the strong entries that are filled without a gap, and rings the doorbell: as weftio_dev_send_queue_submit.
 * One lane of a scope, after a barrier; several blocks may commit at once. Blocks only while another block is in the
 * few instructions of its commit; in inline mode this call runs the engine. Return values are those of
 * weftio_dev_send_queue_commit_strong.
 */
WEFTIO_FN weftio_s32 weftio_dev_file_commit(WEFTIO_GLOBAL struct weftio_dev_file_queue *files)
{
    return weftio_dev_send_queue_submit(&files->queue);
}

/** Publishes the next `count` weak entries and rings the doorbell: as weftio_dev_send_queue_submit_weak. */
WEFTIO_FN weftio_s32 weftio_dev_file_commit_weak(WEFTIO_GLOBAL struct weftio_dev_file_queue *files, weftio_u32 count)
{
    return weftio_dev_send_queue_submit_weak(&files->queue, count);
}

/**
 * Whether the entry at `position` is done: as weftio_dev_send_queue_poll_completion. A lane that sees the completion
 * also sees the bytes that were read.
 */
WEFTIO_FN weftio_s32 weftio_dev_file_poll_completion(WEFTIO_GLOBAL struct weftio_dev_file_queue *files,
                                                     weftio_u32 position, weftio_u64 *completed_ns)
{
    return weftio_dev_send_queue_poll_completion(&files->queue, position, completed_ns);
}

/**
 * The result words, which the engine writes: one for each slot, after the cache line of the doorbell record
 * (docs/formats.md, section "Entries").
 */
WEFTIO_FN const WEFTIO_GLOBAL weftio_u64 *weftio_dev_file_results(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring)
{
    return (const WEFTIO_GLOBAL weftio_u64 *)(ring->segments +
                                              (weftio_u64)(ring->mask + 1) * (WEFTIO_WQE_BLOCK_BYTES / 4) +
                                              2 * (WEFTIO_WQE_BLOCK_BYTES / 4));
}

/**
 * Result of the entry at `position`. Valid also for an entry that was done before a later entry failed. Never blocks;
 * any lane.
 *
 * @pre `position` was committed, and no later entry has been written to its slot
 * @param[out] bytes  bytes that were read or written, 0 for a sync; a read that returns fewer than requested has
 *                    reached the end of the file. For a failed entry: the negative errno, -ECANCELED (-125) if it was
 *                    flushed
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_NOT_FOUND the entry is not done yet (`*bytes` is unchanged); WEFTIO_DEV_QUEUE_ERROR
 *         it failed or was flushed; WEFTIO_DEV_INVALID_ARGUMENT with WEFTIO_DEV_CHECKS: `files` is no file queue, or
 *         another version's
 */
WEFTIO_FN weftio_s32 weftio_dev_file_result(WEFTIO_GLOBAL struct weftio_dev_file_queue *files, weftio_u32 position,
                                            weftio_s64 *bytes)
{
    if (!weftio_dev_is_handle(files->queue.abi, WEFTIO_DEV_ABI_FILE_QUEUE))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (weftio_dev_send_completed(&files->queue.ring) - position - 1 >= 0x80000000u)
        return WEFTIO_DEV_NOT_FOUND;
    *bytes = (weftio_s64)weftio_load_acquire_sys_u64(weftio_dev_file_results(&files->queue.ring) +
                                                     (position & files->queue.ring.mask));
    return *bytes < 0 ? WEFTIO_DEV_QUEUE_ERROR : WEFTIO_DEV_OK;
}

/** Waits until the entry at `position` is done: as weftio_dev_send_queue_wait_completed. */
WEFTIO_FN weftio_s32 weftio_dev_file_wait(WEFTIO_GLOBAL struct weftio_dev_file_queue *files, weftio_u32 position,
                                          weftio_u64 timeout_ns)
{
    return weftio_dev_send_queue_wait_completed(&files->queue, position, timeout_ns);
}

/**
 * Waits until the entry at `position` is done, and returns its result: weftio_dev_file_wait followed by
 * weftio_dev_file_result. Any lane, several at once.
 *
 * @param[out] bytes  as weftio_dev_file_result; unchanged when the wait ends before the entry is done
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_QUEUE_ERROR the entry failed or was flushed, or an earlier one failed;
 *         WEFTIO_DEV_TIMEOUT; WEFTIO_DEV_ABORTED; WEFTIO_DEV_INVALID_ARGUMENT as weftio_dev_file_result
 */
WEFTIO_FN weftio_s32 weftio_dev_file_wait_result(WEFTIO_GLOBAL struct weftio_dev_file_queue *files, weftio_u32 position,
                                                 weftio_u64 timeout_ns, weftio_s64 *bytes)
{
    weftio_s32 status = weftio_dev_file_wait(files, position, timeout_ns);

    if (status != WEFTIO_DEV_OK && status != WEFTIO_DEV_QUEUE_ERROR)
        return status;
    weftio_s32 result = weftio_dev_file_result(files, position, bytes);
    return result == WEFTIO_DEV_NOT_FOUND ? status : result;
}

/**
 * Commits strong entries, and waits until all entries that were enqueued before are done, also those of other blocks.
 * Blocks until then, for `timeout_ns` at most (0: no time bound). One lane of a scope.
 *
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_TIMEOUT; WEFTIO_DEV_ABORTED; WEFTIO_DEV_QUEUE_ERROR; WEFTIO_DEV_INVALID_ARGUMENT as
 *         weftio_dev_send_queue_commit_strong
 */
WEFTIO_FN weftio_s32 weftio_dev_file_commit_wait(WEFTIO_GLOBAL struct weftio_dev_file_queue *files,
                                                 weftio_u64 timeout_ns)
{
    return weftio_dev_send_queue_submit_wait(&files->queue, timeout_ns);
}

/** Waits until at least `count` positions are free: as weftio_dev_send_queue_wait_room. */
WEFTIO_FN weftio_s32 weftio_dev_file_wait_room(WEFTIO_GLOBAL struct weftio_dev_file_queue *files, weftio_u32 count,
                                               weftio_u64 timeout_ns)
{
    return weftio_dev_send_queue_wait_room(&files->queue, count, timeout_ns);
}

/** WEFTIO_DEV_QUEUE_ERROR, WEFTIO_DEV_ABORTED or WEFTIO_DEV_OK: as weftio_dev_send_queue_status. */
WEFTIO_FN weftio_s32 weftio_dev_file_status(const WEFTIO_GLOBAL struct weftio_dev_file_queue *files)
{
    return weftio_dev_send_queue_status(&files->queue);
}

/** Whether the host asks the kernel to end, for loops of the kernel's own: as weftio_dev_send_queue_aborted. */
WEFTIO_FN weftio_u32 weftio_dev_file_aborted(WEFTIO_GLOBAL struct weftio_dev_file_queue *files)
{
    return weftio_dev_send_queue_aborted(&files->queue);
}
