/**
 * A queue pair inside a kernel: it writes, reads and changes memory of a peer, and sends it messages.
 *
 * *Enqueue* functions (write, read, send, atomics) fill one entry each. *Commit* publishes the filled entries, and the
 * NIC executes them in order. An entry is done when the peer has acknowledged it. *Strong* functions find a free
 * position themselves; any lane of any block may call them. *Weak* functions are given the position by the caller and
 * use no atomics. A queue is used in one of the two modes at a time. Messages of the peer arrive in the receive ring,
 * which has a handle of its own (rdma/receive.h).
 *
 * Local memory is a buffer (buf.h) in a region that the host has registered with the port. Memory of the peer is a
 * weftio_dev_remote (rdma/request.h). Numbers in memory have the byte order of the CPU at both ends. The format of
 * entries is that of docs/formats.md, section "Entries".
 */
#pragma once

#include "weftio/device/queue/reserve.h"
#include "weftio/device/rdma/receive.h"
#include "weftio/device/rdma/request.h"

/** Made by the host class `rdma_queue`. Kernels use it through the functions below only. */
struct weftio_dev_rdma {
    struct weftio_dev_send_queue queue;
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_rdma) == (WEFTIO_DEV_ABI_RDMA & 0xffffu),
                     "host and device share this layout");

/** Flags of an enqueue call, beside WEFTIO_DEV_SEND_NONE and WEFTIO_DEV_SEND_NOTIFY. */
#define WEFTIO_DEV_RDMA_SOLICITED 0x2u /**< sets weftio_dev_rdma_message::solicited at the peer */
#define WEFTIO_DEV_RDMA_FENCE 0x4u     /**< starts when all earlier READs and atomics of the queue are done */

/** Byte fm_ce_se of an entry with these flags. */
WEFTIO_FN weftio_u32 weftio_dev_rdma_modes(weftio_u32 flags)
{
    return weftio_dev_completion_mode(flags) | (flags & WEFTIO_DEV_RDMA_SOLICITED ? WEFTIO_SOLICITED : 0) |
           (flags & WEFTIO_DEV_RDMA_FENCE ? WEFTIO_FENCE : 0);
}

/**
 * Writes the entry of a bind or an invalidation at `index`: three blocks or two, control segment last. The words of the
 * request: flags, mask, first word of the key, queue and variant, and from the ninth on the memory segment.
 */
WEFTIO_FN void weftio_dev_write_window(struct weftio_dev_send_parts ring, weftio_u32 index,
                                       struct weftio_dev_rdma_request request, weftio_u32 flags)
{
    const weftio_u32 binds = request.segments == 12, bound_to_queue = request.body[0] == WEFTIO_UMR_BIND_TYPE_2;
    const weftio_u32 queue = bound_to_queue ? weftio_swap32(ring.queue << 8) & ~0xff000000u : 0x00ffffffu;

    weftio_dev_send_segment(ring, index, 1, request.body[0], binds ? 4u << 8 : 0, 0, request.body[1]);
    weftio_dev_send_segment(ring, index, 2, 0, 0, 0, 0);
    weftio_dev_send_segment(ring, index, 3, 0, 0, 0, 0);
    weftio_dev_send_segment(ring, index, 4, request.body[2], queue | (request.body[3] & 0xff000000u), 0, 0);
    weftio_dev_send_segment(ring, index, 5, request.body[10], request.body[11], 0, binds ? request.body[8] : 0);
    weftio_dev_send_segment(ring, index, 6, 0, 0, 0, 0);
    weftio_dev_send_segment(ring, index, 7, 0, 0, 0, 0);
    if (binds) {
        weftio_dev_send_segment(ring, index, 8, request.body[8], request.body[9], request.body[10], request.body[11]);
        for (weftio_u32 segment = 9; segment < 12; ++segment)
            weftio_dev_send_segment(ring, index, segment, 0, 0, 0, 0);
    }
    weftio_dev_write_control_modes(weftio_dev_send_block(ring, index), index, request.opcode,
                                   ring.queue << 8 | request.segments, weftio_dev_rdma_modes(flags),
                                   request.immediate_be);
}

