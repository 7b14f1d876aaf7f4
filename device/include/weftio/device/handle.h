/**
 * What every handle ends with: a word that says what it is and how it is laid out.
 *
 * The host writes it, device::launch compares it with the headers that the kernel was compiled with, and so do the
 * functions of a kernel that is compiled with WEFTIO_DEV_CHECKS, which return WEFTIO_DEV_INVALID_ARGUMENT: for handles
 * that reach a kernel on another way, inside a structure of the application's own. The header of the kernel says
 * `#define WEFTIO_DEV_CHECKS` before its includes, and is the first header of its source file that includes this one.
 */
#pragma once

#include "weftio/device/platform.h"

/** Changes with the layout of any handle. */
#define WEFTIO_DEV_ABI_VERSION 1u

/** The last word of a handle. Never 0. */
#define WEFTIO_DEV_ABI(KIND, BYTES) ((KIND) << 24 | WEFTIO_DEV_ABI_VERSION << 16 | (BYTES))
#define WEFTIO_DEV_ABI_BUF_ARR WEFTIO_DEV_ABI(1u, 64u)
#define WEFTIO_DEV_ABI_ETH_RXQ WEFTIO_DEV_ABI(2u, 128u)
#define WEFTIO_DEV_ABI_ETH_TXQ WEFTIO_DEV_ABI(3u, 128u)
#define WEFTIO_DEV_ABI_DMA WEFTIO_DEV_ABI(4u, 128u)
#define WEFTIO_DEV_ABI_SEMAPHORE WEFTIO_DEV_ABI(5u, 64u)

/** Whether `abi`, of a handle, is `wanted`: 1 or 0. Without WEFTIO_DEV_CHECKS it is always, and nothing is read. */
WEFTIO_FN weftio_u32 weftio_dev_is_handle(weftio_u32 abi, weftio_u32 wanted)
{
#if defined(WEFTIO_DEV_CHECKS)
    return abi == wanted;
#else
    (void)abi;
    (void)wanted;
    return 1;
#endif
}
