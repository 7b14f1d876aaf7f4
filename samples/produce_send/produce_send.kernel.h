/* The kernel of produce_send: one source for C++, OpenCL C and CUDA. */
#pragma once

#include "weftio/device/eth_txq.h"

#define FRAME_BYTES 106 /* Ethernet 14, IPv4 20, UDP 8, payload 64 */

/* Builds a UDP datagram of 64 bytes; the NIC fills in the checksums. */
WEFTIO_FN void produce(WEFTIO_GLOBAL weftio_u8* frame, const WEFTIO_GLOBAL weftio_u8* headers, weftio_u32 sequence)
{
    for (weftio_u32 byte = 0; byte < 42; ++byte)
        frame[byte] = headers[byte];
    for (weftio_u32 byte = 0; byte < 64; ++byte)
        frame[42 + byte] = byte < 4 ? (weftio_u8)(sequence >> (24 - 8 * byte)) : (weftio_u8)(sequence + byte);
}

/* Weak mode: every lane computes its own position; neighboring lanes have adjacent ones. */
WEFTIO_KERNEL void produce_send(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                                WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, const WEFTIO_GLOBAL weftio_u8* headers,
                                weftio_u32 count)
{
    weftio_u32 position, mask, round;

    weftio_dev_eth_txq_get_info(txq, &position, &mask);
    for (weftio_u32 done = 0; done < count; done += round, position += round) {
        round = weftio_min_u32(weftio_block_lanes(), count - done);
        if (weftio_dev_eth_txq_wait_room_block(txq, round, 0) != WEFTIO_DEV_OK)
            break; /* the host has stopped the kernel, or an entry has failed */
        if (weftio_lane() < round) {
            weftio_u32 mine = position + weftio_lane();
            produce(weftio_dev_buf_addr(frames, mine & mask), headers, done + weftio_lane());
            weftio_dev_eth_txq_send_enqueue_weak(txq, weftio_dev_buf_get(frames, mine & mask), FRAME_BYTES, mine,
                                                 WEFTIO_DEV_SEND_L3_CHECKSUM | WEFTIO_DEV_SEND_L4_CHECKSUM);
        }
        weftio_block_barrier();
        if (weftio_lane() == 0) {
            weftio_dev_eth_txq_commit_weak(txq, round);
            weftio_dev_eth_txq_push(txq);
        }
    }
}
