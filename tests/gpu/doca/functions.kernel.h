/*
 * Each device function of DOCA GPUNetIO 2.10, as the suite of the CPU calls it (tests/unit/doca). A step that is wrong
 * leaves its number in `wrong`.
 */
#pragma once

#include "doca_gpunetio_dev_dma.cuh"
#include "doca_gpunetio_dev_eth_rxq.cuh"
#include "doca_gpunetio_dev_eth_txq.cuh"
#include "doca_gpunetio_dev_rdma.cuh"
#include "doca_gpunetio_dev_sem.cuh"
#include "doca_gpunetio_weftio.cuh"

struct doca_report {
    weftio_u32 wrong; /* number of a step; 0: none */
    weftio_u32 received;
    weftio_u32 spare[2];
    weftio_u32 numbers[1024]; /* of packets, in the order of arrival */
    weftio_u64 arrival_ns[8];
};
#define STEP(NUMBER, CONDITION)                                                                                        \
    do {                                                                                                               \
        if (!(CONDITION))                                                                                              \
            report->wrong = (NUMBER);                                                                                  \
    } while (0)

#define FRAME_BYTES 60u

WEFTIO_FN struct doca_gpu_buf* element(struct doca_gpu_buf_arr* array, weftio_u32 index)
{
    struct doca_gpu_buf* buf = 0;

    doca_gpu_dev_buf_get_buf(array, index, &buf);
    return buf;
}

WEFTIO_FN weftio_u32 number_of(const weftio_u8* packet)
{
    return packet[42] | (weftio_u32)packet[43] << 8 | (weftio_u32)packet[44] << 16 | (weftio_u32)packet[45] << 24;
}

WEFTIO_KERNEL void doca_buffers(struct doca_gpu_buf_arr* array, weftio_u32 count, weftio_u64 first, weftio_u32 bytes,
                                struct doca_report* report)
{
    struct doca_gpu_buf* buf = 0;
    uintptr_t address = 0;

    for (weftio_u32 index = weftio_lane(); index < 2 * count; index += weftio_block_lanes()) {
        STEP(1, doca_gpu_dev_buf_get_buf(array, index, &buf) == DOCA_SUCCESS);
        STEP(2, doca_gpu_dev_buf_get_addr(buf, &address) == DOCA_SUCCESS);
        STEP(3, address == first + (weftio_u64)(index % count) * bytes);
    }
    STEP(4, doca_gpu_dev_buf_get_buf(0, 0, &buf) == DOCA_ERROR_INVALID_VALUE);
    STEP(5, doca_gpu_dev_buf_get_addr(0, &address) == DOCA_ERROR_INVALID_VALUE);
}

WEFTIO_KERNEL void doca_send_strong(struct doca_gpu_eth_txq* txq, struct doca_gpu_buf_arr* frames, weftio_u32 count,
                                    struct doca_report* report)
{
    for (weftio_u32 frame = weftio_lane(); frame < count; frame += weftio_block_lanes())
        STEP(1, doca_gpu_dev_eth_txq_send_enqueue_strong(txq, element(frames, frame), FRAME_BYTES,
                                                         DOCA_GPU_SEND_FLAG_NONE) == DOCA_SUCCESS);
    weftio_block_barrier();
    if (weftio_lane())
        return;
    STEP(2, doca_gpu_dev_eth_txq_commit_strong(txq) == DOCA_SUCCESS);
    STEP(3, doca_gpu_dev_eth_txq_push(txq) == DOCA_SUCCESS);
    STEP(4, doca_gpu_dev_eth_txq_commit_strong(txq) == DOCA_SUCCESS); /* of nothing */
    STEP(5, doca_gpu_dev_eth_txq_push(txq) == DOCA_SUCCESS);
    STEP(6, doca_gpu_dev_eth_txq_send_enqueue_strong(0, element(frames, 0), 1, 0) == DOCA_ERROR_INVALID_VALUE);
    STEP(7, doca_gpu_dev_eth_txq_send_enqueue_strong(txq, 0, 1, 0) == DOCA_ERROR_INVALID_VALUE);
    STEP(8, doca_gpu_dev_eth_txq_send_enqueue_strong(txq, element(frames, 0), 0, 0) == DOCA_ERROR_INVALID_VALUE);
}

