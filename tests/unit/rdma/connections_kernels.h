/* Kernels that use several connections at once. One lane each. */
#pragma once

#include "weftio/device/rdma_connections.h"

/* Fields of a report on one message. */
#define CONNECTION_REPORT 4u

/* What byte `at` of message `number` of a connection is. */
WEFTIO_FN weftio_u8 connection_byte(weftio_u32 connection, weftio_u32 number, weftio_u32 at)
{
    return (weftio_u8)(connection * 83u + number * 7u + at * 13u + (at >> 8));
}

/* Bytes of message `number` of a connection, 1 to `most`: more than a packet has, now and then. */
WEFTIO_FN weftio_u32 connection_bytes(weftio_u32 connection, weftio_u32 number, weftio_u32 most)
{
    const weftio_u32 mixed = (connection * 2654435761u + number * 40503u) >> 7;

    return 1 + (mixed & 3u ? mixed / 4 % 64u : mixed / 4 % most);
}

/*
 * Posts all receives that the ring takes, and sends `total` messages back as they arrive, by the connection that each
 * has come by, with its immediate value plus 1. `told` gets connection, bytes, immediate value and status of each.
 */
WEFTIO_KERNEL void connections_answer(WEFTIO_GLOBAL struct weftio_dev_rdma_connections* connections,
                                      WEFTIO_GLOBAL struct weftio_dev_rdma_recv* receives,
                                      WEFTIO_GLOBAL struct weftio_dev_buf_arr* buffers, weftio_u32 total,
                                      WEFTIO_GLOBAL weftio_u32* told)
{
    struct weftio_dev_rdma_message message;
    weftio_u32 count = 0, first = 0, posted = 0;

    while (weftio_dev_rdma_recv_post(receives, weftio_dev_buf_get(buffers, posted), 0, buffers->buffer_bytes) ==
           WEFTIO_DEV_OK)
        ++posted;
    weftio_dev_rdma_recv_commit(receives);
    told[total * CONNECTION_REPORT] = posted;
    for (weftio_u32 number = 0; number < total; ++number) {
        WEFTIO_GLOBAL weftio_u32* report = told + number * CONNECTION_REPORT;
        if (weftio_dev_rdma_recv_wait(receives, 1, 0, &count, &first) != WEFTIO_DEV_OK)
            return;
        report[3] = (weftio_u32)weftio_dev_rdma_recv_message(receives, first, &message);
        report[0] = message.connection;
        report[1] = message.bytes;
        report[2] = message.immediate;
        if (report[3] == 0) {
            WEFTIO_GLOBAL struct weftio_dev_rdma* rdma = weftio_dev_rdma_connection(connections, message.connection);
            weftio_dev_rdma_send_imm(rdma, message.buffer, 0, message.bytes, message.immediate + 1,
                                     WEFTIO_DEV_SEND_NONE);
            if (weftio_dev_rdma_commit_wait(rdma, 0) != WEFTIO_DEV_OK)
                return;
        }
        weftio_dev_rdma_recv_post(receives, message.buffer, 0, message.buffer.bytes);
        weftio_dev_rdma_recv_commit(receives);
    }
}

/*
 * Sends `rounds` messages by each connection, `burst` at a time, and compares what comes back. `told` counts answers
 * that were right, and those that were not.
 */
WEFTIO_KERNEL void connections_ask(WEFTIO_GLOBAL struct weftio_dev_rdma_connections* connections,
                                   WEFTIO_GLOBAL struct weftio_dev_rdma_recv* receives,
                                   WEFTIO_GLOBAL struct weftio_dev_buf_arr* from,
                                   WEFTIO_GLOBAL struct weftio_dev_buf_arr* answers, weftio_u32 rounds,
                                   weftio_u32 burst, WEFTIO_GLOBAL weftio_u32* told)
{
    const weftio_u32 all = weftio_dev_rdma_connections_count(connections), most = from->buffer_bytes;
    struct weftio_dev_rdma_message message;
    weftio_u32 count = 0, first = 0;

    for (weftio_u32 each = 0; each < answers->count; ++each)
        weftio_dev_rdma_recv_post(receives, weftio_dev_buf_get(answers, each), 0, answers->buffer_bytes);
    weftio_dev_rdma_recv_commit(receives);
    for (weftio_u32 round = 0; round < rounds; round += burst) {
        for (weftio_u32 each = 0; each < all; ++each) {
            WEFTIO_GLOBAL struct weftio_dev_rdma* rdma = weftio_dev_rdma_connection(connections, each);
            for (weftio_u32 number = round; number < round + burst; ++number) {
                struct weftio_dev_buf buffer = weftio_dev_buf_get(from, each * burst + number - round);
                const weftio_u32 bytes = connection_bytes(each, number, most);
                for (weftio_u32 at = 0; at < bytes; ++at)
                    buffer.address[at] = connection_byte(each, number, at);
                weftio_dev_rdma_send_imm(rdma, buffer, 0, bytes, each << 16 | number, WEFTIO_DEV_SEND_NONE);
            }
            if (weftio_dev_rdma_commit(rdma) != WEFTIO_DEV_OK)
                return;
        }
        for (weftio_u32 left = all * burst; left; --left) {
            weftio_u32 right = 1;
            if (weftio_dev_rdma_recv_wait(receives, 1, 0, &count, &first) != WEFTIO_DEV_OK ||
                weftio_dev_rdma_recv_message(receives, first, &message) != WEFTIO_DEV_OK)
                return;
            const weftio_u32 number = (message.immediate - 1) & 0xffffu;
            if (message.immediate - 1 != (message.connection << 16 | number) || number - round >= burst ||
                message.bytes != connection_bytes(message.connection, number, most))
                right = 0;
            for (weftio_u32 at = 0; right && at < message.bytes; ++at)
                right = message.buffer.address[at] == connection_byte(message.connection, number, at);
            ++told[right ? 0 : 1];
            weftio_dev_rdma_recv_post(receives, message.buffer, 0, message.buffer.bytes);
            weftio_dev_rdma_recv_commit(receives);
        }
    }
}
