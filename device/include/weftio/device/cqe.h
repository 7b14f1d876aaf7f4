/**
 * The mlx5 completion queue entry: what the NIC reports to a kernel (docs/formats.md, section "Completions").
 *
 * All fields are big-endian. The NIC writes bytes 0..59 first and publishes with one release store of bytes 60..63.
 */
#pragma once

#include "weftio/device/platform.h"

#define WEFTIO_CQE_OPCODE_REQUESTER 0x0u       /**< a send entry completed */
#define WEFTIO_CQE_OPCODE_RESPONDER_WRITE 0x1u /**< a WRITE with immediate arrived */
#define WEFTIO_CQE_OPCODE_RESPONDER_SEND 0x2u  /**< every Ethernet packet received, and a SEND */
#define WEFTIO_CQE_OPCODE_RESPONDER_SEND_IMMEDIATE 0x3u
#define WEFTIO_CQE_OPCODE_RESPONDER_SEND_INVALIDATE 0x4u
#define WEFTIO_CQE_OPCODE_RESIZE 0x5u          /**< the ring has ended: later completions are in another one */
#define WEFTIO_CQE_OPCODE_REQUESTER_ERROR 0xdu /**< a send entry failed; see the syndrome */
#define WEFTIO_CQE_OPCODE_RESPONDER_ERROR 0xeu
#define WEFTIO_CQE_OPCODE_INVALID 0xfu /**< never written yet */

#define WEFTIO_CQE_NEVER_WRITTEN                                                                                       \
    0xf1u /**< op_own of a fresh entry: invalid opcode, owner 1, so pass 0 does not take it */

#define WEFTIO_CQE_SOLICITED 0x02u /**< op_own of a receive completion: the peer sent the message as solicited */

/** flags_rqpn of a receive completion of a UD queue pair: which IP header the first 40 bytes hold; bits [23:0] have the
 * number of the sender's queue pair. */
#define WEFTIO_CQE_DATAGRAM_IPV6 0x21000000u
#define WEFTIO_CQE_DATAGRAM_IPV4 0x22000000u

#define WEFTIO_CQE_L2_OK 0x1u /**< hds_ip_ext */
#define WEFTIO_CQE_L3_OK 0x2u
#define WEFTIO_CQE_L4_OK 0x4u

#define WEFTIO_CQE_VLAN_STRIPPED 0x01u /**< l4_hdr_type_etc */
#define WEFTIO_CQE_L3_IPV6 0x04u
#define WEFTIO_CQE_L3_IPV4 0x08u
#define WEFTIO_CQE_L4_TCP 0x10u
#define WEFTIO_CQE_L4_UDP 0x20u
#define WEFTIO_CQE_FRAGMENT 0x80u

/** Error syndromes, byte 55 of an error completion. */
enum weftio_syndrome {
    WEFTIO_SYNDROME_NONE = 0x00,
    WEFTIO_SYNDROME_LOCAL_LENGTH = 0x01,       /**< longer than the port's MTU, or than the slot */
    WEFTIO_SYNDROME_LOCAL_QP_OPERATION = 0x02, /**< malformed entry: opcode, size, segment, index */
    WEFTIO_SYNDROME_LOCAL_PROTECTION = 0x04,   /**< unknown or stale key, outside the region, no right */
    WEFTIO_SYNDROME_FLUSHED = 0x05,            /**< the queue was in error already */
    WEFTIO_SYNDROME_WINDOW_BIND = 0x06,        /**< RDMA: a bind or an invalidation of a window was refused */
    WEFTIO_SYNDROME_BAD_RESPONSE = 0x10,       /**< RDMA: a response does not match its request */
    WEFTIO_SYNDROME_LOCAL_ACCESS = 0x11,       /**< RDMA: memory removed during a WRITE with immediate */
    WEFTIO_SYNDROME_REMOTE_INVALID = 0x12,     /**< RDMA: the peer refuses length, order or operation */
    WEFTIO_SYNDROME_REMOTE_ACCESS = 0x13,      /**< RDMA: the peer refuses key, range, rights or domain */
    WEFTIO_SYNDROME_REMOTE_OPERATION = 0x14,   /**< RDMA: the peer cannot continue */
    WEFTIO_SYNDROME_RETRIES_EXCEEDED = 0x15,   /**< RDMA: no acknowledgment after retry_count retries */
    WEFTIO_SYNDROME_NOT_READY_EXCEEDED = 0x16  /**< RDMA: the peer had no receive after rnr_retry retries */
};

