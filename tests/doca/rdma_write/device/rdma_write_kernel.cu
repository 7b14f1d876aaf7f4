#include <doca_gpunetio_dev_buf.cuh>
#include <doca_gpunetio_dev_rdma.cuh>
#include <doca_log.h>
#include <stdio.h>

#include "../rdma_write.h"

DOCA_LOG_REGISTER(RDMA_WRITE::KERNEL);

static __device__ doca_error_t find(struct doca_gpu_buf_arr* array, uint32_t index, struct doca_gpu_buf** buffer,
                                    uint8_t** bytes)
{
    uintptr_t address = 0;
    doca_error_t result = doca_gpu_dev_buf_get_buf(array, index, buffer);

    if (result == DOCA_SUCCESS)
        result = doca_gpu_dev_buf_get_addr(*buffer, &address);
    *bytes = (uint8_t*)address;
    return result;
}

/* Keeps an error for the CPU. */
static __device__ void report_error(struct kernel_report* report, const char* what, doca_error_t result)
{
    if (result == DOCA_SUCCESS)
        return;
    printf("%s: error %d\n", what, (int)result);
    DOCA_GPUNETIO_VOLATILE(report->error) = (uint32_t)result;
}

/* Fills B or C of the client, and writes it into the server's. */
static __device__ doca_error_t write_buffer(const struct kernel_arguments& with, uint32_t which)
{
    struct doca_gpu_buf *local, *remote;
    uint8_t* bytes;
    doca_error_t result = find(with.local[which], with.connection, &local, &bytes);

    if (result == DOCA_SUCCESS)
        result = doca_gpu_dev_buf_get_buf(with.remote[which], with.connection, &remote);
    if (result != DOCA_SUCCESS)
        return result;
    for (uint32_t i = 0; i < WRITTEN_BYTES; ++i)
        bytes[i] = BYTE_OF(which, with.connection, i);
    return doca_gpu_dev_rdma_write_strong(with.rdma, with.connection, remote, 0, local, 0, WRITTEN_BYTES,
                                          IMMEDIATE_OF(which, with.connection), DOCA_GPU_RDMA_WRITE_FLAG_IMM);
}

static __device__ doca_error_t send_text(const struct kernel_arguments& with)
{
    const char text[] = TEXT_OF_CLIENT;
    struct doca_gpu_buf* local;
    uint8_t* bytes;
    doca_error_t result = find(with.a, with.connection, &local, &bytes);

    if (result != DOCA_SUCCESS)
        return result;
    for (uint32_t i = 0; i < sizeof text; ++i)
        bytes[i] = (uint8_t)text[i];
    bytes[sizeof text - 1] = (uint8_t)('0' + with.connection);
    bytes[sizeof text] = 0;
    return doca_gpu_dev_rdma_send_strong(with.rdma, with.connection, local, 0, TEXT_SIZE, 0,
                                         DOCA_GPU_RDMA_SEND_FLAG_NONE);
}

static __global__ void client_kernel(struct kernel_arguments with)
{
    struct kernel_report* report = with.report;
    uint32_t commits = 0;

    if (threadIdx.x == 0)
        while (DOCA_GPUNETIO_VOLATILE(report->may_write) == 0)
            continue;
    __syncthreads();
    for (uint32_t which = threadIdx.x; which < 2; which += blockDim.x)
        report_error(report, "write", write_buffer(with, which));
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    report_error(report, "send", send_text(with));
    report_error(report, "commit", doca_gpu_dev_rdma_commit_strong(with.rdma, with.connection));
    report_error(report, "wait", doca_gpu_dev_rdma_wait_all(with.rdma, &commits));
    printf("Connection %u: %u commits are done\n", with.connection, commits);
    DOCA_GPUNETIO_VOLATILE(report->count) = commits;
    DOCA_GPUNETIO_VOLATILE(report->has_ended) = 1;
}

/* WRITEs need no bytes of a receive; the message behind them gets A. */
static __device__ doca_error_t post_receives(struct doca_gpu_dev_rdma_r* receives, struct doca_gpu_buf* a)
{
    doca_error_t result = DOCA_SUCCESS;

    for (uint32_t i = 0; i < RECEIVES && result == DOCA_SUCCESS; ++i)
        result = i + 1 < RECEIVES ? doca_gpu_dev_rdma_recv_strong(receives, NULL, 0, 0, 0)
                                  : doca_gpu_dev_rdma_recv_strong(receives, a, TEXT_SIZE, 0, 0);
    return result == DOCA_SUCCESS ? doca_gpu_dev_rdma_recv_commit_strong(receives) : result;
}

static __device__ doca_error_t receive(const struct kernel_arguments& with)
{
    struct doca_gpu_dev_rdma_r* receives;
    struct doca_gpu_buf* a;
    uint8_t* text;
    uint32_t count = 0;
    uint32_t immediates[RECEIVES] = {0};
    doca_error_t result = find(with.a, with.connection, &a, &text);

    if (result == DOCA_SUCCESS)
        result = doca_gpu_dev_rdma_get_recv(with.rdma, &receives);
    if (result != DOCA_SUCCESS)
        return result;
    printf("Connection %u: A before: %s\n", with.connection, (const char*)text);
    result = post_receives(receives, a);
    if (result != DOCA_SUCCESS)
        return result;
    DOCA_GPUNETIO_VOLATILE(with.report->has_posted) = 1;
    result = doca_gpu_dev_rdma_recv_wait_all(receives, DOCA_GPU_RDMA_RECV_WAIT_FLAG_B, &count, immediates);
    for (uint32_t i = 0; i < RECEIVES; ++i)
        DOCA_GPUNETIO_VOLATILE(with.report->immediates[i]) = immediates[i];
    DOCA_GPUNETIO_VOLATILE(with.report->count) = count;
    printf("Connection %u: %u receives, immediates %u and %u\n", with.connection, count, immediates[0], immediates[1]);
    printf("Connection %u: A after: %s\n", with.connection, (const char*)text);
    return result;
}

static __global__ void server_kernel(struct kernel_arguments with)
{
    report_error(with.report, "receive", receive(with));
    DOCA_GPUNETIO_VOLATILE(with.report->has_ended) = 1;
}

static doca_error_t started(cudaError_t error)
{
    if (error == cudaSuccess)
        return DOCA_SUCCESS;
    DOCA_LOG_ERR("The kernel does not start: %s", cudaGetErrorString(error));
    return DOCA_ERROR_DRIVER;
}

extern "C" doca_error_t launch_client(cudaStream_t stream, struct kernel_arguments arguments)
{
    client_kernel<<<1, THREADS, 0, stream>>>(arguments);
    return started(cudaGetLastError());
}

extern "C" doca_error_t launch_server(cudaStream_t stream, struct kernel_arguments arguments)
{
    server_kernel<<<1, 1, 0, stream>>>(arguments);
    return started(cudaGetLastError());
}