/* A block's lanes at a time, at masked positions. `count` is a multiple of the lanes. */
WEFTIO_KERNEL void doca_send_weak(struct doca_gpu_eth_txq* txq, struct doca_gpu_buf_arr* frames, weftio_u32 count,
                                  struct doca_report* report)
{
    const weftio_u32 lane = weftio_lane(), lanes = weftio_block_lanes();
    weftio_u32 position = 0, mask = 0;

    STEP(1, doca_gpu_dev_eth_txq_get_info(txq, &position, &mask) == DOCA_SUCCESS);
    weftio_block_barrier();
    for (weftio_u32 sent = 0; sent < count; sent += lanes) {
        STEP(2, doca_gpu_dev_eth_txq_send_enqueue_weak(txq, element(frames, sent + lane), FRAME_BYTES,
                                                       (position + sent + lane) & mask, 0) == DOCA_SUCCESS);
        weftio_block_barrier();
        if (lane == 0) {
            STEP(3, doca_gpu_dev_eth_txq_commit_weak(txq, lanes) == DOCA_SUCCESS);
            STEP(4, doca_gpu_dev_eth_txq_push(txq) == DOCA_SUCCESS);
        }
        weftio_block_barrier();
    }
}

/* A frame at each of two times, strongly or weakly. One lane. */
WEFTIO_KERNEL void doca_send_at(struct doca_gpu_eth_txq* txq, struct doca_gpu_buf_arr* frames, weftio_u64 first,
                                weftio_u64 second, weftio_u32 weak, struct doca_report* report)
{
    weftio_u32 position = 0, mask = 0;

    doca_gpu_dev_eth_txq_get_info(txq, &position, &mask);
    for (weftio_u32 burst = 0; burst < 2; ++burst) {
        const weftio_u64 value = burst ? second : first;
        if (weak) {
            STEP(1, doca_gpu_dev_eth_txq_wait_time_enqueue_weak(txq, value, position + 2 * burst, 0) == DOCA_SUCCESS);
            STEP(2, doca_gpu_dev_eth_txq_send_enqueue_weak(txq, element(frames, burst), FRAME_BYTES,
                                                           position + 2 * burst + 1, 0) == DOCA_SUCCESS);
        } else {
            STEP(3, doca_gpu_dev_eth_txq_wait_time_enqueue_strong(txq, value, 0) == DOCA_SUCCESS);
            STEP(4,
                 doca_gpu_dev_eth_txq_send_enqueue_strong(txq, element(frames, burst), FRAME_BYTES, 0) == DOCA_SUCCESS);
        }
    }
    STEP(5,
         (weak ? doca_gpu_dev_eth_txq_commit_weak(txq, 4) : doca_gpu_dev_eth_txq_commit_strong(txq)) == DOCA_SUCCESS);
    STEP(6, doca_gpu_dev_eth_txq_push(txq) == DOCA_SUCCESS);
}

/* One entry more than the ring has, of which none is committed. One lane. */
WEFTIO_KERNEL void doca_fill_ring(struct doca_gpu_eth_txq* txq, struct doca_gpu_buf_arr* frames, weftio_u32 depth,
                                  struct doca_report* report)
{
    for (weftio_u32 entry = 0; entry <= depth; ++entry)
        STEP(1 + entry, doca_gpu_dev_eth_txq_send_enqueue_strong(txq, element(frames, 0), FRAME_BYTES, 0) ==
                            (entry < depth ? DOCA_SUCCESS : DOCA_ERROR_FULL));
}

