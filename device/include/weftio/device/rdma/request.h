/**
 * Requests: what an entry of an RDMA queue asks the NIC for, before it has a position in the ring.
 *
 * Every request takes one position, but a bind of a memory window takes three, an invalidation two, and a datagram with
 * bytes two. The functions that make requests never block, touch no queue, and may be called by any lane. They return
 * no error: a request that reaches beyond its memory, or has too many bytes, has 0 segments, and enqueuing it returns
 * WEFTIO_DEV_INVALID_ARGUMENT. Offsets and sizes are in bytes. Segments are those of docs/formats.md, section
 * "Entries".
 */
#pragma once

#include "weftio/device/buf.h"
#include "weftio/device/wqe.h"

/** Memory of a peer, by value: made by the host class `remote_region`. Kernels on any device take it as an argument. */
struct weftio_dev_remote {
    weftio_u64 address; /**< in the address space of the peer */
    weftio_u64 bytes;
    weftio_u32 rkey_be; /**< key of the region at the peer */
    weftio_u32 reserved;
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_remote) == 24, "host and device share this layout");

/**
 * Buffer `index` of an array of buffers of `bytes` bytes each at the peer, as weftio_dev_buf_get() returns one of local
 * memory. Never blocks; any lane.
 *
 * @return the buffer; one of 0 bytes, in which nothing is written or read, if it reaches beyond `array`
 */
WEFTIO_FN struct weftio_dev_remote weftio_dev_remote_get(struct weftio_dev_remote array, weftio_u32 index,
                                                         weftio_u64 bytes)
{
    /* The quotient, because a product may wrap. */
    const weftio_u32 is_inside = bytes && index < array.bytes / bytes;

    array.address += is_inside ? index * bytes : 0;
    array.bytes = is_inside ? bytes : 0;
    return array;
}

/** Made by the functions below. */
struct weftio_dev_rdma_request {
    weftio_u32 opcode;
    weftio_u32 segments;     /**< of the entry, control segment included; 0: the request is refused */
    weftio_u32 immediate_be; /**< the immediate, or the key to invalidate */
    weftio_u32 body[16];     /**< the segments after the control segment */
};

/** The most bytes of one message. */
#define WEFTIO_DEV_RDMA_MOST_BYTES 0x80000000u

/** The most bytes that travel inside an entry. */
#define WEFTIO_DEV_RDMA_INLINE_BYTES 28u

/** A request that names no memory yet. */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_begin(weftio_u32 opcode, weftio_u32 immediate)
{
    struct weftio_dev_rdma_request request = {0, 1, 0, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}};

    request.opcode = opcode;
    request.immediate_be = weftio_swap32(immediate);
    return request;
}

/** Adds memory of the peer: [offset, offset + bytes). */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_add_remote(struct weftio_dev_rdma_request request,
                                                                    struct weftio_dev_remote remote, weftio_u64 offset,
                                                                    weftio_u64 bytes)
{
    weftio_u64 address_be = weftio_swap64(remote.address + offset);

    request.body[0] = (weftio_u32)address_be;
    request.body[1] = (weftio_u32)(address_be >> 32);
    request.body[2] = remote.rkey_be;
    request.segments = offset <= remote.bytes && bytes <= remote.bytes - offset ? 2 : 0;
    return request;
}

/** Adds local memory as segment `segment`: [offset, offset + bytes) of the buffer. 0 bytes take no segment. */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_add_local(struct weftio_dev_rdma_request request,
                                                                   weftio_u32 segment, struct weftio_dev_buf buffer,
                                                                   weftio_u64 offset, weftio_u64 bytes)
{
    weftio_u64 address_be = weftio_swap64((weftio_u64)buffer.address + offset);
    weftio_u32 at = (segment - 1) * WEFTIO_WQE_SEGMENT_BYTES / 4;

    request.body[at] = weftio_swap32((weftio_u32)bytes & (WEFTIO_DEV_RDMA_MOST_BYTES - 1)); /* 2^31 is coded 0 */
    request.body[at + 1] = buffer.lkey_be;
    request.body[at + 2] = (weftio_u32)address_be;
    request.body[at + 3] = (weftio_u32)(address_be >> 32);
    if (request.segments && bytes)
        request.segments = segment + 1;
    if (offset > buffer.bytes || bytes > buffer.bytes - offset || bytes > WEFTIO_DEV_RDMA_MOST_BYTES)
        request.segments = 0;
    return request;
}

