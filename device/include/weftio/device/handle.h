/**
 * The first word of every handle: the kind of the handle, and the version and size of its layout.
 *
 * The host writes the word, and device::launch compares it with the headers that the kernel was compiled with. Handles
 * that reach a kernel inside a structure of the application are not compared by the host. A kernel that is compiled
 * with WEFTIO_DEV_CHECKS checks them itself: every function first compares the word, and refuses a handle of another
 * kind or another version:
 *
 * - a function that returns a status returns WEFTIO_DEV_INVALID_ARGUMENT;
 * - a function that asks whether the host wants the kernel to end returns 1, so that loops end;
 * - a function that returns an address or a count returns 0;
 * - push does nothing.
 *
 * The functions of all send queues (commit, push, wait_room, ...) accept the handle of any ring of entries. A handle
 * whose object has been destroyed is not detected. To report to the host which handle of a structure is wrong, a kernel
 * calls weftio_dev_handle_is() for each.
 *
 * The header of the kernel says `#define WEFTIO_DEV_CHECKS` before its includes, and is the first header of its source
 * file that includes this one:
 *
 *     my.kernel.h         says `#define WEFTIO_DEV_CHECKS`, then includes weftio/device/...
 *     my_program.cpp      includes my.kernel.h, then weftio/weftio.hpp
 *
 * WEFTIO_DEFINE_KERNEL does not compile otherwise.
 */
#pragma once

#include "weftio/device/platform.h"

/** Changes with the layout of any handle. */
#define WEFTIO_DEV_ABI_VERSION 4u

/** The first word of a handle. Never 0. */
#define WEFTIO_DEV_ABI(KIND, BYTES) ((KIND) << 24 | WEFTIO_DEV_ABI_VERSION << 16 | (BYTES))
#define WEFTIO_DEV_ABI_BUF_ARR WEFTIO_DEV_ABI(1u, 64u)
#define WEFTIO_DEV_ABI_ETH_RXQ WEFTIO_DEV_ABI(2u, 128u)
#define WEFTIO_DEV_ABI_ETH_TXQ WEFTIO_DEV_ABI(3u, 128u)
#define WEFTIO_DEV_ABI_DMA WEFTIO_DEV_ABI(4u, 128u)
#define WEFTIO_DEV_ABI_SEMAPHORE WEFTIO_DEV_ABI(5u, 72u)
#define WEFTIO_DEV_ABI_RDMA WEFTIO_DEV_ABI(6u, 128u)
#define WEFTIO_DEV_ABI_RDMA_RECV WEFTIO_DEV_ABI(7u, 192u)
#define WEFTIO_DEV_ABI_COMPLETION_QUEUE WEFTIO_DEV_ABI(8u, 128u)
#define WEFTIO_DEV_ABI_FILE_QUEUE WEFTIO_DEV_ABI(9u, 128u)
#define WEFTIO_DEV_ABI_RDMA_CONNECTIONS WEFTIO_DEV_ABI(10u, 16u)

#if defined(WEFTIO_DEV_CHECKS)
#define WEFTIO_DEV_HAS_CHECKS 1
#else
#define WEFTIO_DEV_HAS_CHECKS 0
#endif

/**
 * Whether `abi`, the first word of a handle, is `wanted`: 1 or 0. Without WEFTIO_DEV_CHECKS: always 1, and nothing is
 * read.
 */
WEFTIO_FN weftio_u32 weftio_dev_is_handle(weftio_u32 abi, weftio_u32 wanted)
{
#if WEFTIO_DEV_HAS_CHECKS
    return abi == wanted;
#else
    (void)abi;
    (void)wanted;
    return 1;
#endif
}

/**
 * Whether `handle` begins with the word `wanted` (WEFTIO_DEV_ABI_ETH_RXQ, ...): 1 or 0; 0 for a null pointer. Reads the
 * word with and without WEFTIO_DEV_CHECKS. With it, a kernel that gets handles inside a structure can report to the
 * host which of them is wrong before it uses any:
 *
 *     *wrong = !weftio_dev_handle_is(given->in, WEFTIO_DEV_ABI_ETH_RXQ)    ? 1
 *              : !weftio_dev_handle_is(given->out, WEFTIO_DEV_ABI_ETH_TXQ) ? 2
 *                                                                          : 0;
 *     if (*wrong)
 *         return;
 */
WEFTIO_FN weftio_u32 weftio_dev_handle_is(WEFTIO_GLOBAL const void *handle, weftio_u32 wanted)
{
    return handle && *(WEFTIO_GLOBAL const weftio_u32 *)handle == wanted;
}
