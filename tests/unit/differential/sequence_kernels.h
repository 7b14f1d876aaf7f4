/**
 * A sequence of calls as data, run by one block: every device, with any number of lanes, must leave the same bytes in
 * the rings.
 *
 * Each step names the lane that makes the calls for which one lane is enough. Weak entries and packets are distributed
 * over all lanes. Lane 0 acts as the NIC between the kernel's steps.
 */
#pragma once

#include "weftio/device/eth_rxq.h"
#include "weftio/device/eth_txq.h"

#define SEQUENCE_DEPTH 64u
#define SEQUENCE_STEPS 96u
#define SEQUENCE_DEALT 20u /* most entries or packets of a step with a result, distributed over the lanes */
#define SEQUENCE_RESULTS (4u + SEQUENCE_DEALT) /* result words of a step */

enum sequence_operation {
    SEQUENCE_SEND_STRONG,
    SEQUENCE_INLINE_STRONG,
    SEQUENCE_WAIT_STRONG,
    SEQUENCE_COMMIT_STRONG,
    SEQUENCE_SEND_WEAK,
    SEQUENCE_WAIT_WEAK,
    SEQUENCE_COMMIT_WEAK,
    SEQUENCE_PUSH,
    SEQUENCE_COMPLETE,
    SEQUENCE_ASK,
    SEQUENCE_WAIT_ROOM,
    SEQUENCE_ARRIVE,
    SEQUENCE_RECEIVE,
    SEQUENCE_RELEASE,
    SEQUENCE_ABORT,
    SEQUENCE_OPERATIONS
};

struct sequence_step {
    weftio_u32 operation, a, b, c;
};

/** The memory that a send queue shares with its NIC. */
struct sequence_send_ring {
    weftio_u32 segments[SEQUENCE_DEPTH * 16];
    weftio_u32 filled[SEQUENCE_DEPTH];
    struct weftio_cqe completion;
    weftio_u64 doorbell;
    weftio_u32 dbrec;
    weftio_u32 reserved[13];
};

/** The results that must be the same on all devices. */
struct sequence_outcome {
    struct sequence_send_ring strong, weak;
    struct weftio_cqe completions[SEQUENCE_DEPTH];
    weftio_u32 receive_dbrec;
    weftio_u32 arrived; /* next index that the NIC fills */
    weftio_u32 reserved[14];
    weftio_u32 results[SEQUENCE_STEPS][SEQUENCE_RESULTS];
    weftio_u32 ends[32];
};

struct sequence_world {
    struct sequence_outcome outcome;
    struct weftio_dev_eth_txq strong, weak;
    struct weftio_dev_eth_rxq receive;
    struct weftio_dev_control strong_control, weak_control, receive_control;
    weftio_u8 frame[128];
    struct sequence_step steps[SEQUENCE_STEPS];
    weftio_u32 count;
};

/** A buffer that is never read. */
WEFTIO_FN struct weftio_dev_buf sequence_buffer(weftio_u32 at)
{
    struct weftio_dev_buf buffer;

    buffer.address = (WEFTIO_GLOBAL weftio_u8*)(weftio_u64)(0x10000u + at);
    buffer.bytes = 1500;
    buffer.lkey_be = at * 3;
    return buffer;
}

/** One lane: a strong call. */
WEFTIO_FN weftio_s32 sequence_strong(WEFTIO_GLOBAL struct sequence_world* world, struct sequence_step step)
{
    WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq = &world->strong;

    if (step.operation == SEQUENCE_SEND_STRONG)
        return weftio_dev_eth_txq_send_enqueue_strong(txq, sequence_buffer(step.a), step.b % 1600, step.c & 7u);
    if (step.operation == SEQUENCE_INLINE_STRONG)
        return weftio_dev_eth_txq_send_inline_enqueue_strong(txq, world->frame + step.a % 32,
                                                             step.b % (WEFTIO_DEV_INLINE_BYTES + 2), step.c & 7u);
    if (step.operation == SEQUENCE_WAIT_STRONG)
        return weftio_dev_eth_txq_wait_time_enqueue_strong(txq, (weftio_u64)step.a << 32 | step.b, step.c & 7u);
    return weftio_dev_eth_txq_commit_strong(txq);
}

