/* Bytes of packets: big-endian words at any address, copies, and the Internet checksum (RFC 1071). */
#pragma once

#include "weftio/device/platform.h"

WEFTIO_FN weftio_u32 get_be16(const WEFTIO_GLOBAL weftio_u8* at)
{
    return (weftio_u32)at[0] << 8 | at[1];
}
WEFTIO_FN weftio_u32 get_be32(const WEFTIO_GLOBAL weftio_u8* at)
{
    return (weftio_u32)at[0] << 24 | (weftio_u32)at[1] << 16 | (weftio_u32)at[2] << 8 | at[3];
}
WEFTIO_FN void put_be16(WEFTIO_GLOBAL weftio_u8* at, weftio_u32 value)
{
    at[0] = (weftio_u8)(value >> 8);
    at[1] = (weftio_u8)value;
}
WEFTIO_FN void put_be32(WEFTIO_GLOBAL weftio_u8* at, weftio_u32 value)
{
    put_be16(at, value >> 16);
    put_be16(at + 2, value);
}
WEFTIO_FN void copy_bytes(WEFTIO_GLOBAL weftio_u8* to, const WEFTIO_GLOBAL weftio_u8* from, weftio_u32 bytes)
{
    for (weftio_u32 each = 0; each < bytes; ++each)
        to[each] = from[each];
}
WEFTIO_FN weftio_u32 equal_bytes(const WEFTIO_GLOBAL weftio_u8* a, const WEFTIO_GLOBAL weftio_u8* b, weftio_u32 bytes)
{
    for (weftio_u32 each = 0; each < bytes; ++each)
        if (a[each] != b[each])
            return 0;
    return 1;
}
/* Sum of big-endian words, the last one padded with 0; below 2^32 for up to 128 KiB. */
WEFTIO_FN weftio_u32 sum_be16(const WEFTIO_GLOBAL weftio_u8* at, weftio_u32 bytes)
{
    weftio_u32 sum = 0, each = 0;

    for (; each + 1 < bytes; each += 2)
        sum += get_be16(at + each);
    return each < bytes ? sum + ((weftio_u32)at[each] << 8) : sum;
}
/* The checksum of words with this sum. 0 for words that hold their own checksum. */
WEFTIO_FN weftio_u32 finish_checksum(weftio_u32 sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return ~sum & 0xffff;
}