/** How many positions a request takes. */
WEFTIO_FN weftio_u32 weftio_dev_rdma_positions(struct weftio_dev_rdma_request request)
{
    return (request.segments + WEFTIO_WQE_BLOCK_SEGMENTS - 1) / WEFTIO_WQE_BLOCK_SEGMENTS;
}

/**
 * Writes the entry of a request at `index`, control segment last: one block, or those of a bind or invalidation, or the
 * two of a datagram with bytes.
 */
WEFTIO_FN void weftio_dev_write_rdma(struct weftio_dev_send_parts ring, weftio_u32 index,
                                     struct weftio_dev_rdma_request request, weftio_u32 flags)
{
    WEFTIO_GLOBAL weftio_u32 *block = weftio_dev_send_block(ring, index);

    if (request.opcode == WEFTIO_OPCODE_UMR) {
        weftio_dev_write_window(ring, index, request, flags);
        return;
    }
    for (weftio_u32 word = 0; word < 12; word += 4)
        weftio_store_x4(block + 4 + word, request.body[word], request.body[word + 1], request.body[word + 2],
                        request.body[word + 3]);
    if (request.segments >
        WEFTIO_WQE_BLOCK_SEGMENTS) { /* weftio_dev_rdma_entry_before() relies on the second segment */
        weftio_dev_send_segment(ring, index, 4, request.body[12], request.body[13], request.body[14], request.body[15]);
        weftio_dev_send_segment(ring, index, 5, 0, 0, 0, 0);
    }
    weftio_dev_write_control_modes(block, index, request.opcode, ring.queue << 8 | request.segments,
                                   weftio_dev_rdma_modes(flags), request.immediate_be);
}

/**
 * Enqueues a request at the next free position and returns that position. Never blocks. Any lane of any block, several
 * at once.
 *
 * The NIC sends requests in order, so the memory of the peer changes in that order. It does not wait for the answer to
 * a READ or an atomic before it sends the next request, unless that has WEFTIO_DEV_RDMA_FENCE. It reads local bytes
 * when it sends a packet, and again when it retries. Until the entry is done, do not change the bytes that it sends,
 * and do not use the bytes that a READ or an atomic writes.
 *
 * @param request        from weftio_dev_rdma_write_request() or one of the functions beside it (rdma/request.h)
 * @param flags          WEFTIO_DEV_SEND_NONE, or any of WEFTIO_DEV_SEND_NOTIFY, WEFTIO_DEV_RDMA_SOLICITED and _FENCE
 * @param[out] position  free-running index of the entry, for weftio_dev_rdma_wait(); unchanged on error
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_FULL no position is free; WEFTIO_DEV_INVALID_ARGUMENT the request reaches beyond
 *         its buffer or the memory of the peer, or has too many bytes; with WEFTIO_DEV_CHECKS (handle.h) also: `rdma`
 *         is no queue pair, or another version's. On error nothing is enqueued.
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_enqueue_position(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                      struct weftio_dev_rdma_request request, weftio_u32 flags,
                                                      weftio_u32 *position)
{
    struct weftio_dev_send_range claim;

    if (!weftio_dev_is_handle(rdma->queue.abi, WEFTIO_DEV_ABI_RDMA) || !request.segments)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    const weftio_u32 positions = weftio_dev_rdma_positions(request);
    const struct weftio_dev_send_parts ring = weftio_dev_send_parts_of(&rdma->queue.ring);
    if (!weftio_dev_send_reserve(&rdma->queue.ring, positions, &claim))
        return WEFTIO_DEV_FULL;
    weftio_dev_write_rdma(ring, claim.first, request, flags);
    weftio_dev_send_fill(ring, claim);
    *position = claim.first;
    return WEFTIO_DEV_OK;
}

/** Same, without returning the position. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_enqueue(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                             struct weftio_dev_rdma_request request, weftio_u32 flags)
{
    weftio_u32 position;

    return weftio_dev_rdma_enqueue_position(rdma, request, flags, &position);
}

/**
 * Weak mode: writes the entry of a request at `position`, of whatever kind the request is. Never blocks. Lanes of one
 * block may call at once, each with positions of its own. Before commit_weak every position must have its entry; until
 * then an entry may be replaced by another call with the same position.
 *
 * @pre the NIC is done with the entry at `position` - depth: see weftio_dev_rdma_wait_room()
 * @param position  free-running, from weftio_dev_rdma_get_info() on
 * @param flags     as weftio_dev_rdma_enqueue_position
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_INVALID_ARGUMENT as weftio_dev_rdma_enqueue_position, or `position` has been
 *         committed, or is the depth of the ring or more beyond the next one to commit. On error nothing is written.
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_enqueue_weak(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                  struct weftio_dev_rdma_request request, weftio_u32 position,
                                                  weftio_u32 flags)
{
    if (!weftio_dev_is_handle(rdma->queue.abi, WEFTIO_DEV_ABI_RDMA) || !request.segments)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    const struct weftio_dev_send_parts ring = weftio_dev_send_parts_of(&rdma->queue.ring);
    if (!weftio_dev_weak_fits(&rdma->queue.ring, position) ||
        !weftio_dev_weak_fits(&rdma->queue.ring, position + weftio_dev_rdma_positions(request) - 1))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_dev_write_rdma(ring, position, request, flags);
    return WEFTIO_DEV_OK;
}

/*
 * The functions below do what weftio_dev_rdma_enqueue does, for one kind of request each. Flags, threads, ownership and
 * errors are the same. For a position, or in weak mode, pass the request of the same name to
 * weftio_dev_rdma_enqueue_position or weftio_dev_rdma_enqueue_weak.
 */