/** All lanes: weak entries at adjacent positions, by position or masked. */
WEFTIO_FN void sequence_weak(WEFTIO_GLOBAL struct sequence_world* world, struct sequence_step step,
                             WEFTIO_GLOBAL weftio_u32* results)
{
    weftio_u32 first, mask, count = step.b % (SEQUENCE_DEALT + 1);

    weftio_dev_eth_txq_get_info(&world->weak, &first, &mask);
    for (weftio_u32 entry = weftio_lane(); entry < count; entry += weftio_block_lanes()) {
        weftio_u32 position = step.c & 8u ? weftio_dev_eth_txq_unmask(&world->weak, (first + entry) & mask)
                                          : first + entry + (step.c & 16u ? 60u : 0u);
        results[4 + entry] =
            (weftio_u32)(step.operation == SEQUENCE_SEND_WEAK
                             ? weftio_dev_eth_txq_send_enqueue_weak(&world->weak, sequence_buffer(step.a + entry),
                                                                    60 + entry, position, step.c & 7u)
                             : weftio_dev_eth_txq_wait_time_enqueue_weak(&world->weak, step.a + entry, position,
                                                                         step.c & 7u));
    }
}

/** One lane: all queries of a send queue. */
WEFTIO_FN void sequence_ask(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq, struct sequence_step step,
                            WEFTIO_GLOBAL weftio_u32* results)
{
    weftio_u64 when_ns = 0;

    results[4] = weftio_dev_eth_txq_completed(txq);
    results[5] = (weftio_u32)weftio_dev_eth_txq_poll_completion(txq, txq->queue.ring.ready - 1 - step.b % 80, &when_ns);
    results[6] = (weftio_u32)when_ns;
    results[7] = weftio_dev_send_room(&txq->queue.ring, step.a % 70);
    results[8] = weftio_dev_send_failed(&txq->queue.ring);
    results[9] = (weftio_u32)weftio_dev_eth_txq_status(txq);
}

/** The NIC: completes some of the committed entries, or fails one. */
WEFTIO_FN void sequence_complete(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                                 WEFTIO_GLOBAL struct sequence_send_ring* ring, struct sequence_step step)
{
    weftio_u32 completed = weftio_dev_send_completed(&txq->queue.ring),
               done = step.a % (txq->queue.ring.ready - completed + 1), bad = !(step.c & 30u);

    weftio_u64 syndrome = WEFTIO_SYNDROME_LOCAL_LENGTH;
    ring->completion.timestamp_be =
        weftio_swap64(bad ? syndrome : weftio_real_time_from_ns(1000000000u + (weftio_u64)step.b));
    weftio_store_release_sys_u32(
        &ring->completion.publication,
        weftio_cqe_publication(completed + done - 1,
                               bad ? WEFTIO_CQE_OPCODE_REQUESTER_ERROR : WEFTIO_CQE_OPCODE_REQUESTER, 0));
}

/** The NIC: completes packets in slots of its choice, while released slots are free. */
WEFTIO_FN void sequence_arrive(WEFTIO_GLOBAL struct sequence_outcome* outcome, struct sequence_step step)
{
    weftio_u32 room = (weftio_swap32(outcome->receive_dbrec) - outcome->arrived) & 0xffffu,
               count = weftio_min_u32(step.a % 70, room);

    for (; count != 0; --count) {
        WEFTIO_GLOBAL struct weftio_cqe* cqe = &outcome->completions[outcome->arrived % SEQUENCE_DEPTH];
        cqe->byte_count_be = weftio_swap32(step.b + outcome->arrived);
        cqe->timestamp_be = weftio_swap64(weftio_real_time_from_ns(step.b));
        cqe->rss_hash_be = step.b * outcome->arrived;
        cqe->rss_hash_type = (weftio_u8)(step.c & 1u);
        cqe->hds_ip_ext = (weftio_u8)(step.c & 7u);
        weftio_store_release_sys_u32(&cqe->publication, weftio_cqe_publication(outcome->arrived * 5 + step.c,
                                                                               WEFTIO_CQE_OPCODE_RESPONDER_SEND,
                                                                               outcome->arrived / SEQUENCE_DEPTH));
        outcome->arrived += 1;
    }
}

