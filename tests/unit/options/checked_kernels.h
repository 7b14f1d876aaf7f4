/* A kernel with WEFTIO_DEV_CHECKS, which checks its handles. */
#pragma once

#define WEFTIO_DEV_CHECKS

#include "weftio/device/dma.h"
#include "weftio/device/eth_txq.h"
#include "weftio/device/rdma.h"
#include "weftio/device/semaphore.h"

/* Handles in memory, where device::launch cannot check them. */
struct handles {
    WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq;
    WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq;
    WEFTIO_GLOBAL struct weftio_dev_dma* dma;
    WEFTIO_GLOBAL struct weftio_dev_semaphore* semaphore;
    WEFTIO_GLOBAL struct weftio_dev_buf_arr* array;
    WEFTIO_GLOBAL struct weftio_dev_rdma* rdma;
    WEFTIO_GLOBAL struct weftio_dev_rdma_recv* recv;
};

/*
 * answers[]: the statuses of functions, the status of an item, whether the host asks the kernel to end, and whether
 * other functions returned something. None of the calls waits, or changes anything.
 */
#define STATUSES 29
#define FILL 8 /* of them; so are WRITE and POST */
#define WRITE 17
#define POST 23
#define ITEM_STATUSES 1
#define ABORTS 3
#define THERE 12
#define ANSWERS (STATUSES + ITEM_STATUSES + ABORTS + THERE)

/* Each of these functions returns the address of the next answer. */
WEFTIO_FN WEFTIO_GLOBAL weftio_u32* try_ethernet(const WEFTIO_GLOBAL struct handles* given, struct weftio_dev_buf buf,
                                                 weftio_u32* count, WEFTIO_GLOBAL weftio_u32* to)
{
    struct weftio_dev_packet packet;
    weftio_u32 first;
    weftio_u64 time;

    *to++ = (weftio_u32)weftio_dev_eth_rxq_receive_thread(given->rxq, 1, 1, count, &first);
    *to++ = (weftio_u32)weftio_dev_eth_rxq_packet(given->rxq, 0, &packet);
    *to++ = (weftio_u32)weftio_dev_eth_rxq_release(given->rxq, 0, 0);
    *to++ = (weftio_u32)weftio_dev_eth_txq_send_enqueue_strong(given->txq, buf, 64, WEFTIO_DEV_SEND_NONE);
    *to++ = (weftio_u32)weftio_dev_eth_txq_status(given->txq);
    *to++ = (weftio_u32)weftio_dev_eth_txq_commit_weak(given->txq, 0);
    *to++ = (weftio_u32)weftio_dev_eth_txq_poll_completion(given->txq, 0, &time);
    *to++ = (weftio_u32)weftio_dev_eth_txq_wait_room(given->txq, 1, 1);
    return to;
}

WEFTIO_FN WEFTIO_GLOBAL weftio_u32* try_copies(WEFTIO_GLOBAL struct weftio_dev_dma* dma, struct weftio_dev_buf buf,
                                               WEFTIO_GLOBAL weftio_u32* to)
{
    weftio_u64 time;

    *to++ = (weftio_u32)weftio_dev_dma_fill(dma, 1, buf, 0, 4, WEFTIO_DEV_SEND_NONE);
    *to++ = (weftio_u32)weftio_dev_dma_status(dma);
    *to++ = (weftio_u32)weftio_dev_dma_commit_weak(dma, 0);
    *to++ = (weftio_u32)weftio_dev_dma_poll_completion(dma, 0, &time);
    *to++ = (weftio_u32)weftio_dev_dma_wait_room(dma, 1, 1);
    return to;
}

WEFTIO_FN WEFTIO_GLOBAL weftio_u32* try_items(WEFTIO_GLOBAL struct weftio_dev_semaphore* semaphore, weftio_u32* count,
                                              WEFTIO_GLOBAL weftio_u32* to)
{
    weftio_u32 first;

    *to++ = (weftio_u32)weftio_dev_semaphore_set_status(semaphore, 0, WEFTIO_DEV_SEMAPHORE_FREE);
    *to++ = (weftio_u32)weftio_dev_semaphore_set_packet_info(semaphore, 0, WEFTIO_DEV_SEMAPHORE_FREE, 1, 1);
    *to++ = (weftio_u32)weftio_dev_semaphore_wait_status(semaphore, 0, WEFTIO_DEV_SEMAPHORE_FREE, 0);
    *to++ =
        (weftio_u32)weftio_dev_semaphore_get_packet_info_status(semaphore, 0, WEFTIO_DEV_SEMAPHORE_FREE, count, &first);
    return to;
}