/** Writes `bytes` bytes of a buffer to memory of the peer. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_write(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, struct weftio_dev_remote remote,
                                           weftio_u64 remote_offset, struct weftio_dev_buf buffer,
                                           weftio_u64 buffer_offset, weftio_u64 bytes, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(
        rdma, weftio_dev_rdma_write_request(remote, remote_offset, buffer, buffer_offset, bytes), flags);
}

/** As weftio_dev_rdma_write; it also completes the oldest receive of the peer, which gets `immediate`. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_write_imm(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                               struct weftio_dev_remote remote, weftio_u64 remote_offset,
                                               struct weftio_dev_buf buffer, weftio_u64 buffer_offset, weftio_u64 bytes,
                                               weftio_u32 immediate, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(
        rdma, weftio_dev_rdma_write_imm_request(remote, remote_offset, buffer, buffer_offset, bytes, immediate), flags);
}

/**
 * Writes 1 .. WEFTIO_DEV_RDMA_INLINE_BYTES bytes to memory of the peer. They are copied into the entry: `from` needs no
 * region and may be changed when the call returns.
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_write_inline(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                  struct weftio_dev_remote remote, weftio_u64 remote_offset,
                                                  const WEFTIO_GLOBAL weftio_u8 *from, weftio_u32 bytes,
                                                  weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(rdma, weftio_dev_rdma_write_inline_request(remote, remote_offset, from, bytes),
                                   flags);
}

/** Writes the 8 bytes of `value` to memory of the peer. On a multiple of 8 a reader there never sees half of them. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_write_value(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                 struct weftio_dev_remote remote, weftio_u64 remote_offset,
                                                 weftio_u64 value, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(rdma, weftio_dev_rdma_write_value_request(remote, remote_offset, value), flags);
}

/** Reads `bytes` bytes of memory of the peer into a buffer, whose region has access::local_write. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_read(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, struct weftio_dev_remote remote,
                                          weftio_u64 remote_offset, struct weftio_dev_buf buffer,
                                          weftio_u64 buffer_offset, weftio_u64 bytes, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(
        rdma, weftio_dev_rdma_read_request(remote, remote_offset, buffer, buffer_offset, bytes), flags);
}

/**
 * Whether bytes that a NIC writes into memory of this device may arrive behind what tells of them: 1 or 0. Never
 * blocks; any lane. 1: enqueue weftio_dev_rdma_flush() and wait for it between a completion and the first load of what
 * it tells of. 0: the bytes are there (docs/gpu.md, "In which order a NIC's writes are seen"). It does not change while
 * the queue lives. With WEFTIO_DEV_CHECKS 0 if `rdma` is no queue pair.
 */
WEFTIO_FN weftio_u32 weftio_dev_rdma_needs_flush(const WEFTIO_GLOBAL struct weftio_dev_rdma *rdma)
{
    return weftio_dev_is_handle(rdma->queue.abi, WEFTIO_DEV_ABI_RDMA) &&
           weftio_load_constant_u32(&rdma->queue.ring.needs_flush);
}

