/**
 * The Ethernet receive queue inside a kernel.
 *
 * Life of a packet: the NIC fills a free slot and publishes a completion that names it. A *receive* call hands out the
 * indices of the packets that have arrived. *Packet* describes one and returns its address. *Release* gives slots back
 * to the NIC, oldest packet first. The NIC writes no slot that has not been released: while none is free, it drops
 * packets and counts them as `out_of_buffer`.
 *
 * One scope (a thread, a warp or a block) receives from a queue at a time; the next call may come from another scope.
 * Completions have the format of docs/formats.md, section "Completions".
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
    weftio_u32 held_back; /**< slots that are never posted: 1 of 65,536, because the record has 16 bits; else 0 */
    struct weftio_dev_completion_ring completions;
    WEFTIO_GLOBAL weftio_u32 *dbrec; /**< receive doorbell record: entries posted in all */
    WEFTIO_GLOBAL struct weftio_dev_control *control;
    const WEFTIO_GLOBAL struct weftio_dev_clock *clock;
    WEFTIO_GLOBAL weftio_u8 *slots; /**< packet of slot 0 */
    weftio_u32 stride_bytes;        /**< from slot to slot */
    weftio_u32 lkey_be;             /**< key of the slots, so that a packet can be sent from where it lies */
    weftio_u32 received;            /**< next index to hand out */
    weftio_u32 released;            /**< next index to give back */
    weftio_u32 scratch;             /**< word of weftio_block_sum_u32 */
    weftio_u32 queue;               /**< number of the queue at its NIC */
    weftio_u64 turn;                /**< inline mode on a CPU: function that runs the engine once, else 0 */
    weftio_u64 turn_context;        /**< its argument */
    weftio_u32 slot_bytes;          /**< the longest packet */
    weftio_u32 beats;               /**< calls, and rounds of waits, so far (queue_trace::beats) */
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

/** Whether `rxq` is a receive queue: as weftio_dev_is_handle. */
WEFTIO_FN weftio_u32 weftio_dev_is_eth_rxq(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq)
{
    return weftio_dev_is_handle(rxq->abi, WEFTIO_DEV_ABI_ETH_RXQ);
}

/**
 * Whether the host asks the kernel to end, for loops of the kernel's own: 1 or 0. Never blocks; any lane. With
 * WEFTIO_DEV_CHECKS also 1 if `rxq` is no receive queue, so that the loop ends.
 */
WEFTIO_FN weftio_u32 weftio_dev_eth_rxq_aborted(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq)
{
    return !weftio_dev_is_eth_rxq(rxq) || weftio_dev_aborted(rxq->control);
}

/** A receive call under way. All lanes of a scope have the same values, except those of lane 0 alone. */
struct weftio_dev_receive_call {
    weftio_u64 timeout_ns;  /**< 0: no time bound */
    weftio_u64 deadline_ns; /**< lane 0; 0 before it has read the clock for the first time */
    weftio_u32 start;       /**< index of the first packet */
    weftio_u32 limit;       /**< most packets to hand out */
    weftio_u32 enough;      /**< packets that end the call; 0xffffffff: only the abort flag ends it */
    weftio_u32 found;       /**< packets so far: [start, start + found) */
    weftio_u32 stop;        /**< WEFTIO_DEV_STOP_* of the last round, or 0 */
};

/** Begins a receive call: sets what it waits for. */
WEFTIO_FN struct weftio_dev_receive_call weftio_dev_receive_begin(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq,
                                                                  weftio_u32 max_packets, weftio_u64 timeout_ns)
{
    struct weftio_dev_receive_call call = {0, 0, 0, 0, 0, 0, 0};
    weftio_u32 depth = rxq->completions.mask + 1;

    call.timeout_ns = timeout_ns;
    call.start = weftio_load_relaxed_u32(&rxq->received);
    call.limit = max_packets ? weftio_min_u32(max_packets, depth) : depth;
    call.enough = max_packets || timeout_ns ? call.limit : 0xffffffffu;
    return call;
}