/**
 * RDMA WRITE of bytes of a buffer to memory of the peer.
 *
 * @param remote_offset, buffer_offset  where the bytes begin in `remote` and in `buffer`
 * @param bytes                         0 .. WEFTIO_DEV_RDMA_MOST_BYTES
 */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_write_request(struct weftio_dev_remote remote,
                                                                       weftio_u64 remote_offset,
                                                                       struct weftio_dev_buf buffer,
                                                                       weftio_u64 buffer_offset, weftio_u64 bytes)
{
    return weftio_dev_rdma_add_local(
        weftio_dev_rdma_add_remote(weftio_dev_rdma_begin(WEFTIO_OPCODE_RDMA_WRITE, 0), remote, remote_offset, bytes), 2,
        buffer, buffer_offset, bytes);
}

/** As weftio_dev_rdma_write_request; it also completes the oldest receive of the peer, which gets `immediate`. */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_write_imm_request(struct weftio_dev_remote remote,
                                                                           weftio_u64 remote_offset,
                                                                           struct weftio_dev_buf buffer,
                                                                           weftio_u64 buffer_offset, weftio_u64 bytes,
                                                                           weftio_u32 immediate)
{
    struct weftio_dev_rdma_request request =
        weftio_dev_rdma_write_request(remote, remote_offset, buffer, buffer_offset, bytes);

    request.opcode = WEFTIO_OPCODE_RDMA_WRITE_IMMEDIATE;
    request.immediate_be = weftio_swap32(immediate);
    return request;
}

/**
 * RDMA WRITE of bytes that this call copies into the request: `from` needs no region and may be changed afterwards.
 *
 * @param bytes  1 .. WEFTIO_DEV_RDMA_INLINE_BYTES
 */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_write_inline_request(struct weftio_dev_remote remote,
                                                                              weftio_u64 remote_offset,
                                                                              const WEFTIO_GLOBAL weftio_u8 *from,
                                                                              weftio_u32 bytes)
{
    struct weftio_dev_rdma_request request =
        weftio_dev_rdma_add_remote(weftio_dev_rdma_begin(WEFTIO_OPCODE_RDMA_WRITE, 0), remote, remote_offset, bytes);

    if (bytes == 0 || bytes > WEFTIO_DEV_RDMA_INLINE_BYTES)
        request.segments = 0;
    if (!request.segments)
        return request;
    request.segments = 2 + (4 + bytes + 15) / WEFTIO_WQE_SEGMENT_BYTES;
    request.body[4] = weftio_swap32(WEFTIO_INLINE_SEGMENT | bytes);
    for (weftio_u32 word = 0; word < WEFTIO_DEV_RDMA_INLINE_BYTES / 4; ++word)
        request.body[5 + word] = weftio_dev_gather(from, word * 4, bytes);
    return request;
}

/** RDMA WRITE of the 8 bytes of `value`, in the byte order of this CPU. */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_write_value_request(struct weftio_dev_remote remote,
                                                                             weftio_u64 remote_offset, weftio_u64 value)
{
    struct weftio_dev_rdma_request request =
        weftio_dev_rdma_add_remote(weftio_dev_rdma_begin(WEFTIO_OPCODE_RDMA_WRITE, 0), remote, remote_offset, 8);

    request.body[4] = weftio_swap32(WEFTIO_INLINE_SEGMENT | 8u);
    request.body[5] = (weftio_u32)value;
    request.body[6] = (weftio_u32)(value >> 32);
    request.segments = request.segments ? 3 : 0;
    return request;
}

/** RDMA READ of memory of the peer into a buffer, whose region has access::local_write. */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_read_request(struct weftio_dev_remote remote,
                                                                      weftio_u64 remote_offset,
                                                                      struct weftio_dev_buf buffer,
                                                                      weftio_u64 buffer_offset, weftio_u64 bytes)
{
    struct weftio_dev_rdma_request request =
        weftio_dev_rdma_write_request(remote, remote_offset, buffer, buffer_offset, bytes);

    request.opcode = WEFTIO_OPCODE_RDMA_READ;
    return request;
}

/**
 * DUMP: the NIC reads bytes of a buffer and drops them. Nothing is sent, and no byte changes. A read pushes the writes
 * before it ahead: when the request is done, all that the same NIC had written into that memory before is there. It
 * covers what had a completion, or a later byte of the same queue, that the caller had seen when it enqueued the
 * request; with WEFTIO_DEV_RDMA_FENCE also the READs and atomics before it in its own queue.
 *
 * @param bytes  1 .. WEFTIO_DEV_RDMA_MOST_BYTES; one byte is enough for all memory to which the NIC has the same path
 */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_flush_request(struct weftio_dev_buf buffer,
                                                                       weftio_u64 buffer_offset, weftio_u64 bytes)
{
    struct weftio_dev_rdma_request request =
        weftio_dev_rdma_add_local(weftio_dev_rdma_begin(WEFTIO_OPCODE_DUMP, 0), 1, buffer, buffer_offset, bytes);

    if (bytes == 0)
        request.segments = 0;
    return request;
}

