/**
 * Several connections inside a kernel, by index, with one shared receive ring.
 *
 * weftio_dev_rdma_connection() returns the send side of a connection, which the functions of rdma.h take. The receive
 * ring is an argument of its own: weftio_dev_rdma_recv_wait() and _poll() wait for messages of all connections, and
 * weftio_dev_rdma_message::connection tells whose each is.
 */
#pragma once

#include "weftio/device/rdma.h"

/** Made by the host class `rdma_connections`. Kernels use it through the functions below only. */
struct weftio_dev_rdma_connections {
    weftio_u32 abi; /**< WEFTIO_DEV_ABI_RDMA_CONNECTIONS */
    weftio_u32 count;
    const WEFTIO_GLOBAL weftio_u64 *handles; /**< address of the weftio_dev_rdma of each */
};

/** Number of connections. Never blocks; any lane. With WEFTIO_DEV_CHECKS 0 if `connections` is another handle. */
WEFTIO_FN weftio_u32
weftio_dev_rdma_connections_count(const WEFTIO_GLOBAL struct weftio_dev_rdma_connections *connections)
{
    return weftio_dev_is_handle(connections->abi, WEFTIO_DEV_ABI_RDMA_CONNECTIONS) ? connections->count : 0;
}

/**
 * The send side of connection `index`. Never blocks; any lane. It is valid as long as `connections` is.
 *
 * @return its handle; 0 `index` is not below the count, or with WEFTIO_DEV_CHECKS: `connections` is another handle
 */
WEFTIO_FN WEFTIO_GLOBAL struct weftio_dev_rdma *
weftio_dev_rdma_connection(const WEFTIO_GLOBAL struct weftio_dev_rdma_connections *connections, weftio_u32 index)
{
    if (index >= weftio_dev_rdma_connections_count(connections))
        return 0;
    return (WEFTIO_GLOBAL struct weftio_dev_rdma *)connections->handles[index];
}
