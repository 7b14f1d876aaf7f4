/* Replaces the few calls of CUDA's runtime that fio's engine makes. Memory of device 0 is host memory. */
#ifndef WEFTIO_STAND_IN_CUDA_RUNTIME_H
#define WEFTIO_STAND_IN_CUDA_RUNTIME_H

#include <stdlib.h>
#include <string.h>

typedef enum cudaError { cudaSuccess = 0, cudaErrorMemoryAllocation = 2, cudaErrorInvalidDevice = 101 } cudaError_t;
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };

static inline const char* cudaGetErrorName(cudaError_t error)
{
    return error == cudaSuccess ? "cudaSuccess" : "an error of the stand-in";
}

static inline cudaError_t cudaSetDevice(int device)
{
    return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

/* Aligned to a page, as CUDA's memory is. */
static inline cudaError_t cudaMalloc(void** memory, size_t bytes)
{
    return posix_memalign(memory, 4096, bytes) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}

static inline cudaError_t cudaFree(void* memory)
{
    free(memory);
    return cudaSuccess;
}

static inline cudaError_t cudaMemset(void* memory, int value, size_t bytes)
{
    memset(memory, value, bytes);
    return cudaSuccess;
}

static inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind)
{
    (void)kind;
    memcpy(to, from, bytes);
    return cudaSuccess;
}

#endif
