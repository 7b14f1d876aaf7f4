/* The kernel of dma_memcpy: one source for C++, OpenCL C and CUDA. */
#pragma once

#include "weftio/device/dma.h"

/* Copies `count` pieces by the DMA queue and waits until all are done. Each lane enqueues every lanes-th piece. */
WEFTIO_KERNEL void dma_memcpy(WEFTIO_GLOBAL struct weftio_dev_dma* dma, WEFTIO_GLOBAL struct weftio_dev_buf_arr* from,
                              WEFTIO_GLOBAL struct weftio_dev_buf_arr* to, WEFTIO_GLOBAL weftio_u32* status)
{
    weftio_u32 lanes = weftio_block_lanes();

    for (weftio_u32 round = 0; round < from->count; round += lanes) {
        if (weftio_lane() == 0 && weftio_dev_dma_wait_room(dma, weftio_min_u32(lanes, from->count - round), 0))
            weftio_store_relaxed_u32(status, 1); /* the host has stopped the kernel, or a copy has failed */
        weftio_block_barrier();
        if (weftio_load_relaxed_u32(status))
            break;
        if (round + weftio_lane() < from->count)
            weftio_dev_dma_memcpy(dma, weftio_dev_buf_get(from, round + weftio_lane()), 0,
                                  weftio_dev_buf_get(to, round + weftio_lane()), 0, from->buffer_bytes,
                                  WEFTIO_DEV_SEND_NONE);
        weftio_block_barrier();
        if (weftio_lane() == 0)
            weftio_dev_dma_commit(dma);
    }
    if (weftio_lane() == 0 && weftio_dev_dma_commit_wait(dma, 0))
        weftio_store_relaxed_u32(status, 1);
}
