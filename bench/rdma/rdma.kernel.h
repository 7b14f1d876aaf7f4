/* The peer's ends of the RDMA benchmark, and both ends of its round trips. One lane each. */
#pragma once

#include "weftio/device/eth_rxq.h"
#include "weftio/device/eth_txq.h"
#include "weftio/device/rdma.h"

#define RDMA_BENCH_BURST 32u
#define RDMA_BENCH_PATIENCE_NS 10000000000ul /* timeout of a wait; only an error reaches it */

/* Offsets in the memory of an end: bytes to send, received bytes, the signal that follows them. */
#define RDMA_BENCH_OUT 0u
#define RDMA_BENCH_IN 64u
#define RDMA_BENCH_SIGNAL 128u

/* Offset of the trip number in a frame of a round trip. */
#define RDMA_BENCH_NUMBER 16u

/* Posts `count` receives; message i goes into buffer i % buffers->count. */
WEFTIO_FN weftio_s32 rdma_bench_post(WEFTIO_GLOBAL struct weftio_dev_rdma_recv* recv,
                                     const WEFTIO_GLOBAL struct weftio_dev_buf_arr* buffers, weftio_u32 count)
{
    weftio_u32 position, mask;
    weftio_s32 status = WEFTIO_DEV_OK;

    weftio_dev_rdma_recv_get_info(recv, &position, &mask);
    for (weftio_u32 each = 0; each < count && status == WEFTIO_DEV_OK; ++each)
        status = weftio_dev_rdma_recv_post_weak(recv, weftio_dev_buf_get(buffers, (position + each) % buffers->count),
                                                0, buffers->buffer_bytes, position + each);
    return status == WEFTIO_DEV_OK ? weftio_dev_rdma_recv_commit_weak(recv, count) : status;
}

/* Takes messages and posts their receives again, until the host asks the kernel to end. @pre all receives are posted */
WEFTIO_KERNEL void rdma_bench_take(WEFTIO_GLOBAL struct weftio_dev_rdma_recv* recv,
                                   WEFTIO_GLOBAL struct weftio_dev_buf_arr* buffers)
{
    weftio_u32 count, first;
    weftio_s32 status = WEFTIO_DEV_OK;

    while (status == WEFTIO_DEV_OK) {
        status = weftio_dev_rdma_recv_wait(recv, RDMA_BENCH_BURST, 1000000, &count, &first);
        if (status == WEFTIO_DEV_TIMEOUT)
            status = WEFTIO_DEV_OK;
        if (count && rdma_bench_post(recv, buffers, count) != WEFTIO_DEV_OK)
            return;
    }
}

/* Receives frames and releases their slots, until the host asks the kernel to end. */
WEFTIO_KERNEL void rdma_bench_take_frames(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq)
{
    weftio_u32 count, first;
    weftio_s32 status = WEFTIO_DEV_OK;

    while (status == WEFTIO_DEV_OK) {
        status = weftio_dev_eth_rxq_receive_block(rxq, RDMA_BENCH_BURST, 1000000, &count, &first);
        weftio_dev_eth_rxq_release(rxq, first, count);
    }
}

/* Writes 8 bytes and the signal `trip` after them. */
WEFTIO_FN weftio_s32 rdma_bench_hit(WEFTIO_GLOBAL struct weftio_dev_rdma* rdma, struct weftio_dev_remote peer,
                                    struct weftio_dev_buf mine, weftio_u64 trip)
{
    weftio_s32 status = weftio_dev_rdma_wait_room(rdma, 2, RDMA_BENCH_PATIENCE_NS);

    if (status == WEFTIO_DEV_OK)
        status = weftio_dev_rdma_write_signal(
            rdma, weftio_dev_rdma_write_request(peer, RDMA_BENCH_IN, mine, RDMA_BENCH_OUT, 8), peer, RDMA_BENCH_SIGNAL,
            trip, WEFTIO_DEV_SEND_NONE);
    return status == WEFTIO_DEV_OK ? weftio_dev_rdma_commit(rdma) : status;
}

/*
 * One end of `trips` round trips. The end that begins stores the duration of each in `taken_ns`; the other end answers,
 * and its `taken_ns` is 0. `right` counts the trips whose bytes were correct.
 */