/**
 * Has the NIC read `bytes` bytes of a buffer, and drop them: when the entry is done, kernels of this device see all
 * that was written there before (weftio_dev_rdma_flush_request()). The queue pair must be connected, to any peer: one
 * flushes what all queues of its port have received.
 *
 * @param buffer  where bytes were received, or any other memory of the same device; its region needs no rights
 * @return as weftio_dev_rdma_enqueue_position
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_flush(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, struct weftio_dev_buf buffer,
                                           weftio_u64 buffer_offset, weftio_u64 bytes, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(rdma, weftio_dev_rdma_flush_request(buffer, buffer_offset, bytes), flags);
}

/** Sends a message of `bytes` bytes, which goes to the oldest receive of the peer. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_send(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, struct weftio_dev_buf buffer,
                                          weftio_u64 buffer_offset, weftio_u64 bytes, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(rdma, weftio_dev_rdma_send_request(buffer, buffer_offset, bytes), flags);
}

/** As weftio_dev_rdma_send; the peer finds `immediate` in weftio_dev_rdma_message::immediate. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_send_imm(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, struct weftio_dev_buf buffer,
                                              weftio_u64 buffer_offset, weftio_u64 bytes, weftio_u32 immediate,
                                              weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(rdma, weftio_dev_rdma_send_imm_request(buffer, buffer_offset, bytes, immediate),
                                   flags);
}

/** As weftio_dev_rdma_send; the peer invalidates its key `rkey`: see weftio_dev_rdma_send_inval_request(). */
WEFTIO_FN weftio_s32 weftio_dev_rdma_send_inval(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                struct weftio_dev_buf buffer, weftio_u64 buffer_offset,
                                                weftio_u64 bytes, weftio_u32 rkey, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(rdma, weftio_dev_rdma_send_inval_request(buffer, buffer_offset, bytes, rkey), flags);
}

/**
 * Adds `add` to an 8-byte word of the peer, atomically. The value before the addition is written to 8 bytes of
 * `buffer`, whose region has access::local_write.
 *
 * @param remote_offset  the word lies at a multiple of 8 in the memory of the peer
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_fetch_add(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                               struct weftio_dev_remote remote, weftio_u64 remote_offset,
                                               weftio_u64 add, struct weftio_dev_buf buffer, weftio_u64 buffer_offset,
                                               weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(
        rdma, weftio_dev_rdma_fetch_add_request(remote, remote_offset, add, buffer, buffer_offset), flags);
}

/** As weftio_dev_rdma_fetch_add, but stores `swap` in the word if it holds `compare`, and else leaves it as it is. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_compare_swap(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                  struct weftio_dev_remote remote, weftio_u64 remote_offset,
                                                  weftio_u64 compare, weftio_u64 swap, struct weftio_dev_buf buffer,
                                                  weftio_u64 buffer_offset, weftio_u32 flags)
{
    return weftio_dev_rdma_enqueue(
        rdma, weftio_dev_rdma_compare_swap_request(remote, remote_offset, compare, swap, buffer, buffer_offset), flags);
}

/**
 * Enqueues two entries or none: `data`, and behind it a write of `value` to a word of the peer. The peer waits for the
 * word (weftio_dev_rdma_wait_value): once it sees `value`, it sees the bytes of `data`. As
 * weftio_dev_rdma_enqueue_position otherwise.
 *
 * In weak mode, enqueue `data` at one position and weftio_dev_rdma_write_value_request() at the next. On an unreliable
 * connection (UC) the signal may arrive although `data` was lost.
 *
 * @param data           such as weftio_dev_rdma_write_request()
 * @param word_offset    the word lies there in `word`, at a multiple of 8
 * @param flags          of the second entry
 * @param[out] position  of the second entry, which is done last
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_write_signal_position(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                           struct weftio_dev_rdma_request data,
                                                           struct weftio_dev_remote word, weftio_u64 word_offset,
                                                           weftio_u64 value, weftio_u32 flags, weftio_u32 *position)
{
    struct weftio_dev_rdma_request signal = weftio_dev_rdma_write_value_request(word, word_offset, value);
    struct weftio_dev_send_range claim;

    if (!weftio_dev_is_handle(rdma->queue.abi, WEFTIO_DEV_ABI_RDMA) || !data.segments || !signal.segments)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    const weftio_u32 before = weftio_dev_rdma_positions(data);
    const struct weftio_dev_send_parts ring = weftio_dev_send_parts_of(&rdma->queue.ring);
    if (!weftio_dev_send_reserve(&rdma->queue.ring, before + 1, &claim))
        return WEFTIO_DEV_FULL;
    weftio_dev_write_rdma(ring, claim.first, data, WEFTIO_DEV_SEND_NONE);
    weftio_dev_write_rdma(ring, claim.first + before, signal, flags);
    weftio_dev_send_fill(ring, claim);
    *position = claim.first + before;
    return WEFTIO_DEV_OK;
}

/** Same, without returning the position. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_write_signal(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma,
                                                  struct weftio_dev_rdma_request data, struct weftio_dev_remote word,
                                                  weftio_u64 word_offset, weftio_u64 value, weftio_u32 flags)
{
    weftio_u32 position;

    return weftio_dev_rdma_write_signal_position(rdma, data, word, word_offset, value, flags, &position);
}

/** Position of the next entry and mask of positions, for weak mode: as weftio_dev_send_queue_get_info. */
WEFTIO_FN void weftio_dev_rdma_get_info(const WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, weftio_u32 *position,
                                        weftio_u32 *mask)
{
    weftio_dev_send_queue_get_info(&rdma->queue, position, mask);
}