/** All lanes: receive, and read the first packets. */
WEFTIO_FN void sequence_receive(WEFTIO_GLOBAL struct sequence_world* world, struct sequence_step step,
                                WEFTIO_GLOBAL weftio_u32* results)
{
    weftio_u32 count, first;
    weftio_s32 status =
        weftio_dev_eth_rxq_receive_block(&world->receive, step.a % 70, 1 + (step.b & 3u), &count, &first);

    for (weftio_u32 at = weftio_lane(); at < count && at < SEQUENCE_DEALT; at += weftio_block_lanes()) {
        struct weftio_dev_packet packet;
        if (weftio_dev_eth_rxq_packet(&world->receive, first + at, &packet) == WEFTIO_DEV_OK)
            results[4 + at] = (weftio_u32)(packet.address - world->receive.slots) + 31 * packet.bytes +
                              (packet.flags << 28) + (weftio_u32)packet.timestamp_ns * 7 + packet.rss_hash;
    }
    if (weftio_lane() == 0) {
        results[0] = (weftio_u32)status;
        results[1] = count;
        results[2] = first;
    }
}

/** The lane that the step names: calls for one lane, and actions of the NIC. */
WEFTIO_FN void sequence_alone(WEFTIO_GLOBAL struct sequence_world* world, struct sequence_step step,
                              WEFTIO_GLOBAL weftio_u32* results)
{
    WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq = step.c & 128u ? &world->strong : &world->weak;
    WEFTIO_GLOBAL struct sequence_send_ring* ring = step.c & 128u ? &world->outcome.strong : &world->outcome.weak;

    if (step.operation <= SEQUENCE_COMMIT_STRONG)
        results[0] = (weftio_u32)sequence_strong(world, step);
    else if (step.operation == SEQUENCE_COMMIT_WEAK)
        results[0] = (weftio_u32)weftio_dev_eth_txq_commit_weak(&world->weak, step.a % (SEQUENCE_DEALT + 1));
    else if (step.operation == SEQUENCE_PUSH)
        weftio_dev_eth_txq_push(txq);
    else if (step.operation == SEQUENCE_COMPLETE)
        sequence_complete(txq, ring, step);
    else if (step.operation == SEQUENCE_ASK)
        sequence_ask(txq, step, results);
    else if (step.operation == SEQUENCE_ARRIVE)
        sequence_arrive(&world->outcome, step);
    else if (step.operation == SEQUENCE_RELEASE)
        results[0] = (weftio_u32)weftio_dev_eth_rxq_release(&world->receive,
                                                            world->receive.released + (step.c % 8 == 0), step.a % 40);
    else if (step.operation == SEQUENCE_ABORT)
        weftio_store_relaxed_u32(step.c & 64u ? &world->receive.control->abort : &txq->queue.control->abort,
                                 step.a & 1u);
}

/**
 * Stores the final state of a handle and of its trace, without the count of beats, which depends on the duration of
 * waits.
 */
WEFTIO_FN void sequence_end(const WEFTIO_GLOBAL struct weftio_dev_control* control,
                            const WEFTIO_GLOBAL struct weftio_dev_send_ring* ring, WEFTIO_GLOBAL weftio_u32* ends)
{
    ends[0] = control->function;
    ends[1] = control->index;
    ends[2] = (weftio_u32)control->status;
    if (!ring)
        return;
    ends[3] = ring->reserved;
    ends[4] = ring->ready;
    ends[5] = ring->completed;
    ends[6] = ring->asked;
    ends[7] = ring->commits;
}

WEFTIO_KERNEL void run_sequence(WEFTIO_GLOBAL struct sequence_world* world)
{
    for (weftio_u32 at = 0; at < world->count; ++at) {
        struct sequence_step step = world->steps[at];
        WEFTIO_GLOBAL weftio_u32* results = world->outcome.results[at];
        if (step.operation == SEQUENCE_RECEIVE) {
            sequence_receive(world, step, results);
        } else if (step.operation == SEQUENCE_WAIT_ROOM) {
            weftio_s32 status = weftio_dev_eth_txq_wait_room_block(step.c & 128u ? &world->strong : &world->weak,
                                                                   step.a % 70, 1 + (step.b & 3u));
            if (weftio_lane() == 0)
                results[0] = (weftio_u32)status;
        } else if (step.operation == SEQUENCE_SEND_WEAK || step.operation == SEQUENCE_WAIT_WEAK) {
            sequence_weak(world, step, results);
        } else if (weftio_lane() == step.c % weftio_block_lanes()) {
            sequence_alone(world, step, results);
        }
        weftio_block_barrier();
    }
    if (weftio_lane() == 0) {
        sequence_end(&world->strong_control, &world->strong.queue.ring, world->outcome.ends);
        sequence_end(&world->weak_control, &world->weak.queue.ring, world->outcome.ends + 8);
        sequence_end(&world->receive_control, 0, world->outcome.ends + 16);
        world->outcome.ends[20] = world->receive.received;
        world->outcome.ends[21] = world->receive.released;
    }
}