/** Whether `limit` packets have arrived. A single load is enough, because the NIC publishes in order. */
WEFTIO_FN weftio_u32 weftio_dev_receive_has_all(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq,
                                                const struct weftio_dev_receive_call *call)
{
    return weftio_dev_completion_ready(&rxq->completions, call->start + call->limit - 1);
}

/** Lane 0: in inline mode runs the engine once, unless `limit` packets have arrived. */
WEFTIO_FN void weftio_dev_receive_run_engine(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq,
                                             const struct weftio_dev_receive_call *call)
{
    if (rxq->turn && !weftio_dev_receive_has_all(rxq, call))
        weftio_dev_nic_turn(rxq->turn, rxq->turn_context);
}

/** Lane 0: returns WEFTIO_DEV_STOP_TIMEOUT once `timeout_ns` have passed since the first round of the call, else 0. */
WEFTIO_FN weftio_u32 weftio_dev_receive_late(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq,
                                             struct weftio_dev_receive_call *call)
{
    weftio_u64 now_ns = weftio_dev_clock_ns(rxq->clock);

    if (!call->deadline_ns)
        call->deadline_ns = weftio_dev_deadline_ns(now_ns, call->timeout_ns);
    return now_ns >= call->deadline_ns ? WEFTIO_DEV_STOP_TIMEOUT : 0;
}

/**
 * One round: one lane polls completions. A slot that the kernel holds cannot show a completion of the current pass, so
 * no count of free slots is needed. Lane 0 reads the abort flag in every round, so that a kernel that always finds
 * enough packets ends too.
 */
WEFTIO_FN struct weftio_dev_round weftio_dev_receive_look(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq,
                                                          struct weftio_dev_receive_call *call, weftio_u32 lane,
                                                          weftio_u32 lanes)
{
    /* Loaded before the completions and used after them: the two loads over the bus overlap. */
    weftio_u32 abort = lane == 0 ? weftio_load_relaxed_u32(&rxq->control->abort) : 0;
    weftio_u32 rest = call->limit - call->found;
    struct weftio_dev_round round = {0, 0, 0};

    if (rxq->turn && lanes == 1 && weftio_dev_receive_has_all(rxq, call)) /* likely: this lane has run the engine */
        round.packets = rest;
    else
        round = weftio_dev_completion_look(&rxq->completions, call->start + call->found, rest, lane, lanes);
    if (abort)
        round.stop = WEFTIO_DEV_STOP_ABORT;
    else if (lane == 0 && call->timeout_ns && call->found + round.packets < call->enough)
        round.stop = weftio_dev_receive_late(rxq, call);
    return round;
}

/** Adds the round of the scope to the call. Returns whether the call ends. */
WEFTIO_FN weftio_u32 weftio_dev_receive_add(struct weftio_dev_receive_call *call, struct weftio_dev_round round,
                                            weftio_u32 lanes)
{
    /*
     * A scan may miss up to 7 packets after those that it counts: one more round finds them before a stop ends the
     * call.
     */
    weftio_u32 is_last = call->stop || !round.packets || lanes < WEFTIO_DEV_FEWEST_SCANNING;

    call->found += weftio_dev_round_found(round);
    call->stop = round.stop;
    return call->found >= call->enough || (call->stop && is_last);
}

/** Lane 0, between two rounds: writes the trace and pauses. */
WEFTIO_FN void weftio_dev_receive_wait(WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq,
                                       const struct weftio_dev_receive_call *call, weftio_u32 attempt)
{
    weftio_dev_beat(rxq->control, &rxq->beats, WEFTIO_DEV_FUNCTION_RECEIVE, call->start + call->found, WEFTIO_DEV_OK);
    weftio_relax(attempt);
}

/** Ends a receive call: the next call starts after its packets. Returns the status of the call. */
WEFTIO_FN weftio_s32 weftio_dev_receive_end(WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq,
                                            const struct weftio_dev_receive_call *call, enum weftio_dev_scope scope,
                                            weftio_u32 lane)
{
    weftio_u32 next = call->start + call->found;
    weftio_s32 status = call->stop == WEFTIO_DEV_STOP_ABORT ? WEFTIO_DEV_ABORTED : WEFTIO_DEV_OK;

    if (lane == 0) {
        weftio_store_relaxed_u32(&rxq->received, next);
        weftio_dev_beat(rxq->control, &rxq->beats, WEFTIO_DEV_FUNCTION_RECEIVE, next, status);
    }
    weftio_dev_scope_barrier(scope);
    return status;
}

