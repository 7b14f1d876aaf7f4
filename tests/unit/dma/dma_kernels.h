/* Kernels that copy memory by a DMA engine. */
#pragma once

#include "weftio/device/dma.h"

/*
 * Lane `i` of the grid copies pieces i, i + lanes, ... of the source to the same offsets of the destination, and waits.
 * The last word of `results` counts lanes whose pieces were right; the first word is the first status that is not OK.
 */
WEFTIO_KERNEL void copies_pieces(WEFTIO_GLOBAL struct weftio_dev_dma* dma,
                                 WEFTIO_GLOBAL struct weftio_dev_buf_arr* from,
                                 WEFTIO_GLOBAL struct weftio_dev_buf_arr* to, WEFTIO_GLOBAL weftio_u32* results)
{
    weftio_u32 lane = weftio_block() * weftio_block_lanes() + weftio_lane();
    weftio_u32 lanes = weftio_blocks() * weftio_block_lanes(), position = 0, right = 1;

    for (weftio_u32 piece = lane; piece < from->count; piece += lanes) {
        weftio_s32 status =
            weftio_dev_dma_memcpy_position(dma, weftio_dev_buf_get(from, piece), 0, weftio_dev_buf_get(to, piece), 0,
                                           from->buffer_bytes, WEFTIO_DEV_SEND_NONE, &position);
        if (status == WEFTIO_DEV_OK)
            status = weftio_dev_dma_commit(dma);
        if (status == WEFTIO_DEV_OK)
            status = weftio_dev_dma_wait(dma, position, 0);
        if (status != WEFTIO_DEV_OK)
            weftio_store_relaxed_u32(&results[0], (weftio_u32)-status);
        for (weftio_u32 byte = 0; byte < from->buffer_bytes; ++byte)
            right &= weftio_dev_buf_addr(from, piece)[byte] == weftio_dev_buf_addr(to, piece)[byte];
    }
    weftio_fetch_add_relaxed_u32(&results[1], right);
}
