/* Kernels that exchange datagrams. One lane each. */
#pragma once

#include "connections_kernels.h"
#include "weftio/device/rdma_datagram.h"

/* Fields of a report on one message. */
#define DATAGRAM_REPORT 5u

/* Q_Key of the queue pairs that ask, and of those that answer. */
#define DATAGRAM_ASKER_KEY 0x7001u
#define DATAGRAM_ANSWERER_KEY 0x7002u

/* Bytes of message `number` of a sender: 0 to `most`, and each of these two now and then. */
WEFTIO_FN weftio_u32 datagram_bytes(weftio_u32 sender, weftio_u32 number, weftio_u32 most)
{
    const weftio_u32 mixed = (sender * 2654435761u + number * 40503u) >> 7;

    return mixed % 5u == 0 ? 0 : mixed % 5u == 1 ? most : mixed / 5u % (most + 1);
}

/*
 * Posts all receives that the ring takes, and sends `total` messages back as they arrive, to the queue pair that each
 * has come from, with its immediate value plus 1. `told` gets sender, bytes, immediate value, status of each, and
 * whether it came from the host of `askers`; and 1 behind all that, as soon as the receives are posted.
 */
WEFTIO_KERNEL void datagrams_answer(WEFTIO_GLOBAL struct weftio_dev_rdma* rdma,
                                    WEFTIO_GLOBAL struct weftio_dev_rdma_recv* receives,
                                    struct weftio_dev_datagram_peer askers,
                                    WEFTIO_GLOBAL struct weftio_dev_buf_arr* buffers, weftio_u32 total,
                                    WEFTIO_GLOBAL weftio_u32* told)
{
    struct weftio_dev_rdma_message message;
    weftio_u32 count = 0, first = 0;

    for (weftio_u32 each = 0; each < buffers->count; ++each)
        weftio_dev_rdma_recv_post(receives, weftio_dev_buf_get(buffers, each), 0, buffers->buffer_bytes);
    weftio_dev_rdma_recv_commit(receives);
    weftio_store_release_sys_u32(told + total * DATAGRAM_REPORT, 1);
    for (weftio_u32 number = 0; number < total; ++number) {
        WEFTIO_GLOBAL weftio_u32* report = told + number * DATAGRAM_REPORT;
        if (weftio_dev_rdma_recv_wait(receives, 1, 0, &count, &first) != WEFTIO_DEV_OK)
            return;
        report[3] = (weftio_u32)weftio_dev_rdma_recv_message(receives, first, &message);
        report[0] = message.source_queue;
        report[1] = message.bytes;
        report[2] = message.immediate;
        report[4] = weftio_dev_datagram_is_from(message, askers);
        if (report[3] == 0) {
            weftio_dev_rdma_send_to_imm(
                rdma, weftio_dev_datagram_peer_at(askers, message.source_queue, DATAGRAM_ASKER_KEY), message.buffer,
                WEFTIO_DEV_DATAGRAM_HEADER_BYTES, message.bytes - WEFTIO_DEV_DATAGRAM_HEADER_BYTES,
                message.immediate + 1, WEFTIO_DEV_SEND_NONE);
            if (weftio_dev_rdma_commit_wait(rdma, 0) != WEFTIO_DEV_OK)
                return;
        }
        weftio_dev_rdma_recv_post(receives, message.buffer, 0, message.buffer.bytes);
        weftio_dev_rdma_recv_commit(receives);
    }
}

/*
 * Sends `rounds` messages by each queue pair to `answerer`, `burst` at a time, and compares what comes back. `told`
 * counts answers that were right, and those that were not.
 */
WEFTIO_KERNEL void datagrams_ask(WEFTIO_GLOBAL struct weftio_dev_rdma_connections* askers,
                                 WEFTIO_GLOBAL struct weftio_dev_rdma_recv* receives,
                                 struct weftio_dev_datagram_peer answerer,
                                 WEFTIO_GLOBAL struct weftio_dev_buf_arr* from,
                                 WEFTIO_GLOBAL struct weftio_dev_buf_arr* answers, weftio_u32 rounds, weftio_u32 burst,
                                 WEFTIO_GLOBAL weftio_u32* told)
{
    const weftio_u32 all = weftio_dev_rdma_connections_count(askers), most = from->buffer_bytes;
    struct weftio_dev_rdma_message message;
    weftio_u32 count = 0, first = 0;

    for (weftio_u32 each = 0; each < answers->count; ++each)
        weftio_dev_rdma_recv_post(receives, weftio_dev_buf_get(answers, each), 0, answers->buffer_bytes);
    weftio_dev_rdma_recv_commit(receives);
    for (weftio_u32 round = 0; round < rounds; round += burst) {
        for (weftio_u32 each = 0; each < all; ++each) {
            WEFTIO_GLOBAL struct weftio_dev_rdma* rdma = weftio_dev_rdma_connection(askers, each);
            for (weftio_u32 number = round; number < round + burst; ++number) {
                struct weftio_dev_buf buffer = weftio_dev_buf_get(from, each * burst + number - round);
                const weftio_u32 bytes = datagram_bytes(each, number, most);
                for (weftio_u32 at = 0; at < bytes; ++at)
                    buffer.address[at] = connection_byte(each, number, at);
                weftio_dev_rdma_send_to_imm(rdma, answerer, buffer, 0, bytes, each << 16 | number,
                                            WEFTIO_DEV_SEND_NONE);
            }
            if (weftio_dev_rdma_commit(rdma) != WEFTIO_DEV_OK)
                return;
        }
        for (weftio_u32 left = all * burst; left; --left) {
            if (weftio_dev_rdma_recv_wait(receives, 1, 0, &count, &first) != WEFTIO_DEV_OK ||
                weftio_dev_rdma_recv_message(receives, first, &message) != WEFTIO_DEV_OK)
                return;
            const weftio_u32 number = (message.immediate - 1) & 0xffffu;
            weftio_u32 right =
                message.immediate - 1 == (message.connection << 16 | number) && number - round < burst &&
                weftio_dev_datagram_is_from(message, answerer) &&
                message.bytes == WEFTIO_DEV_DATAGRAM_HEADER_BYTES + datagram_bytes(message.connection, number, most);
            for (weftio_u32 at = WEFTIO_DEV_DATAGRAM_HEADER_BYTES; right && at < message.bytes; ++at)
                right = message.buffer.address[at] ==
                        connection_byte(message.connection, number, at - WEFTIO_DEV_DATAGRAM_HEADER_BYTES);
            ++told[right ? 0 : 1];
            weftio_dev_rdma_recv_post(receives, message.buffer, 0, message.buffer.bytes);
            weftio_dev_rdma_recv_commit(receives);
        }
    }
}
