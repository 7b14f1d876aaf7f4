// A program's own CUDA code beside Weftio, as docs/gpu.md shows it: its kernel, its stream, its memory.
#include "user_code.hpp"

#include <cuda_runtime.h>

#include "weftio/device/eth_rxq.h"

// Receives until the host wants an end, and adds up bytes. One block.
__global__ void count_bytes(weftio_dev_eth_rxq* rxq, unsigned long long* bytes)
{
    weftio_u32 count, first;
    weftio_dev_packet packet;
    weftio_s32 status;

    do {
        status = weftio_dev_eth_rxq_receive_block(rxq, 0, 100000, &count, &first);
        for (weftio_u32 i = threadIdx.x; i < count; i += blockDim.x)
            if (weftio_dev_eth_rxq_packet(rxq, first + i, &packet) == WEFTIO_DEV_OK)
                atomicAdd(bytes, packet.bytes);
        __syncthreads();
        if (threadIdx.x == 0)
            weftio_dev_eth_rxq_release(rxq, first, count);
    } while (status == WEFTIO_DEV_OK);
}

struct user_code {
    cudaStream_t stream;
    unsigned long long *on_gpu, *on_host;
};

user_code* user_code_begin(weftio_dev_eth_rxq* rxq)
{
    auto* mine = new user_code{};
    if (cudaStreamCreateWithFlags(&mine->stream, cudaStreamNonBlocking) != cudaSuccess ||
        cudaMalloc(&mine->on_gpu, 8) != cudaSuccess || cudaMallocHost(&mine->on_host, 8) != cudaSuccess)
        return nullptr;
    cudaMemsetAsync(mine->on_gpu, 0, 8, mine->stream);
    count_bytes<<<1, 128, 0, mine->stream>>>(rxq, mine->on_gpu);
    cudaMemcpyAsync(mine->on_host, mine->on_gpu, 8, cudaMemcpyDeviceToHost, mine->stream); // when the kernel has ended
    return cudaPeekAtLastError() == cudaSuccess ? mine : nullptr;
}

unsigned long long user_code_end(user_code* mine)
{
    unsigned long long bytes = cudaStreamSynchronize(mine->stream) == cudaSuccess ? *mine->on_host : 0;
    cudaFree(mine->on_gpu);
    cudaFreeHost(mine->on_host);
    cudaStreamDestroy(mine->stream);
    delete mine;
    return bytes;
}