WEFTIO_KERNEL void rdma_bench_ping_pong(WEFTIO_GLOBAL struct weftio_dev_rdma* rdma, struct weftio_dev_remote peer,
                                        WEFTIO_GLOBAL struct weftio_dev_buf_arr* memory,
                                        const WEFTIO_GLOBAL struct weftio_dev_clock* clock, weftio_u32 trips,
                                        WEFTIO_GLOBAL weftio_u32* taken_ns, WEFTIO_GLOBAL weftio_u32* right)
{
    struct weftio_dev_buf mine = weftio_dev_buf_get(memory, 0);
    WEFTIO_GLOBAL weftio_u64* out = (WEFTIO_GLOBAL weftio_u64*)(mine.address + RDMA_BENCH_OUT);
    const WEFTIO_GLOBAL weftio_u64* in = (const WEFTIO_GLOBAL weftio_u64*)(mine.address + RDMA_BENCH_IN);
    const WEFTIO_GLOBAL weftio_u64* signal = (const WEFTIO_GLOBAL weftio_u64*)(mine.address + RDMA_BENCH_SIGNAL);
    weftio_s32 status = WEFTIO_DEV_OK;

    for (weftio_u64 trip = 1; trip <= trips && status == WEFTIO_DEV_OK; ++trip) {
        weftio_u64 begin_ns = weftio_dev_clock_ns(clock);
        if (taken_ns) {
            *out = trip;
            status = rdma_bench_hit(rdma, peer, mine, trip);
        }
        if (status == WEFTIO_DEV_OK)
            status = weftio_dev_rdma_wait_value(rdma, signal, trip, RDMA_BENCH_PATIENCE_NS);
        if (status == WEFTIO_DEV_OK)
            *right += *in == trip;
        if (taken_ns) {
            taken_ns[trip - 1] = (weftio_u32)(weftio_dev_clock_ns(clock) - begin_ns);
        } else if (status == WEFTIO_DEV_OK) {
            *out = trip;
            status = rdma_bench_hit(rdma, peer, mine, trip);
        }
    }
    weftio_dev_rdma_commit_wait(rdma, RDMA_BENCH_PATIENCE_NS);
}

/* Sends the frame in buffer 0, with the number `trip` in it. */
WEFTIO_FN weftio_s32 rdma_bench_throw(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq, struct weftio_dev_buf frame,
                                      weftio_u64 trip)
{
    weftio_s32 status = weftio_dev_eth_txq_wait_room(txq, 1, RDMA_BENCH_PATIENCE_NS);

    *(WEFTIO_GLOBAL weftio_u64*)(frame.address + RDMA_BENCH_NUMBER) = trip;
    if (status == WEFTIO_DEV_OK)
        status = weftio_dev_eth_txq_send_enqueue_strong(txq, frame, frame.bytes, WEFTIO_DEV_SEND_NONE);
    if (status == WEFTIO_DEV_OK)
        status = weftio_dev_eth_txq_commit_strong(txq);
    weftio_dev_eth_txq_push(txq);
    return status;
}

/* As rdma_bench_ping_pong, with one Ethernet frame each way. */
WEFTIO_KERNEL void rdma_bench_frame_trips(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq,
                                          WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                                          WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames,
                                          const WEFTIO_GLOBAL struct weftio_dev_clock* clock, weftio_u32 trips,
                                          WEFTIO_GLOBAL weftio_u32* taken_ns, WEFTIO_GLOBAL weftio_u32* right)
{
    struct weftio_dev_buf frame = weftio_dev_buf_get(frames, 0);
    weftio_s32 status = WEFTIO_DEV_OK;
    weftio_u32 count, first;

    for (weftio_u64 trip = 1; trip <= trips && status == WEFTIO_DEV_OK; ++trip) {
        weftio_u64 begin_ns = weftio_dev_clock_ns(clock);
        if (taken_ns)
            status = rdma_bench_throw(txq, frame, trip);
        if (status == WEFTIO_DEV_OK)
            status = weftio_dev_eth_rxq_receive_thread(rxq, 1, RDMA_BENCH_PATIENCE_NS, &count, &first);
        if (status != WEFTIO_DEV_OK || !count)
            return;
        if (taken_ns)
            taken_ns[trip - 1] = (weftio_u32)(weftio_dev_clock_ns(clock) - begin_ns);
        *right += *(WEFTIO_GLOBAL weftio_u64*)(weftio_dev_eth_rxq_address(rxq, first) + RDMA_BENCH_NUMBER) == trip;
        status = weftio_dev_eth_rxq_release(rxq, first, count);
        if (!taken_ns && status == WEFTIO_DEV_OK)
            status = rdma_bench_throw(txq, frame, trip);
    }
}
