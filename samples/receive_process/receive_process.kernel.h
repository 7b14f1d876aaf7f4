/* The kernels of receive_process: one source for C++, OpenCL C and CUDA. */
#pragma once

#include "protocols.h"
#include "weftio/device/eth_rxq.h"
#include "weftio/device/semaphore.h"

#define PACKETS 1024 /* slots of the queue, and items of both semaphores */

/* Custom info for the CPU, which resets it to 0: counts of a batch of packets. */
struct statistics {
    weftio_u32 frames[PROTOCOLS], bytes[PROTOCOLS];
};

/*
 * Passes every batch to the kernel `process`. The next item is always free, because there are as many items as slots
 * and each item in use holds at least one slot.
 */
WEFTIO_KERNEL void receive(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq,
                           WEFTIO_GLOBAL struct weftio_dev_semaphore* to_process)
{
    weftio_u32 count, first, item = 0;
    weftio_s32 status;
    do {
        status = weftio_dev_eth_rxq_receive_block(rxq, 0, 100000, &count, &first);
        if (count && weftio_lane() == 0)
            weftio_dev_semaphore_set_packet_info(to_process, item++, WEFTIO_DEV_SEMAPHORE_READY, count, first);
    } while (status == WEFTIO_DEV_OK);
}

/* Counts one lane's share of a batch. */
WEFTIO_FN void add_share(const WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, weftio_u32 first, weftio_u32 count,
                         WEFTIO_GLOBAL struct statistics* sum)
{
    struct statistics mine = {{0}, {0}};
    struct weftio_dev_packet packet;
    for (weftio_u32 i = weftio_lane(); i < count; i += weftio_block_lanes()) {
        if (weftio_dev_eth_rxq_packet(rxq, first + i, &packet) != WEFTIO_DEV_OK)
            continue; /* impossible: the packet belongs to the kernel until it is released */
        weftio_u32 bits = protocol_bits(&packet);
        for (weftio_u32 protocol = 0; protocol < PROTOCOLS; ++protocol) {
            mine.frames[protocol] += bits >> protocol & 1;
            mine.bytes[protocol] += (bits >> protocol & 1) * packet.bytes;
        }
    }
    for (weftio_u32 protocol = 0; protocol < PROTOCOLS; ++protocol) {
        weftio_fetch_add_u32(&sum->frames[protocol], mine.frames[protocol]);
        weftio_fetch_add_u32(&sum->bytes[protocol], mine.bytes[protocol]);
    }
}

/* Counts the protocols of a batch, reports them to the CPU, and releases the slots. */
WEFTIO_KERNEL void process(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq,
                           WEFTIO_GLOBAL struct weftio_dev_semaphore* to_process,
                           WEFTIO_GLOBAL struct weftio_dev_semaphore* to_cpu)
{
    WEFTIO_SHARED weftio_u32 batch_count, batch_first;
    WEFTIO_SHARED weftio_s32 status;
    weftio_u32 count = 0, first = 0;
    for (weftio_u32 item = 0;; ++item) {
        WEFTIO_GLOBAL void* info = weftio_dev_semaphore_get_custom_info_addr(to_cpu, item);
        if (weftio_lane() == 0) {
            status = weftio_dev_semaphore_wait_status(to_cpu, item, WEFTIO_DEV_SEMAPHORE_FREE, 0);
            if (status == WEFTIO_DEV_OK)
                status = weftio_dev_semaphore_wait_packet_info(to_process, item, WEFTIO_DEV_SEMAPHORE_READY, 0, &count,
                                                               &first);
            batch_count = count;
            batch_first = first;
        }
        weftio_block_barrier(); /* makes lane 0's result visible to all lanes */
        if (status != WEFTIO_DEV_OK)
            return;
        add_share(rxq, batch_first, batch_count, (WEFTIO_GLOBAL struct statistics*)info);
        weftio_block_barrier(); /* all lanes are done with the packets */
        if (weftio_lane() == 0) {
            weftio_dev_semaphore_set_status(to_cpu, item, WEFTIO_DEV_SEMAPHORE_READY);
            weftio_dev_semaphore_set_status(to_process, item, WEFTIO_DEV_SEMAPHORE_FREE);
            weftio_dev_eth_rxq_release(rxq, first, count);
        }
    }
}
