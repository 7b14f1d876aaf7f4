/* The kernel of simple_receive: one source for C++, OpenCL C and CUDA. */
#pragma once

#include "weftio/device/eth_rxq.h"

#define REPORT_LINES 1024 /* one for each slot of the queue, so a line is free when its slot is */

struct report_line {
    weftio_u64 timestamp_ns;
    weftio_u32 lane;
    weftio_u32 bytes;
    weftio_u8 ethernet[16]; /* destination, source, type, 2 spare */
};

/* Lines for the CPU to print: line i belongs to packet i of the queue. */
struct report {
    weftio_u32 written; /* lines written by the kernel */
    weftio_u32 read;    /* lines printed by the CPU */
    weftio_u32 spare[14];
    struct report_line lines[REPORT_LINES];
};

WEFTIO_KERNEL void simple_receive(WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq, WEFTIO_GLOBAL struct report* report)
{
    weftio_u32 count, first, released = 0;
    weftio_s32 status;

    do {
        /* Every lane of the block calls; all of them see the same count and first. */
        status = weftio_dev_eth_rxq_receive_block(rxq, 0, 1000000, &count, &first);
        for (weftio_u32 i = weftio_lane(); i < count; i += weftio_block_lanes()) {
            WEFTIO_GLOBAL struct report_line* line = &report->lines[(first + i) % REPORT_LINES];
            struct weftio_dev_packet packet;
            if (weftio_dev_eth_rxq_packet(rxq, first + i, &packet) != WEFTIO_DEV_OK)
                continue; /* impossible: the packet belongs to the kernel until it is released */
            line->timestamp_ns = packet.timestamp_ns;
            line->lane = weftio_lane();
            line->bytes = packet.bytes;
            for (weftio_u32 byte = 0; byte < 14; ++byte)
                line->ethernet[byte] = packet.address[byte];
        }
        weftio_block_barrier();
        if (weftio_lane() == 0) {
            weftio_store_release_sys_u32(&report->written, first + count);
            /* Releases a slot once the CPU has printed its line. */
            weftio_u32 read = weftio_load_acquire_sys_u32(&report->read);
            weftio_dev_eth_rxq_release(rxq, released, read - released);
            released = read;
        }
    } while (status == WEFTIO_DEV_OK);
}