/* Notes what packet `index` says, as number `place`. */
WEFTIO_FN void note_packet(struct doca_gpu_eth_rxq* rxq, weftio_u64 index, weftio_u32 place, struct doca_report* report)
{
    struct doca_gpu_buf* buf = 0;
    struct weftio_dev_packet packet = {0, 0, 0, 0, 0, 0};
    uintptr_t address = 0;

    STEP(11, doca_gpu_dev_eth_rxq_get_buf(rxq, index, &buf) == DOCA_SUCCESS);
    STEP(12, doca_gpu_dev_buf_get_addr(buf, &address) == DOCA_SUCCESS);
    if (weftio_doca_eth_rxq_packet(rxq, index, &packet) != DOCA_SUCCESS) {
        report->wrong = 13;
        return;
    }
    STEP(14, packet.address == (weftio_u8*)address && packet.bytes == FRAME_BYTES);
    for (weftio_u32 byte = 0; byte < 40; ++byte)
        STEP(15, packet.address[packet.bytes + byte] == 0);
    if (place < 1024)
        report->numbers[place] = number_of(packet.address);
    if (place < 8)
        report->arrival_ns[place] = packet.timestamp_ns;
}

/* Receives `wanted` packets: with the threads' function (`scope` 0, one lane), the warps' (1, one warp) or the blocks'
   (2). */
WEFTIO_KERNEL void doca_receive(struct doca_gpu_eth_rxq* rxq, weftio_u32 wanted, weftio_u32 scope,
                                struct doca_report* report)
{
    weftio_u32 received = 0, count = 0;
    weftio_u64 first = 0;

    while (received < wanted) {
        const doca_error_t status =
            scope == 0   ? doca_gpu_dev_eth_rxq_receive_thread(rxq, wanted - received, 1000000, &count, &first)
            : scope == 1 ? doca_gpu_dev_eth_rxq_receive_warp(rxq, wanted - received, 1000000, &count, &first)
                         : doca_gpu_dev_eth_rxq_receive_block(rxq, wanted - received, 1000000, &count, &first);
        STEP(1, status == DOCA_SUCCESS || status == DOCA_ERROR_SHUTDOWN);
        if (status != DOCA_SUCCESS)
            break;
        for (weftio_u32 packet = weftio_lane(); packet < count; packet += weftio_block_lanes())
            note_packet(rxq, first + packet, received + packet, report);
        received += count;
    }
    STEP(2, doca_gpu_dev_eth_rxq_receive_thread(0, 1, 1, &count, &first) == DOCA_ERROR_INVALID_VALUE);
    STEP(3, doca_gpu_dev_eth_rxq_get_buf(0, 0, 0) == DOCA_ERROR_INVALID_VALUE);
    if (weftio_lane() == 0)
        report->received = received;
}

/* Waits without a bound. `received` is 1 once the call has ended with DOCA_ERROR_SHUTDOWN. */
WEFTIO_KERNEL void doca_wait_for_ever(struct doca_gpu_eth_rxq* rxq, struct doca_report* report)
{
    weftio_u32 count = 0;
    weftio_u64 first = 0;
    const doca_error_t status = doca_gpu_dev_eth_rxq_receive_block(rxq, 0, 0, &count, &first);

    if (weftio_lane() == 0)
        report->received = status == DOCA_ERROR_SHUTDOWN;
}

/* Hands `rounds` items to the CPU, each once it is free, and in both spellings. One lane. */
WEFTIO_KERNEL void doca_semaphore(struct doca_gpu_semaphore_gpu* semaphore, weftio_u32 rounds,
                                  struct doca_report* report)
{
    weftio_u32 count = 0;
    weftio_u64 first = 0;

