/* What the host tells the kernels. They only read it. */
#pragma once

#include "weftio/device/platform.h"

#define PACKETS_ADDRESSES 16 /* most addresses of a port */

/* An address of ours; IPv4 ones in the first four bytes. */
struct own_address {
    weftio_u8 bytes[16];
    weftio_u32 version; /* 4 or 6 */
    weftio_u32 prefix;  /* bits of its network */
};

struct packets_settings {
    struct own_address addresses[PACKETS_ADDRESSES];
    weftio_u32 address_count;
    weftio_u8 mac[6];
    weftio_u8 reserved[2];
    weftio_u32 echo_port;     /* UDP port whose datagrams go back; 0: none */
    weftio_u32 http_port;     /* TCP port of the server; 0: none */
    weftio_u32 ping_report;   /* whether the host wants to hear of each ping */
    weftio_u32 busy;          /* kernels never sleep */
    weftio_u64 statistics_ns; /* from one report of a kernel to the next */
};
