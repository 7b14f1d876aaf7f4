/**
 * Time inside a kernel.
 */
#pragma once

#include "weftio/device/platform.h"

/** A clock that the host keeps for platforms without one of their own. Only the host writes it. */
struct weftio_dev_clock {
    weftio_u64 now_ns; /**< advanced every few microseconds while kernels run */
    weftio_u64 reserved[7];
};
WEFTIO_STATIC_ASSERT(sizeof(struct weftio_dev_clock) == 64, "host and device share this layout");

/**
 * Nanoseconds for measuring durations; only differences are meaningful. Never blocks.
 *
 * Reads the platform's own timer if there is one (resolution: CPU 1 ns, CUDA that of `%globaltimer`), else `clock`.
 */
WEFTIO_FN weftio_u64 weftio_dev_clock_ns(const WEFTIO_GLOBAL struct weftio_dev_clock *clock)
{
#if WEFTIO_HAS_TIMER
    (void)clock;
    return weftio_timer_ns();
#else
    return weftio_load_acquire_sys_u64(&clock->now_ns);
#endif
}

/** End of a wait that begins at `now_ns`; at most the last nanosecond of the clock, which is 500 years away. */
WEFTIO_FN weftio_u64 weftio_dev_deadline_ns(weftio_u64 now_ns, weftio_u64 timeout_ns)
{
    const weftio_u64 last_ns = ~(weftio_u64)0;

    return timeout_ns < last_ns - now_ns ? now_ns + timeout_ns : last_ns;
}
