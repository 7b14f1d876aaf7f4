/*
 * Kernels of the soak test, which forward or send at a rate for hours. One lane; they end when the host asks them to.
 */
#pragma once

#include "weftio/device/eth_txq.h"

#define SOAK_BURST 32u
#define SOAK_FRAME_BYTES 64

struct soak_orders {
    weftio_u64 moved;         /* packets so far; written by the kernel */
    weftio_u64 ps_per_packet; /* forward: least time per packet; 0: as fast as possible */
    weftio_u64 start;         /* pace: value of the first wait */
    weftio_u64 interval_ns;   /* pace: time between frames, less than a second; 0: all waits have the same time */
    weftio_u32 ahead;         /* pace: pairs of wait and frame that may be in flight at once, SOAK_BURST or more */
    weftio_u32 reserved;
};

/*
 * Sends packets from their receive slots and releases the slots as the sends complete.
 *
 * @pre all frames of an earlier kernel have been sent
 */
WEFTIO_KERNEL void soak_forward(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq,
                                WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq, WEFTIO_GLOBAL struct soak_orders* orders)
{
    weftio_u32 count, first, position, mask, released = rxq->received, idle = 0;
    weftio_u64 moved = 0, begin = weftio_dev_clock_ns(rxq->clock);
    weftio_s32 status = WEFTIO_DEV_OK;

    weftio_dev_eth_txq_get_info(txq, &position, &mask);
    weftio_dev_eth_rxq_release(rxq, rxq->released, rxq->received - rxq->released);
    const weftio_u32 origin = position - released; /* entry origin + n sends packet n */
    while (status == WEFTIO_DEV_OK) {
        status = weftio_dev_eth_rxq_receive_thread(rxq, SOAK_BURST, 1, &count, &first);
        for (weftio_u32 at = 0; at < count; ++at) {
            struct weftio_dev_packet packet;
            if (weftio_dev_eth_rxq_packet(rxq, first + at, &packet) != WEFTIO_DEV_OK)
                return;
            struct weftio_dev_buf frame = {.address = packet.address, .bytes = packet.bytes, .lkey_be = rxq->lkey_be};
            weftio_dev_eth_txq_send_enqueue_weak(txq, frame, packet.bytes, position + at, WEFTIO_DEV_SEND_NONE);
        }
        position += count;
        if (count) {
            weftio_dev_eth_txq_commit_weak(txq, count); /* commits also if it returns WEFTIO_DEV_ABORTED */
            weftio_dev_eth_txq_push(txq);
        }
        weftio_u32 done = weftio_dev_eth_txq_completed(txq) - origin;
        weftio_dev_eth_rxq_release(rxq, released, done - released);
        released = done;
        moved += count;
        weftio_store_release_sys_u64(&orders->moved, moved);
        idle = count ? 0 : idle + 1;
        if (idle)
            weftio_relax(idle);
        const weftio_u64 due_ns = begin + moved * orders->ps_per_packet / 1000;
        for (weftio_u64 now; (now = weftio_dev_clock_ns(rxq->clock)) < due_ns && !weftio_dev_eth_rxq_aborted(rxq);)
            weftio_relax(due_ns - now > 100000 ? 1 << 16 : 0); /* sleeps if more than 100 us are left */
    }
}

/* Enqueues a wait and a frame for every interval. */
WEFTIO_KERNEL void soak_pace(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                             WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, WEFTIO_GLOBAL struct soak_orders* orders)
{
    weftio_u32 position, mask;
    weftio_u64 moved = 0, when = orders->start;

    weftio_dev_eth_txq_get_info(txq, &position, &mask);
    while (weftio_dev_eth_txq_wait_room(txq, mask + 1 - 2 * orders->ahead + 2 * SOAK_BURST, 0) == WEFTIO_DEV_OK) {
        for (weftio_u32 pair = 0; pair < SOAK_BURST; ++pair, position += 2) {
            weftio_dev_eth_txq_wait_time_enqueue_weak(txq, when, position, WEFTIO_DEV_SEND_NONE);
            weftio_dev_eth_txq_send_enqueue_weak(txq, weftio_dev_buf_get(frames, pair), SOAK_FRAME_BYTES, position + 1,
                                                 WEFTIO_DEV_SEND_NONE);
            when = weftio_dev_timestamp_add(when, orders->interval_ns);
        }
        weftio_dev_eth_txq_commit_weak(txq, 2 * SOAK_BURST); /* commits also if it returns WEFTIO_DEV_ABORTED */
        weftio_dev_eth_txq_push(txq);
        moved += SOAK_BURST;
        weftio_store_release_sys_u64(&orders->moved, moved);
    }
}
