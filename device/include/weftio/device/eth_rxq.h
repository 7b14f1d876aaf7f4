/**
 * The Ethernet receive queue inside a kernel.
 *
 * Life of a packet: the NIC fills a free slot and publishes a completion that names it; a *receive* call hands out the
 * indices of the packets that have arrived; *packet* says where one lies; *release* gives slots back to the NIC, oldest
 * packet first. A slot that has not been released is never written again: when none is free the NIC drops and counts
 * `out_of_buffer`.
 *
 * One scope (a thread, a warp or a block) receives from a queue at a time. The scope may be another one from call to
 * call.
 */
#pragma once

#include "weftio/device/buf.h"
#include "weftio/device/clock.h"
#include "weftio/device/handle.h"
#include "weftio/device/queue/completion.h"
#include "weftio/device/queue/control.h"
#include "weftio/device/queue/scope.h"

/** Made by the host class `eth_rxq`. Kernels use it through the functions below only. */
struct weftio_dev_eth_rxq {
    weftio_u32 abi;       /**< WEFTIO_DEV_ABI_ETH_RXQ */
    weftio_u32 held_back; /**< slots that are never posted: 1 of 65,536, as the record counts to 65,535 */
    struct weftio_dev_completion_ring completions;
    WEFTIO_GLOBAL weftio_u32 *dbrec; /**< receive doorbell record: entries posted in all */
    WEFTIO_GLOBAL struct weftio_dev_control *control;
    const WEFTIO_GLOBAL struct weftio_dev_clock *clock;
    WEFTIO_GLOBAL weftio_u8 *slots; /**< packet of slot 0 */
    weftio_u32 stride_bytes;        /**< from slot to slot */
    weftio_u32 lkey_be;             /**< key of the slots, so that a packet can be sent from where it lies */
    weftio_u32 received;            /**< next index to hand out */
    weftio_u32 released;            /**< next index to give back */
    weftio_u32 scratch;             /**< for platforms whose block sum needs memory */
    weftio_u32 queue;               /**< number of the queue at its NIC */
    weftio_u64 turn;                /**< inline mode on a CPU: function that runs the engine once, else 0 */
    weftio_u64 turn_context;        /**< its argument */
    weftio_u32 slot_bytes;          /**< the longest packet */
    weftio_u32 beats;               /**< as in the trace */
    weftio_u32 reserved[6];
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_eth_rxq) == (WEFTIO_DEV_ABI_ETH_RXQ & 0xffffu),
                     "host and device share this layout");

/** Flags of a packet. */
#define WEFTIO_DEV_PACKET_L3_CHECKSUM_GOOD 0x01u
#define WEFTIO_DEV_PACKET_L4_CHECKSUM_GOOD 0x02u
#define WEFTIO_DEV_PACKET_VLAN_STRIPPED 0x04u /**< vlan_tci is valid */
#define WEFTIO_DEV_PACKET_RSS_HASH 0x08u      /**< rss_hash is valid */

/** One received packet, by value. */
struct weftio_dev_packet {
    WEFTIO_GLOBAL weftio_u8 *address; /**< first byte of the Ethernet header */
    weftio_u32 bytes;                 /**< frame length without FCS */
    weftio_u32 flags;                 /**< WEFTIO_DEV_PACKET_* */
    weftio_u64 timestamp_ns;          /**< UTC */
    weftio_u32 rss_hash;
    weftio_u32 vlan_tci;
};

/** Whether the handle is that of a receive queue: as weftio_dev_is_handle. */
WEFTIO_FN weftio_u32 weftio_dev_is_eth_rxq(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq)
{
    return weftio_dev_is_handle(rxq->abi, WEFTIO_DEV_ABI_ETH_RXQ);
}

/**
 * Whether the host asks the kernel to end, for loops of the kernel's own: 1 or 0. Never blocks; any lane. With
 * WEFTIO_DEV_CHECKS also 1 of what is no receive queue.
 */
WEFTIO_FN weftio_u32 weftio_dev_eth_rxq_aborted(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq)
{
    return !weftio_dev_is_eth_rxq(rxq) || weftio_dev_aborted(rxq->control);
}