/** Publishes the strong entries that are filled and rings the doorbell: as weftio_dev_send_queue_submit. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_commit(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma)
{
    return weftio_dev_send_queue_submit(&rdma->queue);
}

/** Publishes the next `count` weak entries and rings the doorbell: as weftio_dev_send_queue_submit_weak. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_commit_weak(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, weftio_u32 count)
{
    return weftio_dev_send_queue_submit_weak(&rdma->queue, count);
}

/**
 * Rings the doorbell alone, after weftio_dev_send_queue_commit_strong or _commit_weak: as weftio_dev_send_queue_push.
 */
WEFTIO_FN void weftio_dev_rdma_push(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma)
{
    weftio_dev_send_queue_push(&rdma->queue);
}

/**
 * Whether the entry at `position` is done: as weftio_dev_send_queue_poll_completion. On a reliable connection (RC) it
 * is when the peer has acknowledged it, and bytes that it reads are in the buffer: what of them may be read at once,
 * and what behind a flush, weftio_dev_completion_ready() says for memory of each kind. On an unreliable one (UC), and
 * for datagrams (UD), it is when it has been sent. A flush is done when the bytes are there.
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_poll_completion(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, weftio_u32 position,
                                                     weftio_u64 *completed_ns)
{
    return weftio_dev_send_queue_poll_completion(&rdma->queue, position, completed_ns);
}

/**
 * Waits until the entry at `position` is done: as weftio_dev_send_queue_wait_completed. An entry of several
 * positions is named by its first one, which the functions that enqueue return.
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_wait(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, weftio_u32 position,
                                          weftio_u64 timeout_ns)
{
    return weftio_dev_send_queue_wait_completed(&rdma->queue, position, timeout_ns);
}

/**
 * Whether the block at `at` begins an entry of so many blocks, of more than one. No second or third block of an entry
 * looks like it: the words that are compared beside the control segment are 0 there.
 */
WEFTIO_FN weftio_u32 weftio_dev_rdma_begins_at(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 at,
                                               weftio_u32 blocks)
{
    const WEFTIO_GLOBAL weftio_u32 *block = weftio_dev_send_block(weftio_dev_send_parts_of(ring), at);
    const weftio_u32 first = weftio_swap32(weftio_load_relaxed_u32(block));
    const weftio_u32 segments = weftio_swap32(weftio_load_relaxed_u32(block + 1)) ^ ring->queue << 8;

    if (first >> 8 != (at & 0xffffu))
        return 0;
    if ((first & 0xffu) == WEFTIO_OPCODE_UMR)
        return segments == blocks * WEFTIO_WQE_BLOCK_SEGMENTS &&
               (weftio_load_relaxed_u32(block + 4) & WEFTIO_UMR_INLINE);
    return ((first & 0xffu) == WEFTIO_OPCODE_SEND || (first & 0xffu) == WEFTIO_OPCODE_SEND_IMMEDIATE) &&
           segments == WEFTIO_WQE_BLOCK_SEGMENTS + 1 && blocks == 2 &&
           (weftio_swap32(weftio_load_relaxed_u32(block + 6)) & WEFTIO_DATAGRAM_EXTENDED);
}