/** SEND of bytes of a buffer, as a message that goes to the oldest receive of the peer. */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_send_request(struct weftio_dev_buf buffer,
                                                                      weftio_u64 buffer_offset, weftio_u64 bytes)
{
    return weftio_dev_rdma_add_local(weftio_dev_rdma_begin(WEFTIO_OPCODE_SEND, 0), 1, buffer, buffer_offset, bytes);
}

/** Rights of a window: the values of weftio::access. */
#define WEFTIO_DEV_RDMA_REMOTE_WRITE 0x2u
#define WEFTIO_DEV_RDMA_REMOTE_READ 0x4u
#define WEFTIO_DEV_RDMA_REMOTE_ATOMIC 0x8u

/** Types of windows: the values of weftio::window_type. */
#define WEFTIO_DEV_WINDOW_TYPE_1 1u
#define WEFTIO_DEV_WINDOW_TYPE_2 2u

/** The key after `rkey`, with the next variant: a good choice for a bind. */
WEFTIO_FN weftio_u32 weftio_dev_rdma_next_rkey(weftio_u32 rkey)
{
    return (rkey & ~0xffu) | ((rkey + 1) & 0xffu);
}

/** Changes the key of a window: the segments that binds and invalidations have in common. */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_begin_window(weftio_u32 rkey, weftio_u32 next_rkey,
                                                                      weftio_u32 segments, weftio_u32 flags,
                                                                      weftio_u32 mask)
{
    struct weftio_dev_rdma_request request = weftio_dev_rdma_begin(WEFTIO_OPCODE_UMR, rkey);

    request.segments = segments;
    request.body[0] = flags;
    request.body[1] = weftio_swap32(mask);
    request.body[2] = WEFTIO_MKEY_FREE;
    request.body[3] = weftio_swap32(WEFTIO_MKEY_ANY_QUEUE << 8 | (next_rkey & 0xffu));
    return request;
}

/**
 * Binds a window to bytes of a buffer: peers may then access them by `next_rkey`, as `rights` say. A window of type 2
 * must be free; one of type 1 may be bound, and its key before is then invalid. The rules are those of the host class
 * `memory_window`. Requests behind it find it in force; a peer may be told the key by a SEND behind it.
 *
 * @param rkey       present key of the window: the one of the last bind, or memory_window::rkey()
 * @param next_rkey  `rkey` with any variant in the lower 8 bits, such as weftio_dev_rdma_next_rkey(rkey)
 * @param type       WEFTIO_DEV_WINDOW_TYPE_*, that of the window
 * @param buffer     its region has access::bind
 * @param bytes      1 .. WEFTIO_DEV_RDMA_MOST_BYTES
 * @param rights     any of WEFTIO_DEV_RDMA_REMOTE_*; the first and the last need a region with access::local_write
 */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_bind_request(weftio_u32 rkey, weftio_u32 next_rkey,
                                                                      weftio_u32 type, struct weftio_dev_buf buffer,
                                                                      weftio_u64 buffer_offset, weftio_u64 bytes,
                                                                      weftio_u32 rights)
{
    const weftio_u32 type_2 = type == WEFTIO_DEV_WINDOW_TYPE_2;
    struct weftio_dev_rdma_request request = weftio_dev_rdma_begin_window(
        rkey, next_rkey, 12, type_2 ? WEFTIO_UMR_BIND_TYPE_2 : WEFTIO_UMR_BIND_TYPE_1,
        WEFTIO_UMR_MASK_RIGHTS | (type_2 ? WEFTIO_UMR_MASK_BIND_TYPE_2 : WEFTIO_UMR_MASK_BIND_TYPE_1));
    const weftio_u32 given = (rights & WEFTIO_DEV_RDMA_REMOTE_WRITE ? WEFTIO_MKEY_REMOTE_WRITE : 0) |
                             (rights & WEFTIO_DEV_RDMA_REMOTE_READ ? WEFTIO_MKEY_REMOTE_READ : 0) |
                             (rights & WEFTIO_DEV_RDMA_REMOTE_ATOMIC ? WEFTIO_MKEY_ATOMIC : 0);
    const weftio_u32 known = WEFTIO_DEV_RDMA_REMOTE_WRITE | WEFTIO_DEV_RDMA_REMOTE_READ | WEFTIO_DEV_RDMA_REMOTE_ATOMIC;

    request.body[2] = given << 16;
    request = weftio_dev_rdma_add_local(request, 3, buffer, buffer_offset, bytes);
    request.body[8] = weftio_swap32((weftio_u32)bytes);
    if (request.segments)
        request.segments = 12;
    if (bytes == 0 || (rights & ~known) || (type != WEFTIO_DEV_WINDOW_TYPE_1 && !type_2) || (rkey ^ next_rkey) >> 8)
        request.segments = 0;
    return request;
}

