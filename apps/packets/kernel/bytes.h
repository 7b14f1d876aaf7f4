/* Big-endian fields, copies and checksums of bytes that lie in memory which kernels share. No alignment is assumed. */
#pragma once

#include "weftio/device/platform.h"

WEFTIO_FN weftio_u32 be16_get(const WEFTIO_GLOBAL weftio_u8* at)
{
    return (weftio_u32)at[0] << 8 | at[1];
}
WEFTIO_FN weftio_u32 be32_get(const WEFTIO_GLOBAL weftio_u8* at)
{
    return be16_get(at) << 16 | be16_get(at + 2);
}
WEFTIO_FN void be16_put(WEFTIO_GLOBAL weftio_u8* at, weftio_u32 value)
{
    at[0] = (weftio_u8)(value >> 8);
    at[1] = (weftio_u8)value;
}
WEFTIO_FN void be32_put(WEFTIO_GLOBAL weftio_u8* at, weftio_u32 value)
{
    be16_put(at, value >> 16);
    be16_put(at + 2, value);
}

/** Copies `count` bytes; the ranges must not overlap. */
WEFTIO_FN void bytes_copy(WEFTIO_GLOBAL weftio_u8* to, const WEFTIO_GLOBAL weftio_u8* from, weftio_u32 count)
{
#ifdef __OPENCL_C_VERSION__
    for (weftio_u32 i = 0; i < count; ++i)
        to[i] = from[i];
#else
    __builtin_memcpy(to, from, count); /* GCC makes no wide loads of the loop at -O2 */
#endif
}

WEFTIO_FN weftio_u32 bytes_equal(const WEFTIO_GLOBAL weftio_u8* a, const WEFTIO_GLOBAL weftio_u8* b, weftio_u32 count)
{
    for (weftio_u32 i = 0; i < count; ++i)
        if (a[i] != b[i])
            return 0;
    return 1;
}

WEFTIO_FN void bytes_zero(WEFTIO_GLOBAL weftio_u8* at, weftio_u32 count)
{
    for (weftio_u32 i = 0; i < count; ++i)
        at[i] = 0;
}

/**
 * Adds the big-endian 16-bit words of `count` bytes to `sum` (RFC 1071). The last byte of an odd count is the upper
 * half of a word, so only the last range of a checksum may be odd.
 *
 * @pre count <= 65,535 and `sum` is below 2^31; fold it before more is added
 */
WEFTIO_FN weftio_u32 ones_add(weftio_u32 sum, const WEFTIO_GLOBAL weftio_u8* from, weftio_u32 count)
{
    weftio_u32 i = 0;

    for (; i + 1 < count; i += 2)
        sum += be16_get(from + i);
    return i < count ? sum + ((weftio_u32)from[i] << 8) : sum;
}
/** The sum in 16 bits. The checksum of a header is the complement of it: `~ones_fold(sum) & 0xffff`. */
WEFTIO_FN weftio_u32 ones_fold(weftio_u32 sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    return (sum & 0xffff) + (sum >> 16);
}
