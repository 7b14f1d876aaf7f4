/**
 * A queue pair inside a kernel: memory of a peer is written, read and changed, and messages are sent to it.
 *
 * *Enqueue* functions (write, read, send, atomics) fill one entry each; *commit* publishes what is filled and makes the
 * NIC execute it, in order; an entry is done when the peer has acknowledged it. *Strong* functions find the position
 * themselves, from any lane of any block; *weak* ones are told it and use no atomics. A queue is used in one mode at a
 * time. What the peer sends arrives at the receive ring, which has a handle of its own (rdma/receive.h).
 *
 * Local memory is a buffer (buf.h) of a region that the host has registered with the port; a peer's is a
 * weftio_dev_remote (rdma/request.h). A number in memory is in the CPU's byte order at both ends.
 */
#pragma once

#include "weftio/device/queue/send.h"
#include "weftio/device/rdma/receive.h"
#include "weftio/device/rdma/request.h"

/** Made by the host class `rdma_queue`. Kernels use it through the functions below only. */
struct weftio_dev_rdma {
    struct weftio_dev_send_queue queue;
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_rdma) == (WEFTIO_DEV_ABI_RDMA & 0xffffu),
                     "host and device share this layout");

/** Flags of an enqueue call, beside WEFTIO_DEV_SEND_NONE and WEFTIO_DEV_SEND_NOTIFY. */
#define WEFTIO_DEV_RDMA_SOLICITED 0x2u /**< the peer's message says so: weftio_dev_rdma_message::solicited */
#define WEFTIO_DEV_RDMA_FENCE 0x4u     /**< begins when the reads and atomics before it are done */

/** Byte fm_ce_se of an entry. */
WEFTIO_FN weftio_u32 weftio_dev_rdma_modes(weftio_u32 flags)
{
    return weftio_dev_completion_mode(flags) | (flags & WEFTIO_DEV_RDMA_SOLICITED ? WEFTIO_SOLICITED : 0) |
           (flags & WEFTIO_DEV_RDMA_FENCE ? WEFTIO_FENCE : 0);
}

/** The entry of a request. One block. */
WEFTIO_FN void weftio_dev_write_rdma(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 index,
                                     struct weftio_dev_rdma_request request, weftio_u32 flags)
{
    WEFTIO_GLOBAL weftio_u32 *block = weftio_dev_send_block(ring, index);

    for (weftio_u32 word = 0; word < 12; word += 4)
        weftio_store_x4(block + 4 + word, request.body[word], request.body[word + 1], request.body[word + 2],
                        request.body[word + 3]);
    weftio_dev_write_control_modes(block, index, request.opcode, ring->queue << 8 | request.segments,
                                   weftio_dev_rdma_modes(flags), request.immediate_be);
}

