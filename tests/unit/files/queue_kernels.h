/* Kernels that read and write files by a file queue. */
#pragma once

#include "weftio/device/file.h"

/*
 * Lane `i` of the grid reads pieces i, i + lanes, ... of the file into its own buffer, and writes each back at an
 * offset that is `shift` bytes larger. results[0] is the first status that is not OK, results[1] counts pieces,
 * results[2] short reads.
 */
WEFTIO_KERNEL void moves_pieces(WEFTIO_GLOBAL struct weftio_dev_file_queue* files, weftio_u32 file, weftio_u32 pieces,
                                weftio_u64 shift, WEFTIO_GLOBAL struct weftio_dev_buf_arr* buffers,
                                WEFTIO_GLOBAL weftio_u32* results)
{
    weftio_u32 lane = weftio_block() * weftio_block_lanes() + weftio_lane();
    weftio_u32 lanes = weftio_blocks() * weftio_block_lanes();

    for (weftio_u32 piece = lane; piece < pieces; piece += lanes) {
        weftio_u64 bytes = buffers->buffer_bytes, at = piece * bytes;
        weftio_u32 position = 0;
        weftio_s64 done = 0;
        struct weftio_dev_buf buffer = weftio_dev_buf_get(buffers, lane);

        weftio_s32 status =
            weftio_dev_file_read_position(files, file, at, buffer, 0, bytes, WEFTIO_DEV_SEND_NONE, &position);
        if (status == WEFTIO_DEV_OK)
            status = weftio_dev_file_commit(files);
        if (status == WEFTIO_DEV_OK)
            status = weftio_dev_file_wait_result(files, position, 0, &done);
        if (status == WEFTIO_DEV_OK && done != (weftio_s64)bytes)
            weftio_fetch_add_relaxed_u32(&results[2], 1);
        if (status == WEFTIO_DEV_OK)
            status = weftio_dev_file_write_position(files, file, at + shift, buffer, 0, (weftio_u64)done,
                                                    WEFTIO_DEV_SEND_NONE, &position);
        if (status == WEFTIO_DEV_OK)
            status = weftio_dev_file_commit(files);
        if (status == WEFTIO_DEV_OK)
            status = weftio_dev_file_wait(files, position, 0);
        if (status != WEFTIO_DEV_OK)
            weftio_store_relaxed_u32(&results[0], (weftio_u32)-status);
        weftio_fetch_add_relaxed_u32(&results[1], 1);
    }
}

/* One lane: reads at positions that it counts itself, then a sync; stores their results in `results`. */
WEFTIO_KERNEL void reads_weakly(WEFTIO_GLOBAL struct weftio_dev_file_queue* files, weftio_u32 file,
                                WEFTIO_GLOBAL struct weftio_dev_buf_arr* buffers, WEFTIO_GLOBAL weftio_u32* results)
{
    weftio_u32 position, mask, first;
    weftio_s64 bytes = 0;

    if (weftio_lane() || weftio_block())
        return;
    weftio_dev_file_get_info(files, &position, &mask);
    first = position;
    for (weftio_u32 each = 0; each < buffers->count; ++each)
        weftio_dev_file_read_weak(files, file, each * (weftio_u64)buffers->buffer_bytes,
                                  weftio_dev_buf_get(buffers, each), 0, buffers->buffer_bytes, position++,
                                  WEFTIO_DEV_SEND_NONE);
    weftio_dev_file_sync_weak(files, file, position++, WEFTIO_DEV_SEND_NONE);
    results[0] = (weftio_u32)-weftio_dev_file_commit_weak(files, position - first);
    for (weftio_u32 each = 0; first + each != position; ++each) {
        results[0] |= (weftio_u32)-weftio_dev_file_wait_result(files, first + each, 0, &bytes);
        results[1 + each] = (weftio_u32)bytes;
    }
}
