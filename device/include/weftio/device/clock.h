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
 * Nanoseconds for measuring how long something takes; only differences mean anything. Never blocks.
 *
 * The platform's own timer where there is one (its resolution: CPU 1 ns, CUDA `%globaltimer`), else `clock`.
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

/**
 * When a wait that begins at `now_ns` ends. One that would outlast the clock's last nanosecond ends there, in 500
 * years.
 */
WEFTIO_FN weftio_u64 weftio_dev_deadline_ns(weftio_u64 now_ns, weftio_u64 timeout_ns)
{
    const weftio_u64 last_ns = ~(weftio_u64)0;

    return timeout_ns < last_ns - now_ns ? now_ns + timeout_ns : last_ns;
}