    for (weftio_u32 index = 0; index < rounds; ++index) {
        enum doca_gpu_semaphore_status status = DOCA_GPU_SEMAPHORE_STATUS_ERROR;
        void* info = 0;
        for (weftio_u32 attempt = 0; status != DOCA_GPU_SEMAPHORE_STATUS_FREE; ++attempt) {
            STEP(1, (index % 2 ? doca_gpu_dev_semaphore_get_status(semaphore, index, &status)
                               : doca_gpu_dev_sem_get_status(semaphore, index, &status)) == DOCA_SUCCESS);
            weftio_relax(attempt);
        }
        STEP(2, (index % 2 ? doca_gpu_dev_semaphore_get_custom_info_addr(semaphore, index, &info)
                           : doca_gpu_dev_sem_get_custom_info_addr(semaphore, index, &info)) == DOCA_SUCCESS);
        *(weftio_u32*)info = index * 3;
        STEP(3, (index % 2
                     ? doca_gpu_dev_semaphore_set_status(semaphore, index, DOCA_GPU_SEMAPHORE_STATUS_READY)
                     : doca_gpu_dev_sem_set_status(semaphore, index, DOCA_GPU_SEMAPHORE_STATUS_READY)) == DOCA_SUCCESS);
    }
    STEP(4,
         doca_gpu_dev_semaphore_set_packet_info(semaphore, 0, DOCA_GPU_SEMAPHORE_STATUS_HOLD, 5, 700) == DOCA_SUCCESS);
    STEP(5, doca_gpu_dev_sem_get_packet_info_status(semaphore, 0, DOCA_GPU_SEMAPHORE_STATUS_READY, &count, &first) ==
                DOCA_ERROR_NOT_FOUND);
    STEP(6, doca_gpu_dev_semaphore_get_packet_info_status(semaphore, 0, DOCA_GPU_SEMAPHORE_STATUS_HOLD, &count,
                                                          &first) == DOCA_SUCCESS);
    STEP(7, count == 5 && first == 700);
    STEP(8, doca_gpu_dev_sem_set_packet_info(semaphore, 1, DOCA_GPU_SEMAPHORE_STATUS_DONE, 1, 1) == DOCA_SUCCESS);
    STEP(9, doca_gpu_dev_semaphore_set_status(0, 0, DOCA_GPU_SEMAPHORE_STATUS_FREE) == DOCA_ERROR_INVALID_VALUE);
}

/* Copies `count` elements without their first byte. */
WEFTIO_KERNEL void doca_copy(struct doca_gpu_dma* dma, struct doca_gpu_buf_arr* source, struct doca_gpu_buf_arr* target,
                             weftio_u32 count, struct doca_report* report)
{
    for (weftio_u32 index = weftio_lane(); index < count; index += weftio_block_lanes())
        STEP(1, doca_gpu_dev_dma_memcpy(dma, element(source, index), 1, element(target, index), 1,
                                        element(source, index)->bytes - 1) == DOCA_SUCCESS);
    weftio_block_barrier();
    if (weftio_lane())
        return;
    STEP(2, doca_gpu_dev_dma_commit(dma) == DOCA_SUCCESS);
    for (weftio_u32 index = 0; index < count; ++index) {
        const weftio_u64 last = element(source, index)->bytes - 1;
        STEP(3, *(volatile weftio_u8*)(uintptr_t)(element(target, index)->address + last) ==
                    *(volatile weftio_u8*)(uintptr_t)(element(source, index)->address + last));
    }
    STEP(4, doca_gpu_dev_dma_commit(dma) == DOCA_SUCCESS); /* of nothing */
    STEP(5, doca_gpu_dev_dma_memcpy(dma, element(source, 0), 1, element(target, 0), 0, element(source, 0)->bytes) ==
                DOCA_ERROR_INVALID_VALUE);
    STEP(6, doca_gpu_dev_dma_commit(0) == DOCA_ERROR_INVALID_VALUE);
}

/* One lane. Writes elements 0 and 1 with immediates, reads elements 4 and 5, sends 2 and 3: strongly, then weakly. */
WEFTIO_KERNEL void doca_rdma_client(struct doca_gpu_dev_rdma* rdma, struct doca_gpu_buf_arr* local,
                                    struct doca_gpu_buf_arr* remote, struct doca_report* report)
{
    weftio_u32 position = 0, mask = 0, commits = 0;

