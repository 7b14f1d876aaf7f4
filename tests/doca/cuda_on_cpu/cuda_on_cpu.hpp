// A kernel's language as C++20: run_doca.sh replaces `kernel<<<blocks, threads, 0, stream>>>(` by
// `launch_on_cpu(kernel, blocks, stream, `. A block has one thread, so that barriers have nothing to do.
#pragma once

#include <cstdint>
#include <functional>

#include "cuda_runtime_api.h"

#define __global__
#define __device__
#define __shared__ static thread_local

struct index_on_cpu {
    unsigned x;
};
inline thread_local index_on_cpu threadIdx{0}, blockIdx{0};
inline constexpr index_on_cpu blockDim{1};

inline void __syncthreads() {}
inline void __syncwarp() {}
inline std::uint32_t atomicAdd(std::uint32_t* at, std::uint32_t value)
{
    const std::uint32_t before = *at;
    *at += value;
    return before;
}

/// Runs a function in a thread of the stream.
void run_in_stream(cudaStream_t stream, std::function<void()> function);

template <class... Parameters, class... Arguments>
void launch_on_cpu(void (*kernel)(Parameters...), unsigned blocks, cudaStream_t stream, Arguments... arguments)
{
    for (unsigned block = 0; block < blocks; ++block)
        run_in_stream(stream, [=] {
            blockIdx.x = block;
            kernel(arguments...);
        });
}
