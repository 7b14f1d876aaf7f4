/* The kernel of send_wait_time: one source for C++, OpenCL C and CUDA. */
#pragma once

#include "weftio/device/eth_txq.h"

#define BURSTS 8
#define FRAMES 32 /* in a burst */
#define FRAME_BYTES 1024

/* The CPU sets the start after the kernel has reported that it runs: compiling it may take longer than lead_ns. */
struct schedule {
    weftio_u32 running;
    weftio_u32 spare;
    weftio_u64 start; /* value of the first wait; 0 until the CPU has set it */
};

/* Enqueues a wait entry and the frames of each burst, then returns; the NIC sends each burst at its time. */
WEFTIO_KERNEL void send_wait_time(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                                  WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames,
                                  WEFTIO_GLOBAL struct schedule* schedule, weftio_u64 interval_ns)
{
    if (weftio_lane() == 0) {
        weftio_store_release_sys_u32(&schedule->running, 1);
        for (weftio_u32 attempt = 0; !weftio_load_acquire_sys_u64(&schedule->start) && !weftio_dev_eth_txq_aborted(txq);
             ++attempt)
            weftio_relax(attempt);
    }
    weftio_block_barrier();
    weftio_u64 start = schedule->start;
    if (!start)
        return; /* the host has stopped the kernel */

    for (weftio_u32 burst = 0; burst < BURSTS; ++burst) {
        if (weftio_lane() == 0)
            weftio_dev_eth_txq_wait_time_enqueue_strong(txq, start, WEFTIO_DEV_SEND_NONE);
        weftio_block_barrier();
        for (weftio_u32 frame = weftio_lane(); frame < FRAMES; frame += weftio_block_lanes())
            weftio_dev_eth_txq_send_enqueue_strong(txq, weftio_dev_buf_get(frames, burst * FRAMES + frame), FRAME_BYTES,
                                                   WEFTIO_DEV_SEND_NOTIFY);
        weftio_block_barrier();
        start = weftio_dev_timestamp_add(start, interval_ns);
    }
    if (weftio_lane() == 0) {
        weftio_dev_eth_txq_commit_strong(txq);
        weftio_dev_eth_txq_push(txq);
    }
}
