/* The kernels of rdma_client_server: one source for C++, OpenCL C and CUDA. One lane each. */
#pragma once

#include "weftio/device/rdma_connections.h"

#define BUFFER_BYTES 1024u
#define PIECE_BYTES (BUFFER_BYTES / 2) /* two of them fill a buffer */

/* The server's report to the host about each piece. */
struct arrival {
    weftio_u32 kind; /* enum weftio_dev_rdma_kind */
    weftio_u32 immediate;
    weftio_u32 connection;
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

/*
 * The server of several connections: the messages of all take receives from one ring. A SEND lies in any of the
 * `landing` buffers; it is moved to the buffer for which the client has sent it. Signals each client at the end.
 */
WEFTIO_KERNEL void rdma_shared_server(WEFTIO_GLOBAL struct weftio_dev_rdma_connections* connections,
                                      WEFTIO_GLOBAL struct weftio_dev_rdma_recv* receives,
                                      WEFTIO_GLOBAL struct weftio_dev_buf_arr* buffers,
                                      WEFTIO_GLOBAL struct weftio_dev_buf_arr* landing, struct weftio_dev_remote ready,
                                      WEFTIO_GLOBAL struct arrival* arrivals)
{
    struct weftio_dev_rdma_message message;
    weftio_u32 count, first;

    for (weftio_u32 each = 0; each < landing->count; ++each)
        weftio_dev_rdma_recv_post(receives, weftio_dev_buf_get(landing, each), 0, PIECE_BYTES);
    weftio_dev_rdma_recv_commit(receives);
    for (weftio_u32 left = buffers->count * 2; left; --left) {
        if (weftio_dev_rdma_recv_wait(receives, 1, 0, &count, &first) != WEFTIO_DEV_OK ||
            weftio_dev_rdma_recv_message(receives, first, &message) != WEFTIO_DEV_OK)
            return; /* the host has stopped the kernel, or a connection has failed */
        const weftio_u32 piece = message.immediate % (buffers->count * 2);
        arrivals[piece].kind = message.kind;
        arrivals[piece].immediate = message.immediate;
        arrivals[piece].connection = message.connection;
        if (message.kind == WEFTIO_DEV_RDMA_SEND_IMM) {
            WEFTIO_GLOBAL weftio_u8* to = weftio_dev_buf_addr(buffers, piece / 2) + piece % 2 * PIECE_BYTES;
            for (weftio_u32 at = 0; at < PIECE_BYTES; ++at)
                to[at] = message.buffer.address[at];
        }
        weftio_dev_rdma_recv_post(receives, message.buffer, 0, PIECE_BYTES);
        weftio_dev_rdma_recv_commit(receives);
    }
    for (weftio_u32 each = 0; each < connections->count; ++each) {
        WEFTIO_GLOBAL struct weftio_dev_rdma* rdma = weftio_dev_rdma_connection(connections, each);
        weftio_dev_rdma_write_value(rdma, ready, each * 8, buffers->count, WEFTIO_DEV_SEND_NONE);
        if (weftio_dev_rdma_commit_wait(rdma, 0) != WEFTIO_DEV_OK)
            return;
    }
}

/*
 * The client of several connections: fills buffer k by connection k % count, and reads all buffers back when the server
 * has signaled every connection.
 */
WEFTIO_KERNEL void rdma_shared_client(WEFTIO_GLOBAL struct weftio_dev_rdma_connections* connections,
                                      WEFTIO_GLOBAL struct weftio_dev_buf_arr* pieces, struct weftio_dev_remote table,
                                      const WEFTIO_GLOBAL weftio_u64* ready,
                                      WEFTIO_GLOBAL struct weftio_dev_buf_arr* back)
{
    const weftio_u32 all = weftio_dev_rdma_connections_count(connections);

    for (weftio_u32 piece = 0; piece < pieces->count; ++piece) {
        const weftio_u32 number = piece / 2;
        WEFTIO_GLOBAL struct weftio_dev_rdma* rdma = weftio_dev_rdma_connection(connections, number % all);
        struct weftio_dev_buf from = weftio_dev_buf_get(pieces, piece);
        if (number % 2)
            weftio_dev_rdma_send_imm(rdma, from, 0, PIECE_BYTES, piece, WEFTIO_DEV_SEND_NONE);
        else
            weftio_dev_rdma_write_imm(rdma, weftio_dev_remote_get(table, number, BUFFER_BYTES), piece % 2 * PIECE_BYTES,
                                      from, 0, PIECE_BYTES, piece, WEFTIO_DEV_SEND_NONE);
        if (piece % 2 && (weftio_dev_rdma_commit(rdma) != WEFTIO_DEV_OK ||
                          weftio_dev_rdma_wait_room(rdma, 3, 0) != WEFTIO_DEV_OK)) /* for two pieces and the READ */
            return;
    }
    for (weftio_u32 each = 0; each < all; ++each) {
        WEFTIO_GLOBAL struct weftio_dev_rdma* rdma = weftio_dev_rdma_connection(connections, each);
        if (weftio_dev_rdma_wait_value(rdma, ready + each, pieces->count / 2, 0) != WEFTIO_DEV_OK)
            return;
        weftio_dev_rdma_read(rdma, table, 0, weftio_dev_buf_get(back, 0), 0, table.bytes, WEFTIO_DEV_SEND_NONE);
        if (weftio_dev_rdma_commit_wait(rdma, 0) != WEFTIO_DEV_OK)
            return;
    }
}
