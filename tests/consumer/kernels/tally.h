/* A header beside the kernel, which includes what the kernel includes too. */
#pragma once

#include "burst.h"

struct tally {
    weftio_u32 packets;
    weftio_u32 full_bursts;
};

/* For the host to read at any time. */
WEFTIO_FN void tally_add(WEFTIO_GLOBAL struct tally* tally, weftio_u32 count)
{
    tally->full_bursts += count == BURST;
    weftio_store_release_sys_u32(&tally->packets, tally->packets + count);
}
