#include "cuda_on_cpu.hpp"

#include <cstring>
#include <thread>
#include <utility>
#include <vector>

struct CUstream_st {
    std::vector<std::thread> blocks{};
};

void run_in_stream(cudaStream_t stream, std::function<void()> function)
{
    stream->blocks.emplace_back(std::move(function));
}

cudaError_t cudaDeviceGetByPCIBusId(int* number, const char*)
{
    *number = 0;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int)
{
    return cudaSuccess;
}
cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}
cudaError_t cudaFree(void*)
{
    return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind)
{
    std::memcpy(to, from, bytes);
    return cudaSuccess;
}
cudaError_t cudaMemset(void* to, int value, size_t bytes)
{
    std::memset(to, value, bytes);
    return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned)
{
    *stream = new CUstream_st;
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    for (auto& block : stream->blocks)
        block.join();
    stream->blocks.clear();
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    cudaStreamSynchronize(stream);
    delete stream;
    return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t)
{
    return "no error";
}
