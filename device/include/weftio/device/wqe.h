/**
 * mlx5 work queue entries: what a kernel, or the host on its behalf, asks of the NIC (docs/formats.md, section
 * "Entries").
 *
 * An entry is 1..16 basic blocks of 64 bytes, made of 16-byte segments; it may continue at the start of the ring. All
 * fields are big-endian.
 */
#pragma once

#include "weftio/device/platform.h"

#define WEFTIO_WQE_BLOCK_BYTES 64u
#define WEFTIO_WQE_SEGMENT_BYTES 16u
#define WEFTIO_WQE_BLOCK_SEGMENTS 4u

#define WEFTIO_LKEY_INVALID 0x100u /**< ends a scatter list */

#define WEFTIO_OPCODE_NOP 0x00u
#define WEFTIO_OPCODE_SEND_INVALIDATE 0x01u
#define WEFTIO_OPCODE_RDMA_WRITE 0x08u
#define WEFTIO_OPCODE_RDMA_WRITE_IMMEDIATE 0x09u
#define WEFTIO_OPCODE_SEND 0x0au
#define WEFTIO_OPCODE_SEND_IMMEDIATE 0x0bu
#define WEFTIO_OPCODE_WAIT 0x0fu
#define WEFTIO_OPCODE_RDMA_READ 0x10u
#define WEFTIO_OPCODE_COMPARE_SWAP 0x11u
#define WEFTIO_OPCODE_FETCH_ADD 0x12u
#define WEFTIO_OPCODE_MMO 0x2fu
#define WEFTIO_OPCODE_FILE_SYNC 0x3eu /**< an opcode of Weftio, not of mlx5 */

#define WEFTIO_MMO_DMA 1u             /**< opcode modifier of MMO: a copy */
#define WEFTIO_WAIT_ON_TIME 2u        /**< opcode modifier of WAIT */
#define WEFTIO_WAIT_CYCLIC_SMALLER 5u /**< continue when the value is smaller than the clock */

/** Completion mode, bits 3:2 of fm_ce_se. The NIC may skip the completion of an entry that a later one covers. */
#define WEFTIO_CE_ALWAYS 0x08u
#define WEFTIO_CE_ALWAYS_AND_EVENT 0x0cu

#define WEFTIO_SOLICITED 0x02u /**< bit 1 of fm_ce_se: the completion of this message at the peer is solicited */
/** Fence mode, bits 7:5 of fm_ce_se, from this value on: waits for the READs and atomics before the entry. */
#define WEFTIO_FENCE 0x40u

#define WEFTIO_ETH_L4_CHECKSUM 0x80u /**< cs_flags: compute the UDP or TCP checksum */
#define WEFTIO_ETH_L3_CHECKSUM 0x40u /**< cs_flags: compute the IPv4 header checksum */

#define WEFTIO_INLINE_SEGMENT 0x80000000u /**< in byte_count: the bytes follow */

/**
 * Bits of a real-time clock that a NIC compares: 3 of the seconds, all nanoseconds (docs/formats.md, section
 * "Waiting").
 */
#define WEFTIO_REAL_TIME_MASK 0x7ffffffffu

/** First segment of every entry. */
struct weftio_wqe_control_segment {
    weftio_u32 opmod_index_opcode_be; /**< [31:24] opcode modifier, [23:8] index of the entry, [7:0] opcode */
    weftio_u32 queue_ds_be;           /**< [31:8] queue number, [5:0] segments of the entry, this one included */
    weftio_u8 signature;
    weftio_u8 dci[2];
    weftio_u8 fm_ce_se;
    weftio_u32 immediate_be;
};

/** Second segment of a SEND on an Ethernet queue. */
struct weftio_wqe_ethernet_segment {
    weftio_u8 swp_offsets[4];
    weftio_u8 cs_flags;
    weftio_u8 swp_flags;
    weftio_u16 mss_be;
    weftio_u32 metadata_be;
    weftio_u16 inline_header_bytes_be; /**< more than 2: the rest follows, padded to 16 bytes */
    weftio_u8 inline_header[2];
};

/** One pointer segment: a receive entry is one of these. */
struct weftio_wqe_data_segment {
    weftio_u32 byte_count_be; /**< bit 31 is 0; 0 means 2^31 */
    weftio_u32 lkey_be;
    weftio_u64 address_be;
};

/** Second segment of an entry that names memory of the peer. */
struct weftio_wqe_remote_segment {
    weftio_u64 address_be;
    weftio_u32 rkey_be;
    weftio_u32 reserved;
};

/** Third segment of an atomic: the word at the peer is 8 bytes. */
struct weftio_wqe_atomic_segment {
    weftio_u64 swap_or_add_be;
    weftio_u64 compare_be; /**< COMPARE_SWAP only */
};

/** Second and third segment of a WAIT on time. */
struct weftio_wqe_wait_segment {
    weftio_u32 operation_be; /**< [3:0] condition */
    weftio_u32 lkey_be;
    weftio_u64 address_be;
    weftio_u64 value_be; /**< real-time format */
    weftio_u64 mask_be;
};

WEFTIO_STATIC_ASSERT(sizeof(struct weftio_wqe_control_segment) == 16, "a segment is 16 bytes");
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_wqe_ethernet_segment) == 16, "a segment is 16 bytes");
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_wqe_data_segment) == 16, "a segment is 16 bytes");
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_wqe_remote_segment) == 16, "a segment is 16 bytes");
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_wqe_atomic_segment) == 16, "a segment is 16 bytes");
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_wqe_wait_segment) == 32, "two segments");

/**
 * For inline segments: bytes [at, at + 4) of `from` as a word in memory order. Those from `bytes` on are 0, not read.
 */
WEFTIO_FN weftio_u32 weftio_dev_gather(const WEFTIO_GLOBAL weftio_u8 *from, weftio_u32 at, weftio_u32 bytes)
{
    weftio_u32 word = 0;

    for (weftio_u32 byte = 0; byte < 4 && at + byte < bytes; ++byte)
        word |= (weftio_u32)from[at + byte] << (8 * byte);
    return word;
}