/**
 * The receive call of every scope, for `lane` of `lanes`: runs rounds until there are enough packets or lane 0 stops
 * it.
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_rxq_receive(WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq, weftio_u32 max_packets,
                                                weftio_u64 timeout_ns, weftio_u32 *count, weftio_u32 *first,
                                                enum weftio_dev_scope scope, weftio_u32 lane, weftio_u32 lanes)
{
    if (!weftio_dev_is_eth_rxq(rxq)) {
        *count = 0;
        return WEFTIO_DEV_INVALID_ARGUMENT;
    }
    struct weftio_dev_receive_call call = weftio_dev_receive_begin(rxq, max_packets, timeout_ns);

    for (weftio_u32 attempt = 0;; ++attempt) {
        if (lane == 0)
            weftio_dev_receive_run_engine(rxq, &call);
        weftio_u32 mine = weftio_dev_round_pack(weftio_dev_receive_look(rxq, &call, lane, lanes));
        struct weftio_dev_round all = weftio_dev_round_unpack(weftio_dev_scope_sum(scope, mine, &rxq->scratch));
        if (weftio_dev_receive_add(&call, all, lanes))
            break;
        if (weftio_dev_round_found(all))
            attempt = 0;
        if (lane == 0)
            weftio_dev_receive_wait(rxq, &call, attempt);
    }
    *count = call.found;
    *first = call.start;
    return weftio_dev_receive_end(rxq, &call, scope, lane);
}

/**
 * Receives for one lane. Blocks until `max_packets` packets have arrived, `timeout_ns` has passed or the host asks the
 * kernel to end; in inline mode this call runs the engine.
 *
 * Packets [first, first + count) are the caller's until it releases them. Indices are consecutive and wrap at 2^32. No
 * call returns more packets than the ring holds; while every slot is held, nothing arrives. Their bytes may be
 * read at once, in memory of every kind: in pinned memory they lie before the completion, and to memory of a GPU a copy
 * engine has brought them before (docs/gpu.md, "In which order a NIC's writes are seen").
 *
 * @pre no other lane receives from the queue meanwhile
 * @param max_packets  0: as many as the ring holds
 * @param timeout_ns   0: no time bound. With `max_packets` 0 too, only the host ends the call
 * @param[out] count   packets received, whatever the status is
 * @param[out] first   index of the first; unchanged on INVALID_ARGUMENT
 * @return WEFTIO_DEV_OK, also when the time has passed; WEFTIO_DEV_ABORTED the host asks the kernel to end (`count` may
 *         be above 0); WEFTIO_DEV_INVALID_ARGUMENT with WEFTIO_DEV_CHECKS (handle.h): `rxq` is no receive queue, or
 *         has the layout of another version
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_rxq_receive_thread(WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq,
                                                       weftio_u32 max_packets, weftio_u64 timeout_ns, weftio_u32 *count,
                                                       weftio_u32 *first)
{
    return weftio_dev_eth_rxq_receive(rxq, max_packets, timeout_ns, count, first, WEFTIO_DEV_SCOPE_THREAD, 0, 1);
}

/**
 * As weftio_dev_eth_rxq_receive_thread, for a warp: all its lanes call with equal arguments, and all get the same
 * results. The call has its own barriers.
 *
 * @pre no other scope receives from the queue meanwhile
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_rxq_receive_warp(WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq,
                                                     weftio_u32 max_packets, weftio_u64 timeout_ns, weftio_u32 *count,
                                                     weftio_u32 *first)
{
    return weftio_dev_eth_rxq_receive(rxq, max_packets, timeout_ns, count, first, WEFTIO_DEV_SCOPE_WARP,
                                      weftio_warp_lane(), weftio_warp_lanes());
}

/**
 * As weftio_dev_eth_rxq_receive_thread, for a block: all its lanes call with equal arguments, and all get the same
 * results. The call has its own barriers.
 *
 * @pre no other scope receives from the queue meanwhile
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_rxq_receive_block(WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq,
                                                      weftio_u32 max_packets, weftio_u64 timeout_ns, weftio_u32 *count,
                                                      weftio_u32 *first)
{
    return weftio_dev_eth_rxq_receive(rxq, max_packets, timeout_ns, count, first, WEFTIO_DEV_SCOPE_BLOCK, weftio_lane(),
                                      weftio_block_lanes());
}

/** Address of the packet with this publication word: the NIC fills slots in any order, and the word names the slot. */
WEFTIO_FN WEFTIO_GLOBAL weftio_u8 *weftio_dev_eth_rxq_slot(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq,
                                                           weftio_u32 publication)
{
    return rxq->slots + (weftio_u64)(weftio_cqe_wqe_counter(publication) & rxq->completions.mask) * rxq->stride_bytes;
}