/**
 * Enqueues a request at the next free position and tells which that is. Never blocks. Any lane of any block, several at
 * once.
 *
 * The functions below do the same for one kind of request each, for who need not know the position. Entries are
 * executed in order, and so the peer's memory changes; reads and atomics may return later than what is behind them,
 * unless that has WEFTIO_DEV_RDMA_FENCE. Local bytes are read when the NIC sends, and again when it repeats a packet:
 * leave them alone until the entry is done.
 *
 * @param request        weftio_dev_rdma_write_request() and so on
 * @param flags          WEFTIO_DEV_SEND_NONE, or WEFTIO_DEV_SEND_NOTIFY, WEFTIO_DEV_RDMA_SOLICITED and _FENCE
 * @param[out] position  free-running index of the entry, for weftio_dev_rdma_wait(); unchanged on error
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_FULL no free position (nothing is enqueued); WEFTIO_DEV_INVALID_ARGUMENT bytes
 *         reach beyond a buffer or the peer's memory, or are too many for the request; with WEFTIO_DEV_CHECKS
 *         (handle.h) also: `rdma` is no queue pair, or another version's
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_enqueue_position(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                      struct weftio_dev_rdma_request request, weftio_u32 flags,
                                                      weftio_u32 *position)
{
    weftio_u32 index;

    if (!weftio_dev_is_handle(rdma->queue.abi, WEFTIO_DEV_ABI_RDMA) || !request.segments)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (!weftio_dev_send_reserve(&rdma->queue.ring, 1, &index))
        return WEFTIO_DEV_FULL;
    weftio_dev_write_rdma(&rdma->queue.ring, index, request, flags);
    weftio_dev_send_fill(&rdma->queue.ring, index, 1);
    *position = index;
    return WEFTIO_DEV_OK;
}

/** As weftio_dev_rdma_enqueue_position, for who need not know where. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_enqueue(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                             struct weftio_dev_rdma_request request, weftio_u32 flags)
{
    weftio_u32 position;

    return weftio_dev_rdma_enqueue_position(rdma, request, flags, &position);
}

/**
 * Writes the entry of a request at `position`. Never blocks; lanes of one block, each its own positions, without gaps.
 * Whether the NIC is done with what was in that place before is the caller's business: weftio_dev_rdma_wait_room().
 *
 * @param position  free-running, from get_info on
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_INVALID_ARGUMENT as weftio_dev_rdma_enqueue_position, or `position` has been
 *         committed, or is not within the ring's depth of the next one
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_enqueue_weak(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                  struct weftio_dev_rdma_request request, weftio_u32 position,
                                                  weftio_u32 flags)
{
    if (!weftio_dev_is_handle(rdma->queue.abi, WEFTIO_DEV_ABI_RDMA) || !request.segments ||
        !weftio_dev_weak_fits(&rdma->queue.ring, position))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_dev_write_rdma(&rdma->queue.ring, position, request, flags);
    return WEFTIO_DEV_OK;
}

/** Writes `bytes` bytes to the peer's memory. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_write(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, struct weftio_dev_remote remote,
                                           weftio_u64 remote_offset, struct weftio_dev_buf buffer,
                                           weftio_u64 buffer_offset, weftio_u64 bytes, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(
        rdma, weftio_dev_rdma_write_request(remote, remote_offset, buffer, buffer_offset, bytes), flags);
}
WEFTIO_FN weftio_s32 weftio_dev_rdma_write_weak(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                struct weftio_dev_remote remote, weftio_u64 remote_offset,
                                                struct weftio_dev_buf buffer, weftio_u64 buffer_offset,
                                                weftio_u64 bytes, weftio_u32 position, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue_weak(
        rdma, weftio_dev_rdma_write_request(remote, remote_offset, buffer, buffer_offset, bytes), position, flags);
}

/** The same, and a number: it completes the oldest receive of the peer. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_write_imm(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                               struct weftio_dev_remote remote, weftio_u64 remote_offset,
                                               struct weftio_dev_buf buffer, weftio_u64 buffer_offset, weftio_u64 bytes,
                                               weftio_u32 immediate, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(
        rdma, weftio_dev_rdma_write_imm_request(remote, remote_offset, buffer, buffer_offset, bytes, immediate), flags);
}
WEFTIO_FN weftio_s32 weftio_dev_rdma_write_imm_weak(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                    struct weftio_dev_remote remote, weftio_u64 remote_offset,
                                                    struct weftio_dev_buf buffer, weftio_u64 buffer_offset,
                                                    weftio_u64 bytes, weftio_u32 immediate, weftio_u32 position,
                                                    weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue_weak(
        rdma, weftio_dev_rdma_write_imm_request(remote, remote_offset, buffer, buffer_offset, bytes, immediate),
        position, flags);
}

/**
 * Writes 1 .. WEFTIO_DEV_RDMA_INLINE_BYTES bytes that travel inside the entry: `from` may be used again at once.
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_write_inline(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                  struct weftio_dev_remote remote, weftio_u64 remote_offset,
                                                  const WEFTIO_GLOBAL weftio_u8 *from, weftio_u32 bytes,
                                                  weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(rdma, weftio_dev_rdma_write_inline_request(remote, remote_offset, from, bytes),
                                   flags);
}
WEFTIO_FN weftio_s32 weftio_dev_rdma_write_inline_weak(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                       struct weftio_dev_remote remote, weftio_u64 remote_offset,
                                                       const WEFTIO_GLOBAL weftio_u8 *from, weftio_u32 bytes,
                                                       weftio_u32 position, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue_weak(rdma, weftio_dev_rdma_write_inline_request(remote, remote_offset, from, bytes),
                                        position, flags);
}

/** Writes the 8 bytes of a number, from a register. A word on a multiple of 8 changes at once for who reads it. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_write_value(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                 struct weftio_dev_remote remote, weftio_u64 remote_offset,
                                                 weftio_u64 value, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(rdma, weftio_dev_rdma_write_value_request(remote, remote_offset, value), flags);
}
WEFTIO_FN weftio_s32 weftio_dev_rdma_write_value_weak(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                      struct weftio_dev_remote remote, weftio_u64 remote_offset,
                                                      weftio_u64 value, weftio_u32 position, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue_weak(rdma, weftio_dev_rdma_write_value_request(remote, remote_offset, value),
                                        position, flags);
}

/** Reads `bytes` bytes of the peer's memory to a buffer, whose region has access::local_write. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_read(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, struct weftio_dev_remote remote,
                                          weftio_u64 remote_offset, struct weftio_dev_buf buffer,
                                          weftio_u64 buffer_offset, weftio_u64 bytes, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(
        rdma, weftio_dev_rdma_read_request(remote, remote_offset, buffer, buffer_offset, bytes), flags);
}
WEFTIO_FN weftio_s32 weftio_dev_rdma_read_weak(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                               struct weftio_dev_remote remote, weftio_u64 remote_offset,
                                               struct weftio_dev_buf buffer, weftio_u64 buffer_offset, weftio_u64 bytes,
                                               weftio_u32 position, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue_weak(
        rdma, weftio_dev_rdma_read_request(remote, remote_offset, buffer, buffer_offset, bytes), position, flags);
}

/** Sends a message of `bytes` bytes to the oldest receive of the peer. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_send(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, struct weftio_dev_buf buffer,
                                          weftio_u64 buffer_offset, weftio_u64 bytes, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(rdma, weftio_dev_rdma_send_request(buffer, buffer_offset, bytes), flags);
}
WEFTIO_FN weftio_s32 weftio_dev_rdma_send_weak(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, struct weftio_dev_buf buffer,
                                               weftio_u64 buffer_offset, weftio_u64 bytes, weftio_u32 position,
                                               weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue_weak(rdma, weftio_dev_rdma_send_request(buffer, buffer_offset, bytes), position,
                                        flags);
}

/** The same, with a number. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_send_imm(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, struct weftio_dev_buf buffer,
                                              weftio_u64 buffer_offset, weftio_u64 bytes, weftio_u32 immediate,
                                              weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(rdma, weftio_dev_rdma_send_imm_request(buffer, buffer_offset, bytes, immediate),
                                   flags);
}
WEFTIO_FN weftio_s32 weftio_dev_rdma_send_imm_weak(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                   struct weftio_dev_buf buffer, weftio_u64 buffer_offset,
                                                   weftio_u64 bytes, weftio_u32 immediate, weftio_u32 position,
                                                   weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue_weak(rdma, weftio_dev_rdma_send_imm_request(buffer, buffer_offset, bytes, immediate),
                                        position, flags);
}

/**
 * The same, with a key that the peer shall invalidate. The software NIC refuses: keys of regions end with the region.
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_send_inval(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                struct weftio_dev_buf buffer, weftio_u64 buffer_offset,
                                                weftio_u64 bytes, weftio_u32 rkey, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(rdma, weftio_dev_rdma_send_inval_request(buffer, buffer_offset, bytes, rkey), flags);
}
WEFTIO_FN weftio_s32 weftio_dev_rdma_send_inval_weak(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                     struct weftio_dev_buf buffer, weftio_u64 buffer_offset,
                                                     weftio_u64 bytes, weftio_u32 rkey, weftio_u32 position,
                                                     weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue_weak(rdma, weftio_dev_rdma_send_inval_request(buffer, buffer_offset, bytes, rkey),
                                        position, flags);
}

/** Adds to an 8-byte word of the peer's memory, on a multiple of 8; its value before comes to `buffer`. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_fetch_add(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                               struct weftio_dev_remote remote, weftio_u64 remote_offset,
                                               weftio_u64 add, struct weftio_dev_buf buffer, weftio_u64 buffer_offset,
                                               weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(
        rdma, weftio_dev_rdma_fetch_add_request(remote, remote_offset, add, buffer, buffer_offset), flags);
}
WEFTIO_FN weftio_s32 weftio_dev_rdma_fetch_add_weak(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                    struct weftio_dev_remote remote, weftio_u64 remote_offset,
                                                    weftio_u64 add, struct weftio_dev_buf buffer,
                                                    weftio_u64 buffer_offset, weftio_u32 position, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue_weak(
        rdma, weftio_dev_rdma_fetch_add_request(remote, remote_offset, add, buffer, buffer_offset), position, flags);
}

/**
 * Makes an 8-byte word of the peer's memory, on a multiple of 8, `swap` if it is `compare`; its value before comes to
 * `buffer`.
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_compare_swap(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                  struct weftio_dev_remote remote, weftio_u64 remote_offset,
                                                  weftio_u64 compare, weftio_u64 swap, struct weftio_dev_buf buffer,
                                                  weftio_u64 buffer_offset, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(
        rdma, weftio_dev_rdma_compare_swap_request(remote, remote_offset, compare, swap, buffer, buffer_offset), flags);
}
WEFTIO_FN weftio_s32 weftio_dev_rdma_compare_swap_weak(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                       struct weftio_dev_remote remote, weftio_u64 remote_offset,
                                                       weftio_u64 compare, weftio_u64 swap,
                                                       struct weftio_dev_buf buffer, weftio_u64 buffer_offset,
                                                       weftio_u32 position, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue_weak(
        rdma, weftio_dev_rdma_compare_swap_request(remote, remote_offset, compare, swap, buffer, buffer_offset),
        position, flags);
}

/**
 * Enqueues a request, such as weftio_dev_rdma_write_request() makes, and behind it a write of the number `value` to a
 * word of the peer's, on a multiple of 8, where the peer waits (weftio_dev_rdma_wait_value): who sees the number sees
 * the bytes. Takes two positions. As weftio_dev_rdma_enqueue_position otherwise.
 *
 * @param[out] position  of the second entry, which is done last
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_write_signal_position(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                           struct weftio_dev_rdma_request data,
                                                           struct weftio_dev_remote word, weftio_u64 word_offset,
                                                           weftio_u64 value, weftio_u32 flags, weftio_u32 *position)
{
    struct weftio_dev_rdma_request signal = weftio_dev_rdma_write_value_request(word, word_offset, value);
    weftio_u32 index;

    if (!weftio_dev_is_handle(rdma->queue.abi, WEFTIO_DEV_ABI_RDMA) || !data.segments || !signal.segments)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    if (!weftio_dev_send_reserve(&rdma->queue.ring, 2, &index))
        return WEFTIO_DEV_FULL;
    weftio_dev_write_rdma(&rdma->queue.ring, index, data, WEFTIO_DEV_SEND_NONE);
    weftio_dev_write_rdma(&rdma->queue.ring, index + 1, signal, flags);
    weftio_dev_send_fill(&rdma->queue.ring, index, 2);
    *position = index + 1;
    return WEFTIO_DEV_OK;
}

/** As weftio_dev_rdma_write_signal_position, for who need not know where. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_write_signal(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                  struct weftio_dev_rdma_request data, struct weftio_dev_remote word,
                                                  weftio_u64 word_offset, weftio_u64 value, weftio_u32 flags)
{
    weftio_u32 position;

    return weftio_dev_rdma_write_signal_position(rdma, data, word, word_offset, value, flags, &position);
}

/** The same at `position` and the one behind it, as weftio_dev_rdma_enqueue_weak. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_write_signal_weak(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                       struct weftio_dev_rdma_request data,
                                                       struct weftio_dev_remote word, weftio_u64 word_offset,
                                                       weftio_u64 value, weftio_u32 position, weftio_u32 flags)
{
    struct weftio_dev_rdma_request signal = weftio_dev_rdma_write_value_request(word, word_offset, value);
    weftio_s32 status =
        data.segments ? weftio_dev_rdma_enqueue_weak(rdma, signal, position + 1, flags) : WEFTIO_DEV_INVALID_ARGUMENT;

    return status == WEFTIO_DEV_OK ? weftio_dev_rdma_enqueue_weak(rdma, data, position, WEFTIO_DEV_SEND_NONE) : status;
}

/** As weftio_dev_send_queue_get_info: where the next entry goes, and the mask of positions, for weak mode. */
WEFTIO_FN void weftio_dev_rdma_get_info(const WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, weftio_u32 *position,
                                        weftio_u32 *mask)
{
    weftio_dev_send_queue_get_info(&rdma->queue, position, mask);
}

