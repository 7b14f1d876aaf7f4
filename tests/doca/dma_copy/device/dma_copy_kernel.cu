#include <doca_gpunetio_dev_buf.cuh>
#include <doca_gpunetio_dev_dma.cuh>
#include <doca_log.h>
#include <stdio.h>

#include "../dma_copy.h"

DOCA_LOG_REGISTER(DMA_COPY::KERNEL);

static __device__ doca_error_t copy(struct doca_gpu_dma* dma, struct doca_gpu_buf_arr* from_array,
                                    struct doca_gpu_buf_arr* to_array)
{
    const char text[] = TEXT_OF_GPU;
    struct doca_gpu_buf *from, *to;
    uintptr_t address;
    doca_error_t result = doca_gpu_dev_buf_get_buf(from_array, 0, &from);

    if (result == DOCA_SUCCESS)
        result = doca_gpu_dev_buf_get_buf(to_array, 0, &to);
    if (result == DOCA_SUCCESS)
        result = doca_gpu_dev_buf_get_addr(from, &address);
    if (result != DOCA_SUCCESS)
        return result;
    for (unsigned i = 0; i < sizeof text; ++i)
        ((char*)address)[i] = text[i];
    result = doca_gpu_dev_dma_memcpy(dma, from, 0, to, 0, TEXT_SIZE);
    if (result == DOCA_SUCCESS)
        result = doca_gpu_dev_dma_commit(dma);
    return result;
}

static __global__ void dma_copy_kernel(struct doca_gpu_dma* dma, const char* received, struct doca_gpu_buf_arr* from,
                                       struct doca_gpu_buf_arr* to)
{
    doca_error_t result;

    printf("The GPU has received: %s\n", received);
    result = copy(dma, from, to);
    if (result != DOCA_SUCCESS)
        printf("copy: error %d\n", (int)result);
}

extern "C" doca_error_t launch_dma_copy(cudaStream_t stream, struct doca_gpu_dma* dma, const char* received,
                                        struct doca_gpu_buf_arr* from, struct doca_gpu_buf_arr* to)
{
    cudaError_t error;

    dma_copy_kernel<<<1, 1, 0, stream>>>(dma, received, from, to);
    error = cudaGetLastError();
    if (error != cudaSuccess) {
        DOCA_LOG_ERR("The kernel does not start: %s", cudaGetErrorString(error));
        return DOCA_ERROR_DRIVER;
    }
    return DOCA_SUCCESS;
}
