/* The kernels of rdma_client_server: one source for C++, OpenCL C and CUDA. One lane each. */
#pragma once

#include "weftio/device/rdma.h"

#define BUFFER_BYTES 1024u
#define PIECE_BYTES (BUFFER_BYTES / 2) /* two of them fill a buffer */

/* The server's report to the host about each piece. */
struct arrival {
    weftio_u32 kind; /* enum weftio_dev_rdma_kind */
    weftio_u32 immediate;
};

/*
 * Lets the client fill each buffer in two pieces: posts two receives, signals the client by a number in the client's
 * memory, and waits for both pieces.
 */
WEFTIO_KERNEL void rdma_server(WEFTIO_GLOBAL struct weftio_dev_rdma* rdma,
                               WEFTIO_GLOBAL struct weftio_dev_rdma_recv* receives,
                               WEFTIO_GLOBAL struct weftio_dev_buf_arr* buffers, struct weftio_dev_remote ready,
                               WEFTIO_GLOBAL struct arrival* arrivals)
{
    struct weftio_dev_rdma_message message;
    weftio_u32 count, first;

    for (weftio_u32 number = 0; number < buffers->count; ++number) {
        struct weftio_dev_buf buffer = weftio_dev_buf_get(buffers, number);
        weftio_u32 bytes = number % 2 ? PIECE_BYTES : 0; /* a WRITE names its destination itself */
        weftio_dev_rdma_recv_post(receives, buffer, 0, bytes);
        weftio_dev_rdma_recv_post(receives, buffer, PIECE_BYTES, bytes);
        weftio_dev_rdma_recv_commit(receives);
        weftio_dev_rdma_write_value(rdma, ready, 0, number + 1, WEFTIO_DEV_SEND_NONE);
        if (weftio_dev_rdma_commit_wait(rdma, 0) != WEFTIO_DEV_OK ||
            weftio_dev_rdma_recv_wait(receives, 2, 0, &count, &first) != WEFTIO_DEV_OK)
            return; /* the host has stopped the kernel, or the connection has failed */
        for (weftio_u32 piece = 0; piece < 2; ++piece) {
            if (weftio_dev_rdma_recv_message(receives, first + piece, &message) != WEFTIO_DEV_OK)
                return;
            arrivals[number * 2 + piece].kind = message.kind;
            arrivals[number * 2 + piece].immediate = message.immediate;
        }
    }
}

/*
 * Fills the server's buffers as soon as each is ready: even ones by WRITE, odd ones by SEND, both with immediate values
 * that count pieces. Reads all buffers back at the end.
 */
WEFTIO_KERNEL void rdma_client(WEFTIO_GLOBAL struct weftio_dev_rdma* rdma,
                               WEFTIO_GLOBAL struct weftio_dev_buf_arr* pieces, struct weftio_dev_remote table,
                               const WEFTIO_GLOBAL weftio_u64* ready, WEFTIO_GLOBAL struct weftio_dev_buf_arr* back)
{
    for (weftio_u32 piece = 0; piece < pieces->count; ++piece) {
        struct weftio_dev_buf from = weftio_dev_buf_get(pieces, piece);
        if (piece % 2 == 0 && weftio_dev_rdma_wait_value(rdma, ready, piece / 2 + 1, 0) != WEFTIO_DEV_OK)
            return;
        if (piece / 2 % 2)
            weftio_dev_rdma_send_imm(rdma, from, 0, PIECE_BYTES, piece, WEFTIO_DEV_SEND_NONE);
        else
            weftio_dev_rdma_write_imm(rdma, table, piece * PIECE_BYTES, from, 0, PIECE_BYTES, piece,
                                      WEFTIO_DEV_SEND_NONE);
        if (piece % 2 && weftio_dev_rdma_commit_wait(rdma, 0) != WEFTIO_DEV_OK)
            return;
    }
    weftio_dev_rdma_read(rdma, table, 0, weftio_dev_buf_get(back, 0), 0, table.bytes, WEFTIO_DEV_SEND_NONE);
    weftio_dev_rdma_commit_wait(rdma, 0);
}
