/* Kernels of gpu_bench. */
#pragma once

#include "weftio/device/eth_txq.h"
#include "weftio/device/semaphore.h"

/* Writes the count that the host reads; orders nothing, so it costs no round trip. Wraps at 2^32: for short runs. */
WEFTIO_FN void count_up(WEFTIO_GLOBAL weftio_u64* count, weftio_u64 value)
{
    weftio_store_relaxed_u32((WEFTIO_GLOBAL weftio_u32*)count, (weftio_u32)value);
}

/* Answers every flag of the host: the lowest possible latency of a hand-over. */
WEFTIO_KERNEL void flag_echo(const WEFTIO_GLOBAL weftio_u32* ping, WEFTIO_GLOBAL weftio_u32* pong, weftio_u32 count)
{
    for (weftio_u32 turn = 1; turn <= count; ++turn) {
        while (weftio_load_acquire_sys_u32(ping) != turn) {
        }
        weftio_store_release_sys_u32(pong, turn);
    }
}

/* Rounds that are timed together, since a timer may tick more seldom than a round takes. */
#define ROUNDS_AT_ONCE 8u

/*
 * Sends flags to flag_echo and waits for each answer. `times_ns` has the duration of every ROUNDS_AT_ONCE rounds.
 */
WEFTIO_KERNEL void flag_rounds(WEFTIO_GLOBAL weftio_u32* ping, const WEFTIO_GLOBAL weftio_u32* pong, weftio_u32 count,
                               const WEFTIO_GLOBAL struct weftio_dev_clock* clock, WEFTIO_GLOBAL weftio_u64* times_ns)
{
    for (weftio_u32 turn = 1; turn <= count; ++times_ns) {
        const weftio_u64 begin_ns = weftio_dev_clock_ns(clock);
        for (const weftio_u32 end = turn + ROUNDS_AT_ONCE; turn != end; ++turn) {
            weftio_store_release_sys_u32(ping, turn);
            while (weftio_load_acquire_sys_u32(pong) != turn) {
            }
        }
        *times_ns = weftio_dev_clock_ns(clock) - begin_ns;
    }
}

/* The same with items of a semaphore: READY there, FREE when it comes back; with packet info if `info`. */
WEFTIO_KERNEL void item_rounds(const WEFTIO_GLOBAL struct weftio_dev_semaphore* items, weftio_u32 info,
                               weftio_u32 count, WEFTIO_GLOBAL weftio_u64* times_ns)
{
    for (weftio_u32 turn = 0; turn < count; ++times_ns) {
        const weftio_u64 begin_ns = weftio_dev_clock_ns(items->clock);
        for (const weftio_u32 end = turn + ROUNDS_AT_ONCE; turn != end; ++turn) {
            if (info)
                weftio_dev_semaphore_set_packet_info(items, turn, WEFTIO_DEV_SEMAPHORE_READY, turn, ~turn);
            else
                weftio_dev_semaphore_set_status(items, turn, WEFTIO_DEV_SEMAPHORE_READY);
            if (weftio_dev_semaphore_wait_status(items, turn, WEFTIO_DEV_SEMAPHORE_FREE, 0) != WEFTIO_DEV_OK)
                return;
        }
        *times_ns = weftio_dev_clock_ns(items->clock) - begin_ns;
    }
}
/* Takes each item and sets it FREE; `wrong` counts items with wrong packet info. */
WEFTIO_KERNEL void item_echo(const WEFTIO_GLOBAL struct weftio_dev_semaphore* items, weftio_u32 info, weftio_u32 count,
                             WEFTIO_GLOBAL weftio_u32* wrong)
{
    weftio_u32 packets = 0, first = 0, differ = 0;

    for (weftio_u32 turn = 0; turn < count; ++turn) {
        weftio_s32 status =
            info ? weftio_dev_semaphore_wait_packet_info(items, turn, WEFTIO_DEV_SEMAPHORE_READY, 0, &packets, &first)
                 : weftio_dev_semaphore_wait_status(items, turn, WEFTIO_DEV_SEMAPHORE_READY, 0);
        if (status != WEFTIO_DEV_OK)
            return;
        weftio_dev_semaphore_set_status(items, turn, WEFTIO_DEV_SEMAPHORE_FREE);
        differ += info && (packets != turn || first != ~turn);
    }
    *wrong = differ;
}

/*
 * As flag_echo, with 64 bytes behind each flag: read once the flag has been seen, and written before it is answered.
 * What a hand-over of a frame costs at least.
 */
