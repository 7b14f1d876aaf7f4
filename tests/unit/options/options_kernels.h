/* Kernels that send the buffers of an array and check the slots of packets. */
#pragma once

#include "weftio/device/eth_rxq.h"
#include "weftio/device/eth_txq.h"

/* Expected slots of packets, and the results. The host sets the first four members. */
struct slot_report {
    WEFTIO_GLOBAL weftio_u8* slots; /* slot of packet 0 */
    weftio_u32 stride_bytes;
    weftio_u32 packets;
    weftio_u32 zeroed_bytes;
    weftio_u32 received;
    weftio_u32 misplaced;    /* not in slot n % packets */
    weftio_u32 outside;      /* in no slot */
    weftio_u32 dirty;        /* bytes after a packet that are not 0 */
    weftio_u32 out_of_order; /* by their numbers */
};

/* Sends the whole buffers 0 .. count - 1. Bytes 14 to 17 of each hold its number, which counts from `number`. */
WEFTIO_KERNEL void sends_array(WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq,
                               WEFTIO_GLOBAL struct weftio_dev_buf_arr* frames, weftio_u32 count, weftio_u32 number,
                               WEFTIO_GLOBAL weftio_u32* refused)
{
    weftio_u32 frame, at;

    for (frame = 0; frame < count; ++frame) {
        struct weftio_dev_buf buf = weftio_dev_buf_get(frames, frame);

        for (at = 0; number && at < 4; ++at)
            buf.address[14 + at] = (weftio_u8)((number + frame) >> (8 * at));
        if (weftio_dev_eth_txq_send_enqueue_strong(txq, buf, buf.bytes, WEFTIO_DEV_SEND_NONE) != WEFTIO_DEV_OK)
            *refused += 1;
    }
    weftio_dev_eth_txq_commit_strong(txq);
    weftio_dev_eth_txq_push(txq);
    weftio_dev_eth_txq_wait_room(txq, txq->queue.ring.mask + 1, 0);
}

WEFTIO_FN void look_at(WEFTIO_GLOBAL struct slot_report* report, weftio_u32 index, struct weftio_dev_packet packet)
{
    weftio_u64 offset = (weftio_u64)(packet.address - report->slots);
    weftio_u32 number = 0, at;

    report->misplaced += offset != (weftio_u64)(index % report->packets) * report->stride_bytes;
    report->outside += offset % report->stride_bytes != 0 || offset / report->stride_bytes >= report->packets;
    for (at = 0; at < report->zeroed_bytes; ++at)
        report->dirty += packet.address[packet.bytes + at] != 0;
    for (at = 0; at < 4; ++at)
        number |= (weftio_u32)packet.address[14 + at] << (8 * at);
    report->out_of_order += number != report->received + 1;
}

/* Receives and checks `total` packets, and always keeps the last `hold` of them unreleased. */
WEFTIO_KERNEL void reports_slots(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL struct slot_report* report,
                                 weftio_u32 total, weftio_u32 hold)
{
    struct weftio_dev_packet packet;
    weftio_u32 count, first, at, released = 0;

    while (report->received < total && weftio_dev_eth_rxq_receive_thread(rxq, 1, 0, &count, &first) == WEFTIO_DEV_OK) {
        for (at = first; at != first + count; ++at) {
            if (weftio_dev_eth_rxq_packet(rxq, at, &packet) != WEFTIO_DEV_OK)
                return;
            look_at(report, at, packet);
            weftio_store_release_sys_u32(&report->received, report->received + 1);
        }
        if (first + count - released > hold) {
            weftio_dev_eth_rxq_release(rxq, released, first + count - released - hold);
            released = first + count - hold;
        }
    }
}