/** As weftio_dev_send_queue_submit: publishes the strong entries that are filled, and makes the NIC look. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_commit(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma)
{
    return weftio_dev_send_queue_submit(&rdma->queue);
}

/** As weftio_dev_send_queue_submit_weak: publishes the next `count` weak entries, and makes the NIC look. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_commit_weak(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, weftio_u32 count)
{
    return weftio_dev_send_queue_submit_weak(&rdma->queue, count);
}

/** As weftio_dev_send_queue_push: makes the NIC look, for who commits by weftio_dev_send_queue_commit_strong. */
WEFTIO_FN void weftio_dev_rdma_push(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma)
{
    weftio_dev_send_queue_push(&rdma->queue);
}

/** As weftio_dev_send_queue_poll_completion. Done means: the peer has it; what was read can be seen. UC: it is sent. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_poll_completion(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, weftio_u32 position,
                                                     weftio_u64 *completed_ns)
{
    return weftio_dev_send_queue_poll_completion(&rdma->queue, position, completed_ns);
}

/** As weftio_dev_send_queue_wait_completed: waits until the entry at `position` is done. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_wait(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, weftio_u32 position,
                                          weftio_u64 timeout_ns)
{
    return weftio_dev_send_queue_wait_completed(&rdma->queue, position, timeout_ns);
}

/** As weftio_dev_send_queue_submit_wait: commits, and waits until everything that was committed is done. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_commit_wait(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, weftio_u64 timeout_ns)
{
    return weftio_dev_send_queue_submit_wait(&rdma->queue, timeout_ns);
}

/** As weftio_dev_send_queue_wait_room: waits until at least `count` positions are free. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_wait_room(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, weftio_u32 count,
                                               weftio_u64 timeout_ns)
{
    return weftio_dev_send_queue_wait_room(&rdma->queue, count, timeout_ns);
}

/** As weftio_dev_send_queue_status: WEFTIO_DEV_QUEUE_ERROR, WEFTIO_DEV_ABORTED or WEFTIO_DEV_OK. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_status(const WEFTIO_GLOBAL struct weftio_dev_rdma *rdma)
{
    return weftio_dev_send_queue_status(&rdma->queue);
}

/** As weftio_dev_send_queue_aborted: whether the host asks the kernel to end, for loops of the kernel's own. */
WEFTIO_FN weftio_u32 weftio_dev_rdma_aborted(const WEFTIO_GLOBAL struct weftio_dev_rdma *rdma)
{
    return weftio_dev_send_queue_aborted(&rdma->queue);
}

