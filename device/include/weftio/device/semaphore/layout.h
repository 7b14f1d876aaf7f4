/** What host and kernels share of a semaphore: its items, their statuses and its handle. Included by semaphore.h. */
#pragma once

#include "weftio/device/clock.h"
#include "weftio/device/handle.h"
#include "weftio/device/queue/control.h"

/** Status of an item. Other values are refused if transitions are checked. */
enum weftio_dev_semaphore_status {
    WEFTIO_DEV_SEMAPHORE_FREE = 0,
    WEFTIO_DEV_SEMAPHORE_READY = 1,
    WEFTIO_DEV_SEMAPHORE_HOLD = 2,
    WEFTIO_DEV_SEMAPHORE_DONE = 3,
    WEFTIO_DEV_SEMAPHORE_ERROR = 4
};

/** Four items share a cache line: from core to core this is faster than a line for each item (bench/semaphore). */
struct weftio_dev_semaphore_item {
    weftio_u32 status;
    weftio_u32 count; /**< packets */
    weftio_u32 first; /**< index of the first packet in its queue */
    weftio_u32 own;   /**< semaphore of two devices: the word that this device has written last to the other one */
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_semaphore_item) == 16, "host and device share this layout");

/** Refused transitions, if transitions are checked. The host reads this. */
struct weftio_dev_semaphore_illegal {
    weftio_u32 count;    /**< transitions refused */
    weftio_u32 recorded; /**< 1 once the three values below are written, which describe the first */
    weftio_u32 index;
    weftio_u32 from;
    weftio_u32 to;
    weftio_u32 reserved[11];
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_semaphore_illegal) == 64, "host and device share this layout");

/**
 * Made by the host class `semaphore`; read-only for kernels, which use it through the functions of semaphore.h only.
 *
 * A *plain* semaphore has one device, a power of two of items, and transitions that are not checked. Nearly all are
 * plain: one look at `mask` is all that the other kinds cost them.
 */
struct weftio_dev_semaphore {
    weftio_u32 abi;  /**< WEFTIO_DEV_ABI_SEMAPHORE */
    weftio_u32 mask; /**< plain semaphore: items - 1; else all bits */
    WEFTIO_GLOBAL struct weftio_dev_semaphore_item *items;
    WEFTIO_GLOBAL weftio_u8 *custom_info; /**< custom info of item 0; 0 if items have none */
    WEFTIO_GLOBAL struct weftio_dev_control *control;
    const WEFTIO_GLOBAL struct weftio_dev_clock *clock;
    WEFTIO_GLOBAL struct weftio_dev_semaphore_illegal *illegal; /**< 0: transitions are not checked */
    weftio_u32 custom_info_stride_bytes;
    weftio_u32 count;
    weftio_u32 end; /**< one past the last index: the largest multiple of `count` up to 2^32; 0: 2^32 */
    weftio_u32 reserved;
    WEFTIO_GLOBAL struct weftio_dev_semaphore_item *peer_items; /**< copies of the other device; 0: one device */
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_semaphore) == (WEFTIO_DEV_ABI_SEMAPHORE & 0xffffu),
                     "host and device share this layout");

#define WEFTIO_DEV_SEMAPHORE_BIT(FROM, TO) (1u << (WEFTIO_DEV_SEMAPHORE_##FROM * 5 + WEFTIO_DEV_SEMAPHORE_##TO))
#define WEFTIO_DEV_SEMAPHORE_LEGAL                                                                                     \
    (WEFTIO_DEV_SEMAPHORE_BIT(FREE, READY) | WEFTIO_DEV_SEMAPHORE_BIT(FREE, HOLD) |                                    \
     WEFTIO_DEV_SEMAPHORE_BIT(HOLD, READY) | WEFTIO_DEV_SEMAPHORE_BIT(HOLD, FREE) |                                    \
     WEFTIO_DEV_SEMAPHORE_BIT(HOLD, DONE) | WEFTIO_DEV_SEMAPHORE_BIT(HOLD, ERROR) |                                    \
     WEFTIO_DEV_SEMAPHORE_BIT(READY, HOLD) | WEFTIO_DEV_SEMAPHORE_BIT(READY, DONE) |                                   \
     WEFTIO_DEV_SEMAPHORE_BIT(READY, ERROR) | WEFTIO_DEV_SEMAPHORE_BIT(READY, FREE) |                                  \
     WEFTIO_DEV_SEMAPHORE_BIT(DONE, FREE) | WEFTIO_DEV_SEMAPHORE_BIT(DONE, READY) |                                    \
     WEFTIO_DEV_SEMAPHORE_BIT(ERROR, FREE))

/** Whether an item may go from status `from` to status `to`. */
WEFTIO_FN weftio_u32 weftio_dev_semaphore_is_legal(weftio_u32 from, weftio_u32 to)
{
    return from <= WEFTIO_DEV_SEMAPHORE_ERROR && to <= WEFTIO_DEV_SEMAPHORE_ERROR &&
           (WEFTIO_DEV_SEMAPHORE_LEGAL >> (from * 5 + to) & 1);
}
