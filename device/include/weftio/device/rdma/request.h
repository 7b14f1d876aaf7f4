/**
 * What an RDMA queue is asked for: one entry, but for its place in the ring.
 *
 * Every request takes one position of the ring.
 */
#pragma once

#include "weftio/device/buf.h"
#include "weftio/device/wqe.h"

/** Memory of a peer, by value: what the host's remote_region tells. It may be an argument of a kernel on any device. */
struct weftio_dev_remote {
    weftio_u64 address; /**< as the peer counts */
    weftio_u64 bytes;
    weftio_u32 rkey_be;
    weftio_u32 reserved;
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_remote) == 24, "host and device share this layout");

/** Made by the functions below. */
struct weftio_dev_rdma_request {
    weftio_u32 opcode;
    weftio_u32 segments;     /**< of the entry; 0: bytes lie outside a buffer, or are too many */
    weftio_u32 immediate_be; /**< or key */
    weftio_u32 body[12];     /**< what follows the control segment */
};

/** The most bytes of one message. */
#define WEFTIO_DEV_RDMA_MOST_BYTES 0x80000000u

/** The most bytes that travel inside an entry. */
#define WEFTIO_DEV_RDMA_INLINE_BYTES 28u

/** A request of no memory yet. */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_begin(weftio_u32 opcode, weftio_u32 immediate)
{
    struct weftio_dev_rdma_request request = {0, 1, 0, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}};

    request.opcode = opcode;
    request.immediate_be = weftio_swap32(immediate);
    return request;
}

/** Adds the peer's memory: `bytes` bytes from `offset` on. */
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

/** Adds local memory, as segment `segment`: `bytes` bytes from `offset` on. None takes no segment. */
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
 * Local bytes to the peer's memory. 0 .. WEFTIO_DEV_RDMA_MOST_BYTES of them.
 *
 * @param remote_offset, buffer_offset  in the peer's memory and in the buffer
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

/** The same, and a number that completes a receive of the peer's. */
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
 * Bytes that are copied into the request: `from` may be used again at once. 1 .. WEFTIO_DEV_RDMA_INLINE_BYTES of them.
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

/** The 8 bytes of `value` as they lie in memory here, to the peer's memory. */
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

/** Bytes of the peer's memory to local memory, whose region has access::local_write. */
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

/** Local bytes to where the peer's oldest receive says. */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_send_request(struct weftio_dev_buf buffer,
                                                                      weftio_u64 buffer_offset, weftio_u64 bytes)
{
    return weftio_dev_rdma_add_local(weftio_dev_rdma_begin(WEFTIO_OPCODE_SEND, 0), 1, buffer, buffer_offset, bytes);
}

/** The same, with a number. */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_send_imm_request(struct weftio_dev_buf buffer,
                                                                          weftio_u64 buffer_offset, weftio_u64 bytes,
                                                                          weftio_u32 immediate)
{
    return weftio_dev_rdma_add_local(weftio_dev_rdma_begin(WEFTIO_OPCODE_SEND_IMMEDIATE, immediate), 1, buffer,
                                     buffer_offset, bytes);
}

/**
 * The same, with a key that the peer shall invalidate. The software NIC refuses: keys of regions end with the region.
 */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_send_inval_request(struct weftio_dev_buf buffer,
                                                                            weftio_u64 buffer_offset, weftio_u64 bytes,
                                                                            weftio_u32 rkey)
{
    return weftio_dev_rdma_add_local(weftio_dev_rdma_begin(WEFTIO_OPCODE_SEND_INVALIDATE, rkey), 1, buffer,
                                     buffer_offset, bytes);
}

/** An atomic of an 8-byte word at the peer, which lies there on a multiple of 8; its value before comes to `buffer`. */
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

/** Adds to the word at the peer. */
WEFTIO_FN struct weftio_dev_rdma_request weftio_dev_rdma_fetch_add_request(struct weftio_dev_remote remote,
                                                                           weftio_u64 remote_offset, weftio_u64 add,
                                                                           struct weftio_dev_buf buffer,
                                                                           weftio_u64 buffer_offset)
{
    return weftio_dev_rdma_atomic_request(WEFTIO_OPCODE_FETCH_ADD, remote, remote_offset, add, 0, buffer,
                                          buffer_offset);
}

/** Makes the word at the peer `swap` if it is `compare`. */
WEFTIO_FN struct weftio_dev_rdma_request
weftio_dev_rdma_compare_swap_request(struct weftio_dev_remote remote, weftio_u64 remote_offset, weftio_u64 compare,
                                     weftio_u64 swap, struct weftio_dev_buf buffer, weftio_u64 buffer_offset)
{
    return weftio_dev_rdma_atomic_request(WEFTIO_OPCODE_COMPARE_SWAP, remote, remote_offset, swap, compare, buffer,
                                          buffer_offset);
}