    STEP(1, doca_gpu_dev_rdma_write_strong(rdma, 0, element(remote, 0), 8, element(local, 0), 8, 100, 11,
                                           DOCA_GPU_RDMA_WRITE_FLAG_IMM) == DOCA_SUCCESS);
    STEP(2,
         doca_gpu_dev_rdma_read_strong(rdma, 0, element(remote, 4), 0, element(local, 4), 0, 100, 0) == DOCA_SUCCESS);
    STEP(3, doca_gpu_dev_rdma_send_strong(rdma, 0, element(local, 2), 0, 100, 13, DOCA_GPU_RDMA_SEND_FLAG_IMM) ==
                DOCA_SUCCESS);
    STEP(4, doca_gpu_dev_rdma_commit_strong(rdma, 0) == DOCA_SUCCESS);
    STEP(5, doca_gpu_dev_rdma_wait_all(rdma, &commits) == DOCA_SUCCESS && commits == 1);
    STEP(6, doca_gpu_dev_rdma_get_info(rdma, 0, &position, &mask) == DOCA_SUCCESS && position == 3 && mask == 63);
    STEP(7, doca_gpu_dev_rdma_write_weak(rdma, 0, element(remote, 1), 8, element(local, 1), 8, 100, 12,
                                         DOCA_GPU_RDMA_WRITE_FLAG_IMM, position) == DOCA_SUCCESS);
    STEP(8, doca_gpu_dev_rdma_read_weak(rdma, 0, element(remote, 5), 0, element(local, 5), 0, 100, 0, position + 1) ==
                DOCA_SUCCESS);
    STEP(9, doca_gpu_dev_rdma_send_weak(rdma, 0, element(local, 3), 0, 100, 0, DOCA_GPU_RDMA_SEND_FLAG_NONE,
                                        position + 2) == DOCA_SUCCESS);
    STEP(10, doca_gpu_dev_rdma_commit_weak(rdma, 0, 3) == DOCA_SUCCESS);
    STEP(11, doca_gpu_dev_rdma_wait_all(rdma, &commits) == DOCA_SUCCESS && commits == 1);
    STEP(12, doca_gpu_dev_rdma_write_strong(rdma, 1, element(remote, 0), 0, element(local, 0), 0, 1, 0,
                                            DOCA_GPU_RDMA_WRITE_FLAG_NONE) == DOCA_ERROR_INVALID_VALUE);
}

/* One lane. Four receives, of which those of messages have elements 8 and 9; strongly, then weakly. */
WEFTIO_KERNEL void doca_rdma_server(struct doca_gpu_dev_rdma* rdma, struct doca_gpu_buf_arr* local,
                                    struct doca_report* report)
{
    struct doca_gpu_dev_rdma_r* receives = 0;
    weftio_u32 position = 0, mask = 0, count = 0, all = 0;

    STEP(1, doca_gpu_dev_rdma_get_recv(rdma, &receives) == DOCA_SUCCESS);
    STEP(2, doca_gpu_dev_rdma_recv_strong(receives, 0, 0, 0, 0) == DOCA_SUCCESS);
    STEP(3, doca_gpu_dev_rdma_recv_strong(receives, element(local, 8), 200, 0, 0) == DOCA_SUCCESS);
    STEP(4, doca_gpu_dev_rdma_recv_commit_strong(receives) == DOCA_SUCCESS);
    STEP(5, doca_gpu_dev_rdma_recv_get_info(receives, &position, &mask) == DOCA_SUCCESS && position == 2);
    STEP(6, doca_gpu_dev_rdma_recv_weak(receives, 0, 0, 0, 0, position) == DOCA_SUCCESS);
    STEP(7, doca_gpu_dev_rdma_recv_weak(receives, element(local, 9), 200, 0, 0, position + 1) == DOCA_SUCCESS);
    STEP(8, doca_gpu_dev_rdma_recv_commit_weak(receives, 2) == DOCA_SUCCESS);
    STEP(9, doca_gpu_dev_rdma_recv_wait_all(receives, DOCA_GPU_RDMA_RECV_WAIT_FLAG_NB, &count, report->numbers) ==
                DOCA_SUCCESS);
    all = count;
    STEP(10, doca_gpu_dev_rdma_recv_wait_all(receives, DOCA_GPU_RDMA_RECV_WAIT_FLAG_B, &count, report->numbers + all) ==
                 DOCA_SUCCESS);
    report->received = all + count;
}
