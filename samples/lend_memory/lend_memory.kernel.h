/* The kernels of lend_memory: one source for C++, OpenCL C and CUDA. One lane each. */
#pragma once

#include "weftio/device/rdma.h"

#define LENT_BYTES 1024u

/*
 * The owner of the memory: lends the peer the second half of a buffer by a window, tells it the key by a number in its
 * memory, and waits until the peer returns the window.
 */
WEFTIO_KERNEL void lender(WEFTIO_GLOBAL struct weftio_dev_rdma* rdma,
                          WEFTIO_GLOBAL struct weftio_dev_rdma_recv* receives,
                          WEFTIO_GLOBAL struct weftio_dev_buf_arr* buffers, weftio_u32 window,
                          struct weftio_dev_remote note, WEFTIO_GLOBAL weftio_u32* returned)
{
    struct weftio_dev_buf buffer = weftio_dev_buf_get(buffers, 0);
    struct weftio_dev_rdma_message message;
    const weftio_u32 key = weftio_dev_rdma_next_rkey(window);
    weftio_u32 count, first;

    weftio_dev_rdma_recv_post(receives, buffer, 0, 0);
    weftio_dev_rdma_recv_commit(receives);
    weftio_dev_rdma_enqueue(rdma,
                            weftio_dev_rdma_bind_request(window, key, WEFTIO_DEV_WINDOW_TYPE_2, buffer, LENT_BYTES,
                                                         LENT_BYTES, WEFTIO_DEV_RDMA_REMOTE_WRITE),
                            WEFTIO_DEV_SEND_NONE);
    weftio_dev_rdma_write_value(rdma, note, 0, key, WEFTIO_DEV_SEND_NONE); /* behind the bind, so the key is valid */
    /* No wait for these two: the peer's WRITE that is refused may end the connection before a wait sees them done. */
    if (weftio_dev_rdma_commit(rdma) != WEFTIO_DEV_OK ||
        weftio_dev_rdma_recv_wait(receives, 1, 0, &count, &first) != WEFTIO_DEV_OK)
        return; /* the host has stopped the kernel, or the connection has failed */
    if (weftio_dev_rdma_recv_message(receives, first, &message) == WEFTIO_DEV_OK &&
        message.kind == WEFTIO_DEV_RDMA_SEND_INVAL)
        *returned = message.immediate;
}

/* The peer: writes to the memory that it was lent, returns it, and then tries to write again. */
WEFTIO_KERNEL void borrower(WEFTIO_GLOBAL struct weftio_dev_rdma* rdma, WEFTIO_GLOBAL struct weftio_dev_buf_arr* from,
                            struct weftio_dev_remote lent, const WEFTIO_GLOBAL weftio_u64* note,
                            WEFTIO_GLOBAL weftio_s32* statuses)
{
    struct weftio_dev_buf bytes = weftio_dev_buf_get(from, 0);

    if (weftio_dev_rdma_wait_value(rdma, note, 1, 0) != WEFTIO_DEV_OK)
        return;
    lent.rkey_be = weftio_swap32((weftio_u32)*note);
    weftio_dev_rdma_write(rdma, lent, 0, bytes, 0, LENT_BYTES, WEFTIO_DEV_SEND_NONE);
    weftio_dev_rdma_send_inval(rdma, bytes, 0, 0, (weftio_u32)*note, WEFTIO_DEV_SEND_NONE);
    statuses[0] = weftio_dev_rdma_commit_wait(rdma, 0);
    weftio_dev_rdma_write(rdma, lent, 0, bytes, LENT_BYTES, LENT_BYTES, WEFTIO_DEV_SEND_NONE);
    statuses[1] = weftio_dev_rdma_commit_wait(rdma, 0);
}