/**
 * Waits until the number at `word` is `value` or more, bounded by `timeout_ns` (0: by the abort flag only). Any lane,
 * several at once. What the peer wrote before the number can be seen then.
 *
 * @param rdma  the queue pair through which the peer writes: in inline mode its engine has its turns here
 * @param word  on a multiple of 8, in memory that the peer writes by weftio_dev_rdma_write_value or _write_signal
 * @return WEFTIO_DEV_OK, also when the queue pair has failed since; WEFTIO_DEV_TIMEOUT; WEFTIO_DEV_ABORTED;
 *         WEFTIO_DEV_QUEUE_ERROR; WEFTIO_DEV_INVALID_ARGUMENT as weftio_dev_rdma_enqueue_position
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_wait_value(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                const WEFTIO_GLOBAL weftio_u64 *word, weftio_u64 value,
                                                weftio_u64 timeout_ns)
{
    weftio_u64 start_ns = 0;

    if (!weftio_dev_is_handle(rdma->queue.abi, WEFTIO_DEV_ABI_RDMA))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    for (weftio_u32 attempt = 0;; ++attempt) {
        weftio_s32 status = weftio_dev_send_queue_status(&rdma->queue);
        if (weftio_dev_aborted(rdma->queue.control))
            return WEFTIO_DEV_ABORTED;
        /* Acquire, pairs with the NIC's release: the bytes in front of the number are there. */
        if (weftio_load_acquire_sys_u64(word) >= value)
            return WEFTIO_DEV_OK;
        if (status == WEFTIO_DEV_OK)
            status = weftio_dev_send_queue_wait_on(&rdma->queue, attempt, timeout_ns, &start_ns, (weftio_u32)value,
                                                   WEFTIO_DEV_NOT_FOUND);
        if (status != WEFTIO_DEV_OK)
            return status;
    }
}