WEFTIO_KERNEL void line_echo(const WEFTIO_GLOBAL weftio_u32* ping, WEFTIO_GLOBAL weftio_u32* pong, weftio_u32 count)
{
    for (weftio_u32 turn = 1; turn <= count; ++turn) {
        weftio_u32 words[16];
        while (weftio_load_acquire_sys_u32(ping) != turn) {
        }
        for (weftio_u32 at = 0; at < 16; at += 4)
            weftio_load_x4(ping + 16 + at, &words[at], &words[at + 1], &words[at + 2], &words[at + 3]);
        for (weftio_u32 at = 0; at < 16; at += 4)
            weftio_store_x4(pong + 16 + at, words[at], words[at + 1], words[at + 2], words[at + 3]);
        weftio_store_release_sys_u32(pong, turn);
    }
}

/* Sends one frame at a time through a loopback port and receives it: kernel, engine, kernel. */
WEFTIO_KERNEL void frame_round_trips(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq,
                                     WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                                     WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, weftio_u32 strong,
                                     weftio_u32 count, WEFTIO_GLOBAL weftio_u64* times_ns)
{
    for (weftio_u32 turn = 0; turn < count && !weftio_dev_eth_rxq_aborted(rxq); ++turn) {
        weftio_u32 received, first;
        weftio_u64 begin_ns = weftio_dev_clock_ns(rxq->clock);

        if (strong) {
            weftio_dev_eth_txq_send_enqueue_strong(txq, weftio_dev_buf_get(frames, turn), 64, WEFTIO_DEV_SEND_NONE);
            weftio_dev_send_queue_submit(&txq->queue);
        } else {
            weftio_dev_eth_txq_send_enqueue_weak(txq, weftio_dev_buf_get(frames, turn), 64, turn, WEFTIO_DEV_SEND_NONE);
            weftio_dev_send_queue_submit_weak(&txq->queue, 1);
        }
        weftio_dev_eth_rxq_receive_thread(rxq, 1, 0, &received, &first);
        times_ns[turn] = weftio_dev_clock_ns(rxq->clock) - begin_ns;
        weftio_dev_eth_rxq_release(rxq, first, received);
    }
}

/* Packets whose reads a lane has in flight: over a bus, the number of reads in flight limits the rate. */
#define AT_ONCE 4

/* Reads 16 bytes of a packet. */
WEFTIO_FN weftio_u32 read_unit(const WEFTIO_GLOBAL weftio_u8* packet, weftio_u32 unit)
{
    weftio_u32 a, b, c, d;

    weftio_load_x4((const WEFTIO_GLOBAL weftio_u32*)(packet + unit * 16), &a, &b, &c, &d);
    return a ^ b ^ c ^ d;
}

/*
 * Reads one lane's share of a batch. A group of lanes, a warp at most, reads a packet together; each lane computes the
 * address of a packet once.
 */
WEFTIO_FN weftio_u32 read_share(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, weftio_u32 first, weftio_u32 count,
                                weftio_u32 units)
{
    weftio_u32 group = weftio_min_u32(weftio_min_u32(units, 32), weftio_block_lanes());
    weftio_u32 sum = 0, groups = units ? weftio_block_lanes() / group : 0;

    for (weftio_u32 packet = units ? weftio_lane() / group : count; packet < count; packet += AT_ONCE * groups) {
        const WEFTIO_GLOBAL weftio_u8* at[AT_ONCE];
        for (weftio_u32 i = 0; i < AT_ONCE; ++i)
            at[i] = weftio_dev_eth_rxq_address(rxq, first + weftio_min_u32(packet + i * groups, count - 1));
        for (weftio_u32 unit = weftio_lane() % group; unit < units; unit += group)
            for (weftio_u32 i = 0; i < AT_ONCE; ++i)
                sum += packet + i * groups < count ? read_unit(at[i], unit) : 0;
    }
    return sum;
}

/*
 * Receives until it is stopped. The lanes read the first `bytes` bytes of every packet. Counts packets and sums up the
 * words that were read.
 */
WEFTIO_KERNEL void receive_all(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL weftio_u64* packets,
                               weftio_u32 bytes, weftio_u32 wait_ns)
{
    weftio_u32 count, first, sum = 0, units = bytes / 16;
    weftio_u64 total = 0;
    weftio_s32 status;

    do {
        status = weftio_dev_eth_rxq_receive_block(rxq, 0, wait_ns, &count, &first);
        sum += read_share(rxq, first, count, units);
        weftio_block_barrier();
        if (weftio_lane() == 0) {
            weftio_dev_eth_rxq_release(rxq, first, count);
            total += count;
            count_up(packets, total);
        }
    } while (status == WEFTIO_DEV_OK);
    packets[2 + weftio_lane() % 4] = sum; /* so that the compiler does not remove the reads */
}