WEFTIO_FN WEFTIO_GLOBAL weftio_u32* try_rdma(const WEFTIO_GLOBAL struct handles* given, struct weftio_dev_buf buf,
                                             WEFTIO_GLOBAL weftio_u32* to)
{
    WEFTIO_GLOBAL struct weftio_dev_rdma* rdma = given->rdma;
    WEFTIO_GLOBAL struct weftio_dev_rdma_recv* recv = given->recv;
    struct weftio_dev_remote peer = {0, 64, 0, 0};
    struct weftio_dev_rdma_message message;
    weftio_u32 count, first;
    weftio_u64 time;

    *to++ = (weftio_u32)weftio_dev_rdma_write(rdma, peer, 0, buf, 0, 4, WEFTIO_DEV_SEND_NONE);
    *to++ = (weftio_u32)weftio_dev_rdma_status(rdma);
    *to++ = (weftio_u32)weftio_dev_rdma_commit_weak(rdma, 0);
    *to++ = (weftio_u32)weftio_dev_rdma_poll_completion(rdma, 0, &time);
    *to++ = (weftio_u32)weftio_dev_rdma_wait_room(rdma, 1, 1);
    *to++ = (weftio_u32)weftio_dev_rdma_wait_value(rdma, (const WEFTIO_GLOBAL weftio_u64*)given, 0, 1);
    *to++ = (weftio_u32)weftio_dev_rdma_recv_post(recv, buf, 0, 4);
    *to++ = (weftio_u32)weftio_dev_rdma_recv_status(recv);
    *to++ = (weftio_u32)weftio_dev_rdma_recv_commit_weak(recv, 0);
    *to++ = (weftio_u32)weftio_dev_rdma_recv_poll(recv, 1, &count, &first);
    *to++ = (weftio_u32)weftio_dev_rdma_recv_wait(recv, 1, 1, &count, &first);
    *to++ = (weftio_u32)weftio_dev_rdma_recv_message(recv, 0, &message);
    return to;
}

WEFTIO_FN WEFTIO_GLOBAL weftio_u32* try_masks(const WEFTIO_GLOBAL struct handles* given, WEFTIO_GLOBAL weftio_u32* to)
{
    weftio_u32 position = 7, txq = 7, dma = 7, rdma = 7, recv = 7;

    weftio_dev_eth_txq_get_info(given->txq, &position, &txq);
    weftio_dev_dma_get_info(given->dma, &position, &dma);
    weftio_dev_rdma_get_info(given->rdma, &position, &rdma);
    weftio_dev_rdma_recv_get_info(given->recv, &position, &recv);
    *to++ = txq != 0;
    *to++ = dma != 0;
    *to++ = rdma != 0;
    *to++ = recv != 0;
    return to;
}

WEFTIO_KERNEL void tries_handles(WEFTIO_GLOBAL struct handles* given, WEFTIO_GLOBAL weftio_u32* answers)
{
    struct weftio_dev_buf buf = weftio_dev_buf_get(given->array, 0);
    weftio_u32 count = 7;
    WEFTIO_GLOBAL weftio_u32* to = try_ethernet(given, buf, &count, answers);

    to = try_copies(given->dma, buf, to);
    to = try_items(given->semaphore, &count, to);
    to = try_rdma(given, buf, to);
    *to++ = weftio_dev_semaphore_get_status(given->semaphore, 0);
    *to++ = weftio_dev_eth_rxq_aborted(given->rxq);
    *to++ = weftio_dev_eth_txq_aborted(given->txq);
    *to++ = weftio_dev_rdma_aborted(given->rdma);

    weftio_dev_eth_txq_push(given->txq);
    weftio_dev_rdma_push(given->rdma);
    to = try_masks(given, to);
    *to++ = count != 0;
    *to++ = buf.bytes != 0;
    *to++ = weftio_dev_buf_addr(given->array, 1) != 0;
    *to++ = weftio_dev_eth_rxq_address(given->rxq, 0) != 0;
    *to++ = weftio_dev_eth_rxq_buf(given->rxq, 0).bytes != 0;
    *to++ = weftio_dev_semaphore_next(given->semaphore, 0) != 0;
    *to++ = weftio_dev_semaphore_get_custom_info_addr(given->semaphore, 0) != 0;
    *to++ = weftio_dev_eth_txq_unmask(given->txq, 5) != 0;
}

/* wrong[n]: whether member n of `given` is no handle of its kind. */
WEFTIO_KERNEL void finds_wrong_handles(WEFTIO_GLOBAL struct handles* given, WEFTIO_GLOBAL weftio_u32* wrong)
{
    wrong[0] = !weftio_dev_handle_is(given->rxq, WEFTIO_DEV_ABI_ETH_RXQ);
    wrong[1] = !weftio_dev_handle_is(given->txq, WEFTIO_DEV_ABI_ETH_TXQ);
    wrong[2] = !weftio_dev_handle_is(given->dma, WEFTIO_DEV_ABI_DMA);
    wrong[3] = !weftio_dev_handle_is(given->semaphore, WEFTIO_DEV_ABI_SEMAPHORE);
    wrong[4] = !weftio_dev_handle_is(given->array, WEFTIO_DEV_ABI_BUF_ARR);
}