/**
 * Address of packet `index`: the first byte of its Ethernet header. Never blocks; any lane. Checks nothing of `index`.
 *
 * @pre a receive call has handed `index` out, and it has not been released
 * @return the address; 0 with WEFTIO_DEV_CHECKS if `rxq` is no receive queue
 */
WEFTIO_FN WEFTIO_GLOBAL weftio_u8 *weftio_dev_eth_rxq_address(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq,
                                                              weftio_u32 index)
{
    if (!weftio_dev_is_eth_rxq(rxq))
        return 0;
    return weftio_dev_eth_rxq_slot(
        rxq, weftio_load_relaxed_u32(&weftio_dev_completion_at(&rxq->completions, index)->publication));
}

/** WEFTIO_DEV_PACKET_* of a completion. */
WEFTIO_FN weftio_u32 weftio_dev_packet_flags(const WEFTIO_GLOBAL struct weftio_cqe *cqe)
{
    return (cqe->hds_ip_ext & WEFTIO_CQE_L3_OK ? WEFTIO_DEV_PACKET_L3_CHECKSUM_GOOD : 0) |
           (cqe->hds_ip_ext & WEFTIO_CQE_L4_OK ? WEFTIO_DEV_PACKET_L4_CHECKSUM_GOOD : 0) |
           (cqe->l4_hdr_type_etc & WEFTIO_CQE_VLAN_STRIPPED ? WEFTIO_DEV_PACKET_VLAN_STRIPPED : 0) |
           (cqe->rss_hash_type ? WEFTIO_DEV_PACKET_RSS_HASH : 0);
}

/**
 * Describes packet `index`. Never blocks; any lane of any kernel that has the handle.
 *
 * @pre `index` has not been released: the NIC may overwrite the slot of a released packet at any time
 * @param[out] packet  unchanged on error; its bytes stay in the slot, and are the caller's until it releases `index`
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_NOT_FOUND no receive call has handed `index` out, or its completion has been
 *         overwritten; WEFTIO_DEV_INVALID_ARGUMENT as weftio_dev_eth_rxq_receive_thread
 */
WEFTIO_FN weftio_s32 weftio_dev_eth_rxq_packet(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq *rxq, weftio_u32 index,
                                               struct weftio_dev_packet *packet)
{
    if (!weftio_dev_is_eth_rxq(rxq))
        return WEFTIO_DEV_INVALID_ARGUMENT;
    const WEFTIO_GLOBAL struct weftio_cqe *cqe = weftio_dev_completion_at(&rxq->completions, index);
    /*
     * The owner bit distinguishes odd from even passes only, so `index` must also be one of the last `depth` indices
     * handed out.
     */
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
 * Gives the `count` oldest packets back to the NIC, which may overwrite their slots at once. Never blocks. One lane
 * calls it, after a barrier (weftio_block_barrier, weftio_warp_barrier) behind the last use by any lane.
 *
 * @param first  index of the oldest packet held
 * @return WEFTIO_DEV_OK; WEFTIO_DEV_OUT_OF_ORDER `first` is not the oldest packet held; WEFTIO_DEV_INVALID_ARGUMENT
 *         `count` is above the number of packets held, or as weftio_dev_eth_rxq_receive_thread. On error nothing is
 *         released.
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
