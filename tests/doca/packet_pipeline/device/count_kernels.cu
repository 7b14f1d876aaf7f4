#include <doca_gpunetio_dev_buf.cuh>
#include <doca_gpunetio_dev_eth_rxq.cuh>
#include <doca_gpunetio_dev_sem.cuh>
#include <doca_log.h>
#include <stdio.h>

#include "../packet_pipeline.h"

DOCA_LOG_REGISTER(PACKET_PIPELINE::COUNT_KERNELS);

#define DNS_PORT 53

static __device__ uint32_t port_at(const uint8_t* at)
{
    return (uint32_t)at[0] << 8 | at[1];
}

/* Behind the IPv4 header: pipes let no other packets come here. */
static __device__ const uint8_t* behind_ip(const uint8_t* packet)
{
    return packet + 14 + (packet[14] & 15) * 4;
}

static __device__ bool is_dns(const uint8_t* packet)
{
    const uint8_t* udp = behind_ip(packet);

    return port_at(udp) == DNS_PORT || port_at(udp + 2) == DNS_PORT;
}

/* 2.10 does not tell how long a packet is: behind its end there are zeros. */
static __device__ bool is_http(const uint8_t* packet)
{
    const uint8_t* tcp = behind_ip(packet);
    const uint8_t* data = tcp + (tcp[12] >> 4) * 4;
    const bool is_get = data[0] == 'G' && data[1] == 'E' && data[2] == 'T' && data[3] == ' ';

    return is_get || (data[0] == 'P' && data[1] == 'O' && data[2] == 'S' && data[3] == 'T' && data[4] == ' ');
}

/* One thread. Returns whether the item was free, and now tells the CPU of the packets. */
static __device__ bool report(struct doca_gpu_semaphore_gpu* semaphore, uint32_t item, uint32_t known, uint32_t total)
{
    enum doca_gpu_semaphore_status status;
    struct packet_counts* counts;

    if (doca_gpu_dev_semaphore_get_status(semaphore, item, &status) != DOCA_SUCCESS ||
        status != DOCA_GPU_SEMAPHORE_STATUS_FREE ||
        doca_gpu_dev_semaphore_get_custom_info_addr(semaphore, item, (void**)&counts) != DOCA_SUCCESS)
        return false;
    DOCA_GPUNETIO_VOLATILE(counts->known) = known;
    DOCA_GPUNETIO_VOLATILE(counts->total) = total;
    return doca_gpu_dev_semaphore_set_status(semaphore, item, DOCA_GPU_SEMAPHORE_STATUS_READY) == DOCA_SUCCESS;
}

template <bool (*is_known)(const uint8_t*)>
static __device__ uint32_t known_of_thread(struct doca_gpu_eth_rxq* rxq, uint64_t first, uint32_t count)
{
    struct doca_gpu_buf* buffer;
    uintptr_t address;
    uint32_t known = 0;

    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
        if (doca_gpu_dev_eth_rxq_get_buf(rxq, first + i, &buffer) == DOCA_SUCCESS &&
            doca_gpu_dev_buf_get_addr(buffer, &address) == DOCA_SUCCESS)
            known += is_known((const uint8_t*)address);
    }
    return known;
}

/* What could not be reported, because the CPU has not read so many items, is reported with the next packets. */
template <bool (*is_known)(const uint8_t*)>
static __device__ void count_packets(uint32_t* exit_flag, struct doca_gpu_eth_rxq* rxq,
                                     struct doca_gpu_semaphore_gpu* semaphore, uint32_t max_packets)
{
    __shared__ uint32_t count, known;
    __shared__ uint64_t first;
    uint32_t item = 0, total = 0; /* of thread 0 */
    doca_error_t result;

    if (threadIdx.x == 0)
        known = 0;
    while (DOCA_GPUNETIO_VOLATILE(*exit_flag) == 0) {
        result = doca_gpu_dev_eth_rxq_receive_block(rxq, max_packets, RECEIVE_TIMEOUT_NS, &count, &first);
        if (result != DOCA_SUCCESS) {
            if (threadIdx.x == 0)
                printf("receive: error %d\n", (int)result);
            break;
        }
        atomicAdd(&known, known_of_thread<is_known>(rxq, first, count));
        __syncthreads();
        if (threadIdx.x == 0) {
            total += count;
            if (total && report(semaphore, item, known, total)) {
                item = (item + 1) % SEMAPHORE_ITEMS;
                known = total = 0;
            }
        }
        __syncthreads();
    }
}

static __global__ void udp_kernel(uint32_t* exit_flag, struct kernel_queues all)
{
    count_packets<is_dns>(exit_flag, all.rxq[blockIdx.x], all.semaphore[blockIdx.x], 0);
}

static __global__ void tcp_kernel(uint32_t* exit_flag, struct kernel_queues all)
{
    count_packets<is_http>(exit_flag, all.rxq[blockIdx.x], all.semaphore[blockIdx.x], TCP_PACKETS_PER_CALL);
}

static doca_error_t started(const char* name)
{
    const cudaError_t error = cudaGetLastError();

    if (error == cudaSuccess)
        return DOCA_SUCCESS;
    DOCA_LOG_ERR("Kernel %s does not start: %s", name, cudaGetErrorString(error));
    return DOCA_ERROR_DRIVER;
}

extern "C" doca_error_t launch_udp(cudaStream_t stream, uint32_t* exit_flag, uint32_t queues,
                                   const struct kernel_queues* all)
{
    udp_kernel<<<queues, THREADS, 0, stream>>>(exit_flag, *all);
    return started("udp");
}

extern "C" doca_error_t launch_tcp(cudaStream_t stream, uint32_t* exit_flag, uint32_t queues,
                                   const struct kernel_queues* all)
{
    tcp_kernel<<<queues, THREADS, 0, stream>>>(exit_flag, *all);
    return started("tcp");
}
