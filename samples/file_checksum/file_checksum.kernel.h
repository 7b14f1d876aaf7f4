/* The kernel of file_checksum: one source for C++, OpenCL C and CUDA. */
#pragma once

#include "weftio/device/file.h"

#define ADLER_MODULUS 65521u

/* Sums of one lane: of bytes, and of bytes times their offset, modulo 65521. */
struct lane_sums {
    weftio_u64 bytes, weighted;
};

/* Shared by the block: the first status that is not OK, bytes of the current piece and of the file. */
struct checksum_state {
    weftio_u32 status, piece_bytes;
    weftio_u64 file_bytes;
};

WEFTIO_FN void sum_piece(WEFTIO_GLOBAL struct lane_sums* sums, const WEFTIO_GLOBAL weftio_u8* piece, weftio_u32 bytes,
                         weftio_u64 offset)
{
    weftio_u64 plain = 0, weighted = 0;

    for (weftio_u32 at = weftio_lane(); at < bytes; at += weftio_block_lanes()) {
        plain += piece[at];
        weighted += (weftio_u64)at * piece[at];
    }
    sums->bytes = (sums->bytes + plain) % ADLER_MODULUS;
    sums->weighted = (sums->weighted + offset % ADLER_MODULUS * (plain % ADLER_MODULUS) + weighted) % ADLER_MODULUS;
}

/* Reads the file piece by piece, with a read in flight for each buffer, and sums it up until the end of the file. */
WEFTIO_KERNEL void file_checksum(WEFTIO_GLOBAL struct weftio_dev_file_queue* files, weftio_u32 file,
                                 WEFTIO_GLOBAL struct weftio_dev_buf_arr* buffers,
                                 WEFTIO_GLOBAL struct checksum_state* state, WEFTIO_GLOBAL struct lane_sums* sums)
{
    weftio_u32 room = buffers->buffer_bytes, first = 0, mask;

    if (weftio_lane() == 0) {
        weftio_dev_file_get_info(files, &first, &mask);
        for (weftio_u32 piece = 0; piece < buffers->count; ++piece)
            weftio_dev_file_read_weak(files, file, (weftio_u64)piece * room, weftio_dev_buf_get(buffers, piece), 0,
                                      room, first + piece, WEFTIO_DEV_SEND_NONE);
        weftio_dev_file_commit_weak(files, buffers->count);
    }
    for (weftio_u32 piece = 0;; ++piece) {
        if (weftio_lane() == 0) {
            weftio_s64 bytes = 0;
            weftio_store_relaxed_u32(&state->status,
                                     (weftio_u32)-weftio_dev_file_wait_result(files, first + piece, 0, &bytes));
            weftio_store_relaxed_u32(&state->piece_bytes, bytes < 0 ? 0 : (weftio_u32)bytes);
        }
        weftio_block_barrier();
        weftio_u32 bytes = weftio_load_relaxed_u32(&state->piece_bytes);
        sum_piece(&sums[weftio_lane()], weftio_dev_buf_addr(buffers, piece), bytes, (weftio_u64)piece * room);
        if (bytes != room || weftio_load_relaxed_u32(&state->status)) {
            if (weftio_lane() == 0)
                state->file_bytes = (weftio_u64)piece * room + bytes;
            return;
        }
        weftio_block_barrier();
        if (weftio_lane() == 0) { /* the buffer is free again: enqueue the next read */
            weftio_u32 next = piece + buffers->count;
            weftio_dev_file_read_weak(files, file, (weftio_u64)next * room, weftio_dev_buf_get(buffers, next), 0, room,
                                      first + next, WEFTIO_DEV_SEND_NONE);
            weftio_dev_file_commit_weak(files, 1);
        }
    }
}
