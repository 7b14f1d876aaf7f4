/* The kernels of the semaphore benchmark. Item i carries first = i. */
#pragma once

#include "weftio/device/semaphore.h"

WEFTIO_KERNEL void hand_over(WEFTIO_GLOBAL struct weftio_dev_semaphore* out, weftio_u32 items)
{
    for (weftio_u32 index = 0; index < items; ++index) {
        if (weftio_dev_semaphore_wait_status(out, index, WEFTIO_DEV_SEMAPHORE_FREE, 0) != WEFTIO_DEV_OK)
            return;
        weftio_dev_semaphore_set_packet_info(out, index, WEFTIO_DEV_SEMAPHORE_READY, 1, index);
    }
}

/* Stores in `right` the number of items that arrived as they were sent. */
WEFTIO_KERNEL void take(WEFTIO_GLOBAL struct weftio_dev_semaphore* in, weftio_u32 items,
                        WEFTIO_GLOBAL weftio_u32* right)
{
    weftio_u32 count, first, good = 0;

    for (weftio_u32 index = 0; index < items; ++index) {
        if (weftio_dev_semaphore_wait_packet_info(in, index, WEFTIO_DEV_SEMAPHORE_READY, 0, &count, &first) !=
            WEFTIO_DEV_OK)
            break;
        good += first == index;
        weftio_dev_semaphore_set_status(in, index, WEFTIO_DEV_SEMAPHORE_FREE);
    }
    weftio_store_release_sys_u32(right, good);
}

/* Sends every item back. */
WEFTIO_KERNEL void echo(WEFTIO_GLOBAL struct weftio_dev_semaphore* in, WEFTIO_GLOBAL struct weftio_dev_semaphore* out,
                        weftio_u32 items)
{
    weftio_u32 count, first;

    for (weftio_u32 index = 0; index < items; ++index) {
        if (weftio_dev_semaphore_wait_packet_info(in, index, WEFTIO_DEV_SEMAPHORE_READY, 0, &count, &first) !=
            WEFTIO_DEV_OK)
            return;
        weftio_dev_semaphore_set_status(in, index, WEFTIO_DEV_SEMAPHORE_FREE);
        weftio_dev_semaphore_set_packet_info(out, index, WEFTIO_DEV_SEMAPHORE_READY, count, first);
    }
}