struct weftio_cqe {
    weftio_u8 packet_info; /**< bit 1: outer L3 is IPv6 */
    weftio_u8 reserved1;
    weftio_u16 wqe_id_be;
    weftio_u8 lro[8];
    weftio_u32 rss_hash_be;
    weftio_u8 rss_hash_type; /**< not 0: rss_hash_be is valid */
    weftio_u8 ml_path;
    weftio_u8 reserved18[2];
    weftio_u16 checksum_be;
    weftio_u16 slid_be;
    weftio_u32 flags_rqpn_be;
    weftio_u8 hds_ip_ext;      /**< WEFTIO_CQE_L2_OK .. */
    weftio_u8 l4_hdr_type_etc; /**< WEFTIO_CQE_VLAN_STRIPPED .. */
    weftio_u16 vlan_info_be;   /**< the stripped TCI */
    weftio_u32 user_index_be;
    weftio_u32 immediate_be;
    weftio_u8 app[4];
    weftio_u32 byte_count_be;
    /** Real-time format: seconds << 32 | nanoseconds. In an error completion: reason in byte 54, syndrome in 55. */
    weftio_u64 timestamp_be;
    weftio_u32 sop_drop_qpn_be; /**< [31:24] opcode of the entry that completed, [23:0] queue number */
    weftio_u32 publication;     /**< wqe_counter BE16, signature, op_own: written last, in one store */
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_cqe) == 64, "a completion is 64 bytes");

/** Bytes 60..63 as one word in memory order. `pass` is index / depth. */
WEFTIO_FN weftio_u32 weftio_cqe_publication(weftio_u32 wqe_counter, weftio_u32 opcode, weftio_u32 pass)
{
    weftio_u32 op_own = opcode << 4 | (pass & 1u);

    return op_own << 24 | weftio_swap16((weftio_u16)wqe_counter);
}

/** Whether a publication word belongs to this pass over the ring: opcode not invalid, owner bit as expected. */
WEFTIO_FN weftio_u32 weftio_cqe_is_published(weftio_u32 publication, weftio_u32 pass)
{
    return publication < WEFTIO_CQE_OPCODE_INVALID << 28 && ((publication >> 24 ^ pass) & 1u) == 0;
}
WEFTIO_FN weftio_u32 weftio_cqe_opcode(weftio_u32 publication)
{
    return publication >> 28;
}
WEFTIO_FN weftio_u32 weftio_cqe_wqe_counter(weftio_u32 publication)
{
    return weftio_swap16((weftio_u16)publication);
}
/**
 * Syndrome of an error completion: why a wait returned WEFTIO_DEV_QUEUE_ERROR. Never blocks. One load
 * reads all of it, because the NIC may overwrite a collapsed completion meanwhile.
 *
 * @pre the opcode is an error's, or a call has returned WEFTIO_DEV_QUEUE_ERROR: other completions have a time there
 * @return enum weftio_syndrome
 */
WEFTIO_FN weftio_u32 weftio_cqe_syndrome(const WEFTIO_GLOBAL struct weftio_cqe *cqe)
{
    return (weftio_u32)(weftio_swap64(weftio_load_acquire_sys_u64(&cqe->timestamp_be)) & 0xffu);
}
/** The NIC's own reason of an error completion; the host's weftio::explain() returns it as a sentence. */
WEFTIO_FN weftio_u32 weftio_cqe_reason(const WEFTIO_GLOBAL struct weftio_cqe *cqe)
{
    return (weftio_u32)(weftio_swap64(weftio_load_acquire_sys_u64(&cqe->timestamp_be)) >> 8 & 0xffu);
}

/** UTC nanoseconds -> the real-time format of a completion's timestamp and of a wait entry's value. */
WEFTIO_FN weftio_u64 weftio_real_time_from_ns(weftio_u64 ns)
{
    return (ns / 1000000000u) << 32 | ns % 1000000000u;
}
/** The real-time format -> UTC nanoseconds. */
WEFTIO_FN weftio_u64 weftio_real_time_to_ns(weftio_u64 real_time)
{
    return (real_time >> 32) * 1000000000u + (real_time & 0xffffffffu);
}