#define WEFTIO_DEV_STOP_TIMEOUT (1u << 20) /* above any count: a ring has at most 2^16 entries */
#define WEFTIO_DEV_STOP_ABORT (1u << 21)

/** Lane 0's view of whether the time is up. The bound starts to run at the first call. */
WEFTIO_FN weftio_u32 weftio_dev_receive_late(WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq, weftio_u64 timeout_ns,
                                             weftio_u64 *deadline_ns)
{
    weftio_u64 now_ns = weftio_dev_clock_ns(rxq->clock);

    if (!*deadline_ns)
        *deadline_ns = weftio_dev_deadline_ns(now_ns, timeout_ns);
    return now_ns >= *deadline_ns ? WEFTIO_DEV_STOP_TIMEOUT : 0;
}

/** Lane 0: the next call goes on at `next`. */
WEFTIO_FN void weftio_dev_receive_done(WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq, weftio_u32 next, weftio_s32 status)
{
    weftio_store_relaxed_u32(&rxq->received, next);
    weftio_dev_beat(rxq->control, &rxq->beats, WEFTIO_DEV_FUNCTION_RECEIVE, next, status);
}

/** What a receive call answers that was given something else than a receive queue. */
WEFTIO_FN weftio_s32 weftio_dev_receive_refused(weftio_u32 *count)
{
    *count = 0;
    return WEFTIO_DEV_INVALID_ARGUMENT;
}

/**
 * The receive of every scope: `lane` of `lanes` polls its share, the scope adds up, lane 0 decides when to stop.
 *
 * A slot that is still held cannot show a completion of this pass, so no free-slot count is needed here. The abort flag
 * is looked at in every call: a kernel that always finds enough must end too.
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_rxq_receive(WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq, weftio_u32 max_packets,
                                                weftio_u64 timeout_ns, weftio_u32 *count, weftio_u32 *first,
                                                enum weftio_dev_scope scope, weftio_u32 lane, weftio_u32 lanes)
{
    if (!weftio_dev_is_eth_rxq(rxq))
        return weftio_dev_receive_refused(count);
    weftio_u32 start = weftio_load_relaxed_u32(&rxq->received);
    weftio_u32 depth = rxq->completions.mask + 1;
    weftio_u32 limit = max_packets ? weftio_min_u32(max_packets, depth) : depth;
    weftio_u32 enough = max_packets || timeout_ns ? limit : 0xffffffffu;
    weftio_u64 deadline_ns = 0;
    weftio_u32 found = 0, stop = 0;

    for (weftio_u32 attempt = 0;; ++attempt) {
        if (lane == 0 && rxq->turn && !weftio_dev_completion_ready(&rxq->completions, start + limit - 1))
            weftio_dev_nic_turn(rxq->turn, rxq->turn_context);
        /* Asked for before the completions, looked at after them: two round trips to the host become one. */
        weftio_u32 abort = lane == 0 ? weftio_load_relaxed_u32(&rxq->control->abort) : 0;
        /* The NIC publishes in order: one lane that has just run the engine sees with one look when all are there. */
        weftio_u32 all = rxq->turn && lanes == 1 && weftio_dev_completion_ready(&rxq->completions, start + limit - 1);
        weftio_u32 mine =
            all ? limit - found
                : weftio_dev_completion_look(&rxq->completions, start + found, limit - found, lane, lanes);
        if (abort)
            mine += WEFTIO_DEV_STOP_ABORT;
        else if (lane == 0 && timeout_ns && found + mine % WEFTIO_DEV_SINGLE < enough)
            mine += weftio_dev_receive_late(rxq, timeout_ns, &deadline_ns);
        weftio_u32 sum = weftio_dev_scope_sum(scope, mine, &rxq->scratch);

        weftio_u32 many = sum & (WEFTIO_DEV_STOP_TIMEOUT - 1),
                   is_last = stop || !many || lanes < WEFTIO_DEV_FEWEST_SCANNING;
        found += many ? many : sum / WEFTIO_DEV_SINGLE;
        stop = sum & (WEFTIO_DEV_STOP_TIMEOUT | WEFTIO_DEV_STOP_ABORT);
        if (found >= enough || (stop && is_last)) /* behind eights there may be singles: they get one more look */
            break;
        if (sum)
            attempt = 0;
        if (lane == 0) {
            weftio_dev_beat(rxq->control, &rxq->beats, WEFTIO_DEV_FUNCTION_RECEIVE, start + found, WEFTIO_DEV_OK);
            weftio_relax(attempt);
        }
    }
    *count = found;
    *first = start;
    weftio_s32 status = stop & WEFTIO_DEV_STOP_ABORT ? WEFTIO_DEV_ABORTED : WEFTIO_DEV_OK;
    if (lane == 0)
        weftio_dev_receive_done(rxq, start + found, status);
    weftio_dev_scope_barrier(scope);
    return status;
}