/* Receives bursts of 32 and releases each when all of it has been read. */
WEFTIO_KERNEL void receive_bursts(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL weftio_u64* sink,
                                  weftio_u32 bytes)
{
    weftio_u32 count, first, sum = 0, units = bytes / 16;

    while (weftio_dev_eth_rxq_receive_block(rxq, 32, 0, &count, &first) == WEFTIO_DEV_OK) {
        for (weftio_u32 i = weftio_lane(); i < count * units; i += weftio_block_lanes())
            sum += read_unit(weftio_dev_eth_rxq_address(rxq, first + i / units), i % units);
        weftio_block_barrier();
        if (weftio_lane() == 0)
            weftio_dev_eth_rxq_release(rxq, first, count);
    }
    sink[weftio_lane() % 4] = sum;
}

/* Turns a frame into its answer: swaps destination and source address. */
WEFTIO_FN void answer(WEFTIO_GLOBAL weftio_u8* frame)
{
    WEFTIO_GLOBAL weftio_u32* words = (WEFTIO_GLOBAL weftio_u32*)frame;
    weftio_u32 a, b, c, d;

    weftio_load_x4(words, &a, &b, &c, &d);
    weftio_store_x4(words, b >> 16 | c << 16, c >> 16 | a << 16, a >> 16 | b << 16, d);
}

/*
 * Answers bursts of 32 from their receive slots. The slots of a burst are released after the answers to the next burst
 * have been posted: the answers of the earlier burst have been sent by then.
 */
WEFTIO_KERNEL void answer_bursts(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq,
                                 WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq)
{
    weftio_u32 count, first, sent, mask, answered = 0;

    weftio_dev_eth_txq_get_info(txq, &sent, &mask);
    while (weftio_dev_eth_rxq_receive_block(rxq, 32, 0, &count, &first) == WEFTIO_DEV_OK) {
        for (weftio_u32 i = weftio_lane(); i < count; i += weftio_block_lanes()) {
            struct weftio_dev_buf frame = weftio_dev_eth_rxq_buf(rxq, first + i);
            answer(frame.address);
            weftio_dev_eth_txq_send_enqueue_weak(txq, frame, 64, sent + i, WEFTIO_DEV_SEND_NONE);
        }
        weftio_block_barrier();
        sent += count;
        if (weftio_lane() == 0) {
            weftio_dev_eth_txq_commit_weak(txq, count);
            weftio_dev_eth_txq_push(txq);
            weftio_dev_eth_rxq_release(rxq, first - answered, answered);
        }
        answered = count;
    }
}

/*
 * The kernels that a program without kernel-owned queues launches for each burst: one reads it, the other answers it.
 */
WEFTIO_KERNEL void read_burst(WEFTIO_GLOBAL weftio_u8* packets, WEFTIO_GLOBAL weftio_u32* sink, weftio_u32 bytes)
{
    weftio_u32 sum = 0;

    for (weftio_u32 i = weftio_lane(); i < bytes / 16; i += weftio_block_lanes())
        sum += read_unit(packets, i);
    sink[weftio_lane() % 4] = sum;
}
WEFTIO_KERNEL void answer_burst(WEFTIO_GLOBAL weftio_u8* packets, WEFTIO_GLOBAL weftio_u32* sink, weftio_u32 bytes)
{
    (void)sink;
    for (weftio_u32 i = weftio_lane(); i < bytes / 64; i += weftio_block_lanes())
        answer(packets + i * 64);
}

/* How a block posts. */
#define POST_WEAK 0u  /* one block owns the ring, and waits for room */
#define POST_LANES 1u /* each lane claims for itself */
#define POST_BLOCK 2u /* the block reserves once */
#define POST_WARPS 3u /* each warp reserves, publishes and rings */

/* The NIC of a ring in the memory of the device: completes what the record names, until it is stopped. */
WEFTIO_FN void complete_until_stopped(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq)
{
    WEFTIO_GLOBAL weftio_u32* publication =
        (WEFTIO_GLOBAL weftio_u32*)&txq->queue.ring.completion->publication; /* const for kernels that post */
    weftio_u32 seen = 0;

    for (weftio_u32 turn = 0; turn % 1024 || !weftio_dev_eth_txq_aborted(txq); ++turn) {
        weftio_u32 ready = weftio_swap32(weftio_load_acquire_sys_u32(txq->queue.ring.dbrec));
        if (ready == seen)
            continue;
        seen = ready;
        weftio_store_release_sys_u32(publication, weftio_cqe_publication(ready - 1, WEFTIO_CQE_OPCODE_REQUESTER, 0));
    }
}

