/* A kernel that is compiled with checks of the handles it is given. */
#pragma once

#define WEFTIO_DEV_CHECKS

#include "weftio/device/dma.h"
#include "weftio/device/eth_txq.h"
#include "weftio/device/rdma.h"
#include "weftio/device/semaphore.h"

/* Handles on a way that device::launch does not see. */
struct handles {
    WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq;
    WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq;
    WEFTIO_GLOBAL struct weftio_dev_dma* dma;
    WEFTIO_GLOBAL struct weftio_dev_semaphore* semaphore;
    WEFTIO_GLOBAL struct weftio_dev_buf_arr* array;
    WEFTIO_GLOBAL struct weftio_dev_rdma* rdma;
    WEFTIO_GLOBAL struct weftio_dev_rdma_recv* recv;
};

/* answers[]: what the functions that return a status said, an item's status, whether an end is wanted, and whether there
   is what is asked for. None of the calls waits, or changes anything. */
#define STATUSES 29
#define FILL 8 /* of them; so are WRITE and POST */
#define WRITE 17
#define POST 23
#define ITEM_STATUSES 1
#define ABORTS 3
#define THERE 12
#define ANSWERS (STATUSES + ITEM_STATUSES + ABORTS + THERE)
WEFTIO_KERNEL void tries_handles(WEFTIO_GLOBAL struct handles* given, WEFTIO_GLOBAL weftio_u32* answers)
{
    WEFTIO_GLOBAL struct weftio_dev_eth_rxq* rxq = given->rxq;
    WEFTIO_GLOBAL struct weftio_dev_eth_txq* txq = given->txq;
    WEFTIO_GLOBAL struct weftio_dev_dma* dma = given->dma;
    WEFTIO_GLOBAL struct weftio_dev_semaphore* semaphore = given->semaphore;
    WEFTIO_GLOBAL struct weftio_dev_rdma* rdma = given->rdma;
    WEFTIO_GLOBAL struct weftio_dev_rdma_recv* recv = given->recv;
    struct weftio_dev_remote peer = {0, 64, 0, 0};
    struct weftio_dev_rdma_message message;
    weftio_u32 rdma_position = 7, rdma_mask = 7, recv_position = 7, recv_mask = 7, messages, message_first;
    struct weftio_dev_packet packet;
    struct weftio_dev_buf buf = weftio_dev_buf_get(given->array, 0);
    weftio_u32 count = 7, first, position = 7, mask = 7, dma_position = 7, dma_mask = 7, at = 0;
    weftio_u64 time;

    answers[at++] = (weftio_u32)weftio_dev_eth_rxq_receive_thread(rxq, 1, 1, &count, &first);
    answers[at++] = (weftio_u32)weftio_dev_eth_rxq_packet(rxq, 0, &packet);
    answers[at++] = (weftio_u32)weftio_dev_eth_rxq_release(rxq, 0, 0);
    answers[at++] = (weftio_u32)weftio_dev_eth_txq_send_enqueue_strong(txq, buf, 64, WEFTIO_DEV_SEND_NONE);
    answers[at++] = (weftio_u32)weftio_dev_eth_txq_status(txq);
    answers[at++] = (weftio_u32)weftio_dev_eth_txq_commit_weak(txq, 0);
    answers[at++] = (weftio_u32)weftio_dev_eth_txq_poll_completion(txq, 0, &time);
    answers[at++] = (weftio_u32)weftio_dev_eth_txq_wait_room(txq, 1, 1);
    answers[at++] = (weftio_u32)weftio_dev_dma_fill(dma, 1, buf, 0, 4, WEFTIO_DEV_SEND_NONE);
    answers[at++] = (weftio_u32)weftio_dev_dma_status(dma);
    answers[at++] = (weftio_u32)weftio_dev_dma_commit_weak(dma, 0);
    answers[at++] = (weftio_u32)weftio_dev_dma_poll_completion(dma, 0, &time);
    answers[at++] = (weftio_u32)weftio_dev_dma_wait_room(dma, 1, 1);
    answers[at++] = (weftio_u32)weftio_dev_semaphore_set_status(semaphore, 0, WEFTIO_DEV_SEMAPHORE_FREE);
    answers[at++] = (weftio_u32)weftio_dev_semaphore_set_packet_info(semaphore, 0, WEFTIO_DEV_SEMAPHORE_FREE, 1, 1);
    answers[at++] = (weftio_u32)weftio_dev_semaphore_wait_status(semaphore, 0, WEFTIO_DEV_SEMAPHORE_FREE, 0);
    answers[at++] = (weftio_u32)weftio_dev_semaphore_get_packet_info_status(semaphore, 0, WEFTIO_DEV_SEMAPHORE_FREE,
                                                                            &count, &first);
    answers[at++] = (weftio_u32)weftio_dev_rdma_write(rdma, peer, 0, buf, 0, 4, WEFTIO_DEV_SEND_NONE);
    answers[at++] = (weftio_u32)weftio_dev_rdma_status(rdma);
    answers[at++] = (weftio_u32)weftio_dev_rdma_commit_weak(rdma, 0);
    answers[at++] = (weftio_u32)weftio_dev_rdma_poll_completion(rdma, 0, &time);
    answers[at++] = (weftio_u32)weftio_dev_rdma_wait_room(rdma, 1, 1);
    answers[at++] = (weftio_u32)weftio_dev_rdma_wait_value(rdma, (const WEFTIO_GLOBAL weftio_u64*)answers, 0, 1);
    answers[at++] = (weftio_u32)weftio_dev_rdma_recv_post(recv, buf, 0, 4);
    answers[at++] = (weftio_u32)weftio_dev_rdma_recv_status(recv);
    answers[at++] = (weftio_u32)weftio_dev_rdma_recv_commit_weak(recv, 0);
    answers[at++] = (weftio_u32)weftio_dev_rdma_recv_poll(recv, 1, &messages, &message_first);
    answers[at++] = (weftio_u32)weftio_dev_rdma_recv_wait(recv, 1, 1, &messages, &message_first);
    answers[at++] = (weftio_u32)weftio_dev_rdma_recv_message(recv, 0, &message);
    answers[at++] = weftio_dev_semaphore_get_status(semaphore, 0);

    answers[at++] = weftio_dev_eth_rxq_aborted(rxq);
    answers[at++] = weftio_dev_eth_txq_aborted(txq);
    answers[at++] = weftio_dev_rdma_aborted(rdma);

    weftio_dev_eth_txq_get_info(txq, &position, &mask);
    weftio_dev_dma_get_info(dma, &dma_position, &dma_mask);
    weftio_dev_rdma_get_info(rdma, &rdma_position, &rdma_mask);
    weftio_dev_rdma_recv_get_info(recv, &recv_position, &recv_mask);
    weftio_dev_eth_txq_push(txq);
    weftio_dev_rdma_push(rdma);
    answers[at++] = mask != 0;
    answers[at++] = dma_mask != 0;
    answers[at++] = rdma_mask != 0;
    answers[at++] = recv_mask != 0;
    answers[at++] = count != 0;
    answers[at++] = buf.bytes != 0;
    answers[at++] = weftio_dev_buf_addr(given->array, 1) != 0;
    answers[at++] = weftio_dev_eth_rxq_address(rxq, 0) != 0;
    answers[at++] = weftio_dev_eth_rxq_buf(rxq, 0).bytes != 0;
    answers[at++] = weftio_dev_semaphore_next(semaphore, 0) != 0;
    answers[at++] = weftio_dev_semaphore_get_custom_info_addr(semaphore, 0) != 0;
    answers[at++] = weftio_dev_eth_txq_unmask(txq, 5) != 0;
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