/**
 * Receives for one lane. Blocks until `max_packets` have arrived, `timeout_ns` has passed or the host asks to end.
 *
 * Packets `first` .. `first + count - 1` are the caller's until released; indices are consecutive and wrap at 2^32.
 * A call never returns more than the ring holds; with every slot held, nothing arrives until some are released.
 *
 * @pre one lane uses the queue
 * @param max_packets  0: as many as the ring holds
 * @param timeout_ns   0: no time bound; with `max_packets` 0 too the call ends with the abort flag only
 * @param[out] count   packets received, also when the status is not OK
 * @param[out] first   index of the first
 * @return WEFTIO_DEV_OK, or WEFTIO_DEV_ABORTED when the host asked the kernel to end (`count` may still not be 0);
 *         WEFTIO_DEV_INVALID_ARGUMENT with WEFTIO_DEV_CHECKS (handle.h): `rxq` is no receive queue, or another version's
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_rxq_receive_thread(WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq,
                                                       weftio_u32 max_packets, weftio_u64 timeout_ns, weftio_u32 *count,
                                                       weftio_u32 *first)
{
    return weftio_dev_eth_rxq_receive(rxq, max_packets, timeout_ns, count, first, WEFTIO_DEV_SCOPE_THREAD, 0, 1);
}

/**
 * As weftio_dev_eth_rxq_receive_thread, for a warp: all its lanes call, all see the outputs. Brings its own barriers.
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_rxq_receive_warp(WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq,
                                                     weftio_u32 max_packets, weftio_u64 timeout_ns, weftio_u32 *count,
                                                     weftio_u32 *first)
{
    return weftio_dev_eth_rxq_receive(rxq, max_packets, timeout_ns, count, first, WEFTIO_DEV_SCOPE_WARP,
                                      weftio_warp_lane(), weftio_warp_lanes());
}

/**
 * As weftio_dev_eth_rxq_receive_thread, for a block: all its lanes call, all see the outputs. Brings its own barriers.
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_rxq_receive_block(WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq,
                                                      weftio_u32 max_packets, weftio_u64 timeout_ns, weftio_u32 *count,
                                                      weftio_u32 *first)
{
    return weftio_dev_eth_rxq_receive(rxq, max_packets, timeout_ns, count, first, WEFTIO_DEV_SCOPE_BLOCK, weftio_lane(),
                                      weftio_block_lanes());
}

/** Where the packet lies whose publication word this is: the NIC fills slots in any order and says which. */
WEFTIO_FN WEFTIO_GLOBAL weftio_u8 *weftio_dev_eth_rxq_slot(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq,
                                                           weftio_u32 publication)
{
    return rxq->slots + (weftio_u64)(weftio_cqe_wqe_counter(publication) & rxq->completions.mask) * rxq->stride_bytes;
}

/**
 * Where packet `index` lies. Never blocks; any lane may ask. @pre a receive call handed `index` out, and it is not
 * released. With WEFTIO_DEV_CHECKS, of what is no receive queue: 0
 */
WEFTIO_FN WEFTIO_GLOBAL weftio_u8 *weftio_dev_eth_rxq_address(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq,
                                                              weftio_u32 index)
{
    if (!weftio_dev_is_eth_rxq(rxq))
        return 0;
    return weftio_dev_eth_rxq_slot(
        rxq, weftio_load_relaxed_u32(&weftio_dev_completion_at(&rxq->completions, index)->publication));
}

