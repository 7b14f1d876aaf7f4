#include <doca_gpunetio_dev_buf.cuh>
#include <doca_gpunetio_dev_eth_rxq.cuh>
#include <doca_log.h>
#include <stdio.h>

#include "receive_udp.h"

DOCA_LOG_REGISTER(RECEIVE_UDP::KERNEL);

static __device__ uint32_t big_endian16(const uint8_t* at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

/* Ethernet, IPv4, UDP: what comes here is no other, as the pipe matches nothing else. */
static __device__ void print_packet(const uint8_t* packet)
{
    const uint8_t* ip = packet + 14;
    const uint8_t* udp = ip + (ip[0] & 15) * 4;

    printf("thread %u: UDP from %u.%u.%u.%u port %u to %u.%u.%u.%u port %u, %u bytes\n", threadIdx.x, ip[12], ip[13],
           ip[14], ip[15], big_endian16(udp), ip[16], ip[17], ip[18], ip[19], big_endian16(udp + 2),
           big_endian16(udp + 4) - 8);
}

static __global__ void receive_udp_kernel(struct doca_gpu_eth_rxq* rxq, uint32_t* exit_flag, uint32_t* received)
{
    __shared__ uint32_t count;
    __shared__ uint64_t first;
    struct doca_gpu_buf* buffer;
    uintptr_t address;
    doca_error_t result;

    /* No barrier between two calls: receive has one at its beginning and one at its end. */
    while (DOCA_GPUNETIO_VOLATILE(*exit_flag) == 0) {
        result = doca_gpu_dev_eth_rxq_receive_block(rxq, PACKETS_PER_CALL, RECEIVE_TIMEOUT_NS, &count, &first);
        if (result != DOCA_SUCCESS) {
            if (threadIdx.x == 0)
                printf("receive: error %d\n", (int)result);
            break;
        }
        if (count == 0)
            continue;
        for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
            if (doca_gpu_dev_eth_rxq_get_buf(rxq, first + i, &buffer) != DOCA_SUCCESS ||
                doca_gpu_dev_buf_get_addr(buffer, &address) != DOCA_SUCCESS) {
                printf("packet %llu has no address\n", (unsigned long long)(first + i));
                continue;
            }
            print_packet((const uint8_t*)address);
        }
        if (threadIdx.x == 0)
            DOCA_GPUNETIO_VOLATILE(*received) = DOCA_GPUNETIO_VOLATILE(*received) + count;
    }
}

extern "C" doca_error_t launch_receive_udp(cudaStream_t stream, struct doca_gpu_eth_rxq* rxq, uint32_t* exit_flag,
                                           uint32_t* received)
{
    cudaError_t error = cudaGetLastError();

    if (error == cudaSuccess) {
        receive_udp_kernel<<<1, THREADS, 0, stream>>>(rxq, exit_flag, received);
        error = cudaGetLastError();
    }
    if (error != cudaSuccess) {
        DOCA_LOG_ERR("The kernel does not start: %s", cudaGetErrorString(error));
        return DOCA_ERROR_DRIVER;
    }
    return DOCA_SUCCESS;
}
