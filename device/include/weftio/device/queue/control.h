/** The control block of a queue: the host asks a kernel to end, and the kernel leaves a trace of what it does. */
#pragma once

#include "weftio/device/platform.h"

/** Which device function wrote the trace last. Releasing and enqueuing leave none: they run for each packet. */
enum weftio_dev_function {
    WEFTIO_DEV_FUNCTION_NONE = 0,
    WEFTIO_DEV_FUNCTION_RECEIVE = 1,
    WEFTIO_DEV_FUNCTION_COMMIT = 4,
    WEFTIO_DEV_FUNCTION_PUSH = 5,
    WEFTIO_DEV_FUNCTION_POLL = 6,
    WEFTIO_DEV_FUNCTION_SEMAPHORE = 7
};

/** Two cache lines in memory that host and device can access: the host writes the first, the kernel the second. */
struct weftio_dev_control {
    weftio_u32 abort; /**< not 0: every wait on this queue ends with WEFTIO_DEV_ABORTED */
    weftio_u32 host_reserved[15];
    weftio_u32 beats;    /**< grows with every call and every iteration of a wait */
    weftio_u32 block;    /**< block that wrote the trace */
    weftio_u32 function; /**< enum weftio_dev_function */
    weftio_u32 index;    /**< index in the ring */
    weftio_s32 status;   /**< enum weftio_dev_status of the last call that returned */
    weftio_u32 kernel_reserved[11];
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_control) == 128, "host and device share this layout");

/** 1 once the host has asked the kernel to end. Never blocks. */
WEFTIO_FN weftio_u32 weftio_dev_aborted(const WEFTIO_GLOBAL struct weftio_dev_control *control)
{
    return weftio_load_relaxed_u32(&control->abort) != 0;
}

/**
 * Writes the trace into the control block. One lane of the scope calls it. Never blocks.
 *
 * @param count  of calls and iterations of waits, this one included
 */
WEFTIO_FN void weftio_dev_trace(WEFTIO_GLOBAL struct weftio_dev_control *control, weftio_u32 count, weftio_u32 function,
                                weftio_u32 index, weftio_s32 status)
{
    weftio_store_relaxed_u32(&control->beats, count);
    weftio_store_relaxed_u32(&control->block, weftio_block());
    weftio_store_relaxed_u32(&control->function, function);
    weftio_store_relaxed_u32(&control->index, index);
    weftio_store_relaxed_u32((WEFTIO_GLOBAL weftio_u32 *)&control->status, (weftio_u32)status);
}

/**
 * Counts, and writes the trace.
 *
 * @param beats  the count in memory that the kernel reads fast: a load from `control` may be a round trip over a bus.
 *               `&control->beats` if there is no such memory
 */
WEFTIO_FN void weftio_dev_beat(WEFTIO_GLOBAL struct weftio_dev_control *control, WEFTIO_GLOBAL weftio_u32 *beats,
                               weftio_u32 function, weftio_u32 index, weftio_s32 status)
{
    weftio_u32 count = weftio_load_relaxed_u32(beats) + 1;

    weftio_store_relaxed_u32(beats, count);
    weftio_dev_trace(control, count, function, index, status);
}