WEFTIO_FN weftio_u32 weftio_dev_packet_flags(const WEFTIO_GLOBAL struct weftio_cqe *cqe)
{
    return (cqe->hds_ip_ext & WEFTIO_CQE_L3_OK ? WEFTIO_DEV_PACKET_L3_CHECKSUM_GOOD : 0) |
           (cqe->hds_ip_ext & WEFTIO_CQE_L4_OK ? WEFTIO_DEV_PACKET_L4_CHECKSUM_GOOD : 0) |
           (cqe->l4_hdr_type_etc & WEFTIO_CQE_VLAN_STRIPPED ? WEFTIO_DEV_PACKET_VLAN_STRIPPED : 0) |
           (cqe->rss_hash_type ? WEFTIO_DEV_PACKET_RSS_HASH : 0);
}

/**
 * Everything about packet `index`. Never blocks; any lane of any kernel that holds the handle may call it.
 *
 * @pre `index` has not been released: the slot of a released packet may be overwritten at any time
 * @param[out] packet  unchanged on error
 * @return WEFTIO_DEV_OK, or WEFTIO_DEV_NOT_FOUND when no receive call has handed `index` out, or its completion has
 *         been overwritten since; WEFTIO_DEV_INVALID_ARGUMENT as weftio_dev_eth_rxq_receive_thread
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_rxq_packet(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq, weftio_u32 index,
                                               struct weftio_dev_packet *packet)
{
    if (!weftio_dev_is_eth_rxq(rxq))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    const WEFTIO_GLOBAL struct weftio_cqe *cqe = weftio_dev_completion_at(&rxq->completions, index);
    /* The owner bit only tells odd passes from even ones: `index` must be among the last that were handed out, too. */
    weftio_u32 age = weftio_load_relaxed_u32(&rxq->received) - 1 - index;
    /* Acquire, pairs with the NIC's release of the publication word: payload and bytes 0..59 are visible afterwards. */
    weftio_u32 publication = weftio_load_acquire_sys_u32(&cqe->publication);
    if (age > rxq->completions.mask || !weftio_cqe_is_published(publication, index >> rxq->completions.log_depth))
        return WEFTIO_DEV_NOT_FOUND;
    packet->address = weftio_dev_eth_rxq_slot(rxq, publication);
    packet->bytes = weftio_swap32(cqe->byte_count_be);
    packet->flags = weftio_dev_packet_flags(cqe);
    packet->timestamp_ns = weftio_real_time_to_ns(weftio_swap64(cqe->timestamp_be));
    packet->rss_hash = weftio_swap32(cqe->rss_hash_be);
    packet->vlan_tci = weftio_swap16(cqe->vlan_info_be);
    return WEFTIO_DEV_OK;
}

/**
 * Gives the `count` oldest packets back to the NIC. Never blocks. One lane calls it, after all lanes are done with them
 * (weftio_block_barrier or weftio_warp_barrier in between).
 *
 * @param first  index of the oldest packet held
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_OUT_OF_ORDER `first` is not the oldest; WEFTIO_DEV_INVALID_ARGUMENT more than are
 *         held; the same as weftio_dev_eth_rxq_receive_thread. On error nothing is released.
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_rxq_release(WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq, weftio_u32 first,
                                                weftio_u32 count)
{
    if (!weftio_dev_is_eth_rxq(rxq))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_u32 released = weftio_load_relaxed_u32(&rxq->released);

    if (first != released)
        return WEFTIO_DEV_OUT_OF_ORDER;
    if (count > weftio_load_relaxed_u32(&rxq->received) - released)
        return WEFTIO_DEV_INVALID_ARGUMENT;
    weftio_store_relaxed_u32(&rxq->released, released + count);
    weftio_dev_post_receive(rxq->dbrec, released + count + rxq->completions.mask + 1 - rxq->held_back);
    return WEFTIO_DEV_OK;
}
