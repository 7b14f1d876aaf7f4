/* Kernels that read what they have received, and flush it before where they are told to. */
#pragma once

#include "weftio/device/rdma.h"

#define FLUSH_WHERE_NEEDED 1u /* by one byte of the message */
#define FLUSH_ELSEWHERE 2u    /* by one byte of other memory */

/*
 * Two blocks. Block 0 sends the `count` buffers of `mine` to the receives that block 1 posts in those of `theirs`. Word
 * w of buffer b is 1000 b + w + 1. said[0] counts messages with the right bytes, said[1] those that are all 0, said[2]
 * flushes, said[3] is the status of the last one, said[4] of the sender.
 */
WEFTIO_KERNEL void flush_received(WEFTIO_GLOBAL struct weftio_dev_rdma* sender,
                                  WEFTIO_GLOBAL struct weftio_dev_rdma* receiver,
                                  WEFTIO_GLOBAL struct weftio_dev_rdma_recv* receives,
                                  WEFTIO_GLOBAL struct weftio_dev_buf_arr* mine,
                                  WEFTIO_GLOBAL struct weftio_dev_buf_arr* theirs, weftio_u32 count, weftio_u32 how,
                                  WEFTIO_GLOBAL weftio_u32* said)
{
    struct weftio_dev_rdma_message message;
    weftio_u32 handed = 0, first = 0;

    for (weftio_u32 each = 0; weftio_block() == 0 && each < count; ++each) {
        struct weftio_dev_buf bytes = weftio_dev_buf_get(mine, each);
        weftio_dev_rdma_send(sender, bytes, 0, bytes.bytes, WEFTIO_DEV_SEND_NONE);
        said[4] |= (weftio_u32)-weftio_dev_rdma_commit_wait(sender, 0);
    }
    for (weftio_u32 each = 0; weftio_block() == 1 && each < count; ++each) {
        struct weftio_dev_buf place = weftio_dev_buf_get(theirs, each);
        weftio_dev_rdma_recv_post(receives, place, 0, place.bytes);
    }
    if (weftio_block() == 1)
        weftio_dev_rdma_recv_commit(receives);
    for (weftio_u32 each = 0; weftio_block() == 1 && each < count; ++each) {
        weftio_u32 right = 1, untouched = 1;
        if (weftio_dev_rdma_recv_wait(receives, 1, 0, &handed, &first) != WEFTIO_DEV_OK ||
            weftio_dev_rdma_recv_message(receives, first, &message) != WEFTIO_DEV_OK)
            return;
        if ((how & FLUSH_WHERE_NEEDED) && weftio_dev_rdma_recv_needs_flush(receives)) {
            struct weftio_dev_buf flushed = how & FLUSH_ELSEWHERE ? weftio_dev_buf_get(mine, each) : message.buffer;
            weftio_dev_rdma_flush(receiver, flushed, 0, 1, WEFTIO_DEV_SEND_NONE);
            said[3] |= (weftio_u32)-weftio_dev_rdma_commit_wait(receiver, 0);
            ++said[2];
        }
        for (weftio_u32 word = 0; word < message.bytes / 4; ++word) {
            const weftio_u32 seen = ((const WEFTIO_GLOBAL weftio_u32*)message.buffer.address)[word];
            right &= seen == each * 1000 + word + 1;
            untouched &= seen == 0;
        }
        said[0] += right;
        said[1] += untouched;
    }
}

/* What the handles of a queue pair say. */
WEFTIO_KERNEL void flush_needed(WEFTIO_GLOBAL struct weftio_dev_rdma* rdma,
                                WEFTIO_GLOBAL struct weftio_dev_rdma_recv* receives, WEFTIO_GLOBAL weftio_u32* said)
{
    said[0] = weftio_dev_rdma_needs_flush(rdma);
    said[1] = weftio_dev_rdma_recv_needs_flush(receives);
}
