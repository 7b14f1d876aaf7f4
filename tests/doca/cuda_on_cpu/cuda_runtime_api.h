/* As much of CUDA's runtime as the programs use, where there is no GPU: kernels run on the
 * CPU, a thread for each block (cuda_on_cpu.cpp), or CUDA's calls fail (run_doca.sh). */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st* cudaStream_t;
typedef enum { cudaSuccess = 0, cudaErrorInvalidDevice = 101 } cudaError_t;
enum cudaMemcpyKind { cudaMemcpyDefault = 4 };
enum { cudaStreamNonBlocking = 1 };

cudaError_t cudaDeviceGetByPCIBusId(int*, const char*);
cudaError_t cudaSetDevice(int);
cudaError_t cudaGetLastError(void);
cudaError_t cudaFree(void*);
cudaError_t cudaMemcpy(void*, const void*, size_t, enum cudaMemcpyKind);
cudaError_t cudaMemset(void*, int, size_t);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t*, unsigned);
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaStreamDestroy(cudaStream_t);
const char* cudaGetErrorString(cudaError_t);

#ifdef __cplusplus
}
#endif