/** Position of the entry that ends before `end`: one of several blocks began two positions or one earlier. */
WEFTIO_FN weftio_u32 weftio_dev_rdma_entry_before(const WEFTIO_GLOBAL struct weftio_dev_send_ring *ring, weftio_u32 end)
{
    for (weftio_u32 blocks = 3; blocks > 1; --blocks)
        if (weftio_dev_rdma_begins_at(ring, end - blocks, blocks))
            return end - blocks;
    return end - 1;
}

/** Commits strong entries and waits until all that were enqueued are done: as weftio_dev_send_queue_submit_wait. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_commit_wait(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, weftio_u64 timeout_ns)
{
    weftio_u32 end;
    weftio_s32 status = weftio_dev_send_queue_submit_all(&rdma->queue, &timeout_ns, &end);

    if (status != WEFTIO_DEV_OK)
        return status;
    if (weftio_dev_send_queue_done(&rdma->queue, end))
        return weftio_dev_send_queue_status(&rdma->queue);
    return weftio_dev_send_queue_wait_completed(&rdma->queue, weftio_dev_rdma_entry_before(&rdma->queue.ring, end),
                                                timeout_ns);
}

/**
 * Waits until at least `count` positions are free: as weftio_dev_send_queue_wait_room. The last positions of an
 * entry of several become free with the completion of a later entry: `count` is at most the depth less 2 behind a bind,
 * less 1 behind an invalidation or a datagram.
 */
WEFTIO_FN weftio_s32 weftio_dev_rdma_wait_room(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma, weftio_u32 count,
                                               weftio_u64 timeout_ns)
{
    return weftio_dev_send_queue_wait_room(&rdma->queue, count, timeout_ns);
}

/** WEFTIO_DEV_QUEUE_ERROR, WEFTIO_DEV_ABORTED or WEFTIO_DEV_OK: as weftio_dev_send_queue_status. */
WEFTIO_FN weftio_s32 weftio_dev_rdma_status(const WEFTIO_GLOBAL struct weftio_dev_rdma *rdma)
{
    return weftio_dev_send_queue_status(&rdma->queue);
}

/** Whether the host asks the kernel to end, for loops of the kernel's own: as weftio_dev_send_queue_aborted. */
WEFTIO_FN weftio_u32 weftio_dev_rdma_aborted(WEFTIO_GLOBAL struct weftio_dev_rdma *rdma)
{
    return weftio_dev_send_queue_aborted(&rdma->queue);
}

/**
 * Waits until the number at `word` is `value` or more. Blocks until then, for `timeout_ns` at most (0: no time bound).
 * Any lane, several at once. Afterwards the caller sees all bytes that the peer wrote before the number, in memory of
 * this device behind a flush where weftio_dev_rdma_needs_flush() returns 1.
 *
 * @param rdma  the queue pair through which the peer writes; in inline mode this call runs its engine
 * @param word  at a multiple of 8, in memory that the peer writes by weftio_dev_rdma_write_value or _write_signal
 * @return WEFTIO_DEV_OK, also when the queue pair has failed since; WEFTIO_DEV_TIMEOUT `timeout_ns` have passed;
 *         WEFTIO_DEV_ABORTED the host asks the kernel to end, also when the number is there; WEFTIO_DEV_QUEUE_ERROR the
 *         queue pair has failed and the number is not there; WEFTIO_DEV_INVALID_ARGUMENT with WEFTIO_DEV_CHECKS: `rdma`
 *         is no queue pair, or another version's
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
        /* Acquire, pairs with the NIC's release of the number: the bytes written before it are visible afterwards. */
        if (weftio_load_acquire_sys_u64(word) >= value)
            return WEFTIO_DEV_OK;
        if (status == WEFTIO_DEV_OK)
            status = weftio_dev_send_queue_wait_on(&rdma->queue, attempt, timeout_ns, &start_ns, (weftio_u32)value,
                                                   WEFTIO_DEV_NOT_FOUND);
        if (status != WEFTIO_DEV_OK)
            return status;
    }
}