/* One round of a block or warp: `ahead` entries of each lane. Returns whether it was the last one. */
WEFTIO_FN weftio_u32 post_round(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq, struct weftio_dev_buf frame,
                                weftio_u32 how, weftio_u32 ahead, weftio_u32* position,
                                WEFTIO_GLOBAL weftio_u32* scratch)
{
    const enum weftio_dev_scope scope = how == POST_WARPS ? WEFTIO_DEV_SCOPE_WARP : WEFTIO_DEV_SCOPE_BLOCK;
    const weftio_u32 lanes = how == POST_WARPS ? weftio_warp_lanes() : weftio_block_lanes(), round = ahead * lanes;
    weftio_u32 stop = 0;

    if (how == POST_LANES) {
        for (weftio_u32 i = 0; i < ahead; ++i)
            while (weftio_dev_eth_txq_send_enqueue_strong(txq, frame, 64, WEFTIO_DEV_SEND_NONE) != WEFTIO_DEV_OK)
                if (weftio_dev_eth_txq_aborted(txq))
                    break;
        weftio_block_barrier();
        if (weftio_lane() == 0)
            stop = weftio_dev_send_queue_submit(&txq->queue) != WEFTIO_DEV_OK;
        return (weftio_u32)weftio_block_first_u64(stop, scratch);
    }
    if ((how == POST_WEAK
             ? weftio_dev_eth_txq_wait_room_block(txq, round, 0)
             : weftio_dev_send_queue_reserve(&txq->queue, scope, round, 0, scratch, position)) != WEFTIO_DEV_OK)
        return 1;
    for (weftio_u32 i = weftio_dev_scope_lane(scope); i < round; i += lanes)
        weftio_dev_eth_txq_send_enqueue_weak(txq, frame, 64, *position + i, WEFTIO_DEV_SEND_NONE);
    if (how != POST_WEAK) {
        weftio_dev_send_queue_submit_reserved(&txq->queue, scope, *position, round);
        return 0;
    }
    weftio_block_barrier();
    if (weftio_lane() == 0)
        weftio_dev_send_queue_submit_weak(&txq->queue, round);
    *position += round;
    return 0;
}

/*
 * Posts the same frames repeatedly until it is stopped; each publication has `ahead` entries of each lane.
 *
 * @param nic      1: the last block is the NIC
 * @param counts   for each block a cache line, whose first word counts the entries it has posted
 */
WEFTIO_KERNEL void post_entries(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                                WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, weftio_u32 how, weftio_u32 ahead,
                                weftio_u32 nic, WEFTIO_GLOBAL weftio_u64* counts, WEFTIO_GLOBAL weftio_u32* scratch)
{
    const struct weftio_dev_buf frame = weftio_dev_buf_get(frames, weftio_lane());
    const weftio_u32 mine = ahead * weftio_block_lanes();
    weftio_u32 position, mask;

    if (nic && weftio_block() + 1 == weftio_blocks()) {
        if (weftio_lane() == 0)
            complete_until_stopped(txq);
        return;
    }
    weftio_dev_eth_txq_get_info(txq, &position, &mask);
    weftio_block_barrier();
    /* A count crosses the bus: not in every round. Warps of a block may be some rounds apart. */
    for (weftio_u32 round = 1; !post_round(txq, frame, how, ahead, &position, scratch + weftio_block()); ++round)
        if (weftio_lane() == 0 && round % 16 == 0)
            count_up(counts + weftio_block() * 8, (weftio_u64)round * mine);
}

/* Plain stores of 64 bytes to the same memory, to compare posting with. */
WEFTIO_KERNEL void store_lines(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq, weftio_u32 ahead,
                               WEFTIO_GLOBAL weftio_u64* stored, WEFTIO_GLOBAL weftio_u32* scratch)
{
    const struct weftio_dev_send_parts ring = weftio_dev_send_parts_of(&txq->queue.ring);
    weftio_u32 round = ahead * weftio_block_lanes(), going = 1, position = 0;
    weftio_u64 total = 0;

    while (going) {
        for (weftio_u32 i = weftio_lane(); i < round; i += weftio_block_lanes())
            for (weftio_u32 segment = 0; segment < 4; ++segment)
                weftio_dev_send_segment(ring, position + i, segment, i, segment, position, 0);
        position += round;
        total += round;
        if (weftio_lane() == 0)
            count_up(stored, total);
        going = !weftio_block_sum_u32(weftio_lane() == 0 && weftio_dev_eth_txq_aborted(txq), scratch);
    }
}
