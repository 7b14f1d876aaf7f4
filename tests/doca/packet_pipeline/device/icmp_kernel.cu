#include <doca_gpunetio_dev_buf.cuh>
#include <doca_gpunetio_dev_eth_rxq.cuh>
#include <doca_gpunetio_dev_eth_txq.cuh>
#include <doca_log.h>
#include <stdio.h>

#include "../packet_pipeline.h"

DOCA_LOG_REGISTER(PACKET_PIPELINE::ICMP_KERNEL);

#define ETHERNET_SIZE 14
#define IP_SIZE 20
#define ECHO_REQUEST 8
#define ECHO_REPLY 0
#define BYTES_BEHIND 40

static __device__ void exchange(uint8_t* one, uint8_t* other, int bytes)
{
    for (int i = 0; i < bytes; ++i) {
        const uint8_t byte = one[i];
        one[i] = other[i];
        other[i] = byte;
    }
}

/* RFC 1071, over 40 bytes too many, as programs do that people have: there are zeros behind a packet. */
static __device__ void set_icmp_checksum(uint8_t* icmp, uint32_t frame_bytes)
{
    const uint32_t bytes = frame_bytes - ETHERNET_SIZE + IP_SIZE;
    uint32_t sum = 0;

    icmp[2] = icmp[3] = 0;
    for (uint32_t i = 0; i < bytes; i += 2)
        sum += (uint32_t)icmp[i] << 8 | icmp[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16));
    icmp[2] = (uint8_t)(sum >> 8);
    icmp[3] = (uint8_t)sum;
}

/* Makes a request the reply, where it lies. Returns the bytes of the frame; 0: the packet is no such request. */
static __device__ uint32_t make_reply(uint8_t* frame)
{
    uint8_t* ip = frame + ETHERNET_SIZE;
    uint8_t* icmp = ip + IP_SIZE;
    const uint32_t bytes = ETHERNET_SIZE + ((uint32_t)ip[2] << 8 | ip[3]);

    if (ip[0] != 0x45 || icmp[0] != ECHO_REQUEST || bytes > ICMP_MAX_PACKET_SIZE - BYTES_BEHIND)
        return 0;
    exchange(frame, frame + 6, 6);
    exchange(ip + 12, ip + 16, 4);
    ip[10] = ip[11] = 0; /* the queue computes it */
    icmp[0] = ECHO_REPLY;
    set_icmp_checksum(icmp, bytes);
    return bytes;
}

static __device__ void answer(struct doca_gpu_eth_rxq* rxq, struct doca_gpu_eth_txq* txq, uint64_t index)
{
    struct doca_gpu_buf* buffer;
    uintptr_t address;
    uint32_t bytes;
    doca_error_t result = doca_gpu_dev_eth_rxq_get_buf(rxq, index, &buffer);

    if (result == DOCA_SUCCESS)
        result = doca_gpu_dev_buf_get_addr(buffer, &address);
    if (result == DOCA_SUCCESS && (bytes = make_reply((uint8_t*)address)) != 0)
        result = doca_gpu_dev_eth_txq_send_enqueue_strong(txq, buffer, bytes, DOCA_GPU_SEND_FLAG_NOTIFY);
    if (result != DOCA_SUCCESS)
        printf("echo: error %d\n", (int)result);
}

/* One warp. Commits, and rings, also when it has enqueued nothing. */
static __global__ void icmp_kernel(uint32_t* exit_flag, struct doca_gpu_eth_rxq* rxq, struct doca_gpu_eth_txq* txq)
{
    __shared__ uint32_t count;
    __shared__ uint64_t first;
    doca_error_t result;

    while (DOCA_GPUNETIO_VOLATILE(*exit_flag) == 0) {
        result = doca_gpu_dev_eth_rxq_receive_warp(rxq, WARP_THREADS, RECEIVE_TIMEOUT_NS, &count, &first);
        if (result != DOCA_SUCCESS) {
            if (threadIdx.x == 0)
                printf("receive: error %d\n", (int)result);
            break;
        }
        for (uint32_t i = threadIdx.x; i < count; i += blockDim.x)
            answer(rxq, txq, first + i);
        __syncwarp();
        if (threadIdx.x == 0) {
            doca_gpu_dev_eth_txq_commit_strong(txq);
            doca_gpu_dev_eth_txq_push(txq);
        }
        __syncwarp();
    }
}

extern "C" doca_error_t launch_icmp(cudaStream_t stream, uint32_t* exit_flag, struct doca_gpu_eth_rxq* rxq,
                                    struct doca_gpu_eth_txq* txq)
{
    cudaError_t error;

    icmp_kernel<<<1, WARP_THREADS, 0, stream>>>(exit_flag, rxq, txq);
    error = cudaGetLastError();
    if (error != cudaSuccess) {
        DOCA_LOG_ERR("Kernel icmp does not start: %s", cudaGetErrorString(error));
        return DOCA_ERROR_DRIVER;
    }
    return DOCA_SUCCESS;
}
