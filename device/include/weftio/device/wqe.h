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
#define WEFTIO_OPCODE_DUMP 0x23u /**< reads local memory and drops the bytes */
#define WEFTIO_OPCODE_UMR 0x25u  /**< binds or invalidates a memory window */
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

#define WEFTIO_MULTICAST_QUEUE 0xffffffu     /**< queue number of datagrams to a multicast group */
#define WEFTIO_QUEUE_KEY_OWN 0x80000000u     /**< bit of a Q_Key in an entry: the queue pair's own is sent */
#define WEFTIO_DATAGRAM_EXTENDED 0x80000000u /**< in queue_be of every datagram segment */

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

/** Second to fourth segment of a SEND of a UD queue pair: who gets the datagram. */
struct weftio_wqe_datagram_segment {
    weftio_u32 queue_key_be; /**< Q_Key; one with bit 31: that of the sending queue pair */
    weftio_u32 reserved;
    weftio_u32 queue_be; /**< [23:0] number of the peer's queue pair, or WEFTIO_MULTICAST_QUEUE; bit 31 is set */
    weftio_u8 rate_sl;
    weftio_u8 path;
    weftio_u16 source_port_be; /**< UDP; 0: the NIC chooses */
    weftio_u32 reserved16;
    weftio_u8 mac[6]; /**< rdma_device::mac_of() */
    weftio_u8 traffic_class;
    weftio_u8 hop_limit;
    weftio_u32 gid_flow_be; /**< [27:20] index of our address in rdma_device::gids(), [19:0] flow label */
    weftio_u8 gid[16];      /**< of the peer or of a multicast group: IPv6, or ::ffff:a.b.c.d */
};

/** Third segment of an atomic: the word at the peer is 8 bytes. */
struct weftio_wqe_atomic_segment {
    weftio_u64 swap_or_add_be;
    weftio_u64 compare_be; /**< COMPARE_SWAP only */
};

/** Flags of a UMR entry. */
#define WEFTIO_UMR_INLINE 0x80u             /**< the memory follows in the entry */
#define WEFTIO_UMR_CHECK_FREE 0x20u         /**< the window must be free */
#define WEFTIO_UMR_TRANSLATION_OFFSET 0x10u /**< libmlx5 sets it */
#define WEFTIO_UMR_CHECK_QUEUE 0x08u        /**< the window must be bound to this queue */

#define WEFTIO_UMR_BIND_TYPE_1 (WEFTIO_UMR_INLINE | WEFTIO_UMR_TRANSLATION_OFFSET)
#define WEFTIO_UMR_BIND_TYPE_2 (WEFTIO_UMR_BIND_TYPE_1 | WEFTIO_UMR_CHECK_FREE)
#define WEFTIO_UMR_INVALIDATE (WEFTIO_UMR_BIND_TYPE_1 | WEFTIO_UMR_CHECK_QUEUE)

/** Bits of mkey_mask_be: the fields of the key that a UMR entry changes. */
#define WEFTIO_UMR_MASK_LENGTH 0x1u
#define WEFTIO_UMR_MASK_START 0x40u
#define WEFTIO_UMR_MASK_VARIANT 0x2000u
#define WEFTIO_UMR_MASK_QUEUE 0x4000u
#define WEFTIO_UMR_MASK_REMOTE_READ 0x80000u
#define WEFTIO_UMR_MASK_REMOTE_WRITE 0x100000u
#define WEFTIO_UMR_MASK_ATOMIC 0x200000u
#define WEFTIO_UMR_MASK_RIGHTS 0x3c0000u
#define WEFTIO_UMR_MASK_FREE 0x20000000u

/** The masks of the operations; a bind may lack those rights that it does not give. */
#define WEFTIO_UMR_MASK_INVALIDATE (WEFTIO_UMR_MASK_FREE | WEFTIO_UMR_MASK_VARIANT | WEFTIO_UMR_MASK_QUEUE)
#define WEFTIO_UMR_MASK_UNBIND (WEFTIO_UMR_MASK_FREE | WEFTIO_UMR_MASK_VARIANT)
#define WEFTIO_UMR_MASK_BIND_TYPE_1 (WEFTIO_UMR_MASK_UNBIND | WEFTIO_UMR_MASK_LENGTH | WEFTIO_UMR_MASK_START)
#define WEFTIO_UMR_MASK_BIND_TYPE_2 (WEFTIO_UMR_MASK_BIND_TYPE_1 | WEFTIO_UMR_MASK_QUEUE)

/** Second to fourth segment of a UMR entry. The window's present key is the immediate of the control segment. */
struct weftio_wqe_umr_segment {
    weftio_u8 flags; /**< WEFTIO_UMR_* */
    weftio_u8 reserved[3];
    weftio_u16 memory_octowords_be; /**< size of the memory in the entry: 4 of a bind, else 0 */
    weftio_u16 translation_offset_be;
    weftio_u64 mkey_mask_be;
    weftio_u8 reserved2[32];
};

#define WEFTIO_MKEY_FREE 0x40u         /**< in `free`: nobody may use the key */
#define WEFTIO_MKEY_ATOMIC 0x40u       /**< in `rights` */
#define WEFTIO_MKEY_REMOTE_WRITE 0x20u /**< in `rights` */
#define WEFTIO_MKEY_REMOTE_READ 0x10u  /**< in `rights` */
#define WEFTIO_MKEY_ANY_QUEUE 0xffffffu

/**
 * Fifth to eighth segment of a UMR entry: what the key is to be. In a bind, a pointer segment with the memory and the
 * key of the region comes behind it, and 48 bytes of padding.
 */
struct weftio_wqe_mkey_segment {
    weftio_u8 free;
    weftio_u8 reserved;
    weftio_u8 rights;
    weftio_u8 reserved2;
    weftio_u32 queue_variant_be; /**< [31:8] queue, or WEFTIO_MKEY_ANY_QUEUE; [7:0] variant of the next key */
    weftio_u32 reserved3[2];
    weftio_u64 start_be;
    weftio_u64 bytes_be;
    weftio_u8 reserved4[32];
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
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_wqe_datagram_segment) == 48, "three segments");
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_wqe_wait_segment) == 32, "two segments");
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_wqe_umr_segment) == 48, "three segments");
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_wqe_mkey_segment) == 64, "four segments");

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