/** Frees a window of type 1. `rkey` is its present key. */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_unbind_request(weftio_u32 rkey)
{
    return weftio_dev_rdma_begin_window(rkey, rkey, 8, WEFTIO_UMR_BIND_TYPE_1, WEFTIO_UMR_MASK_UNBIND);
}

/**
 * Frees a window of type 2 that this queue pair has bound: afterwards the peer cannot access the bytes. `rkey` is its
 * present key. When the request is done, no access by the key is under way.
 */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_invalidate_request(weftio_u32 rkey)
{
    return weftio_dev_rdma_begin_window(rkey, rkey, 8, WEFTIO_UMR_INVALIDATE, WEFTIO_UMR_MASK_INVALIDATE);
}

/** As weftio_dev_rdma_send_request; the peer finds `immediate` in weftio_dev_rdma_message::immediate. */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_send_imm_request(struct weftio_dev_buf buffer,
                                                                          weftio_u64 buffer_offset, weftio_u64 bytes,
                                                                          weftio_u32 immediate)
{
    return weftio_dev_rdma_add_local(weftio_dev_rdma_begin(WEFTIO_OPCODE_SEND_IMMEDIATE, immediate), 1, buffer,
                                     buffer_offset, bytes);
}

/**
 * As weftio_dev_rdma_send_request; the peer invalidates its key `rkey` when the message has arrived: that of a window
 * of type 2 that its queue pair has bound. Any other key fails the receive and the peer's queue pair.
 */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_send_inval_request(struct weftio_dev_buf buffer,
                                                                            weftio_u64 buffer_offset, weftio_u64 bytes,
                                                                            weftio_u32 rkey)
{
    return weftio_dev_rdma_add_local(weftio_dev_rdma_begin(WEFTIO_OPCODE_SEND_INVALIDATE, rkey), 1, buffer,
                                     buffer_offset, bytes);
}

/**
 * An atomic on an 8-byte word of the peer, which lies there at a multiple of 8. The value before it is written to 8
 * bytes of `buffer`, whose region has access::local_write.
 *
 * @param compare  0 for FETCH_ADD
 */
WEFTIO_FN struct weftio_dev_rdma_request
weftio_dev_rdma_atomic_request(weftio_u32 opcode, struct weftio_dev_remote remote, weftio_u64 remote_offset,
                               weftio_u64 swap_or_add, weftio_u64 compare, struct weftio_dev_buf buffer,
                               weftio_u64 buffer_offset)
{
    struct weftio_dev_rdma_request request =
        weftio_dev_rdma_add_remote(weftio_dev_rdma_begin(opcode, 0), remote, remote_offset, 8);
    weftio_u64 swap_or_add_be = weftio_swap64(swap_or_add), compare_be = weftio_swap64(compare);

    request.body[4] = (weftio_u32)swap_or_add_be;
    request.body[5] = (weftio_u32)(swap_or_add_be >> 32);
    request.body[6] = (weftio_u32)compare_be;
    request.body[7] = (weftio_u32)(compare_be >> 32);
    return weftio_dev_rdma_add_local(request, 3, buffer, buffer_offset, 8);
}

/** FETCH_ADD: adds `add` to the word. As weftio_dev_rdma_atomic_request otherwise. */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_fetch_add_request(struct weftio_dev_remote remote,
                                                                           weftio_u64 remote_offset, weftio_u64 add,
                                                                           struct weftio_dev_buf buffer,
                                                                           weftio_u64 buffer_offset)
{
    return weftio_dev_rdma_atomic_request(WEFTIO_OPCODE_FETCH_ADD, remote, remote_offset, add, 0, buffer,
                                          buffer_offset);
}

/** COMPARE_SWAP: stores `swap` in the word if it holds `compare`. As weftio_dev_rdma_atomic_request otherwise. */
WEFTIO_FN struct weftio_dev_rdma_request
weftio_dev_rdma_compare_swap_request(struct weftio_dev_remote remote, weftio_u64 remote_offset, weftio_u64 compare,
                                     weftio_u64 swap, struct weftio_dev_buf buffer, weftio_u64 buffer_offset)
{
    return weftio_dev_rdma_atomic_request(WEFTIO_OPCODE_COMPARE_SWAP, remote, remote_offset, swap, compare, buffer,
                                          buffer_offset);
}
