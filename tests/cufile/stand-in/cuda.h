/* Replaces CUDA's header for programs that copy by CUDA. Device memory is host memory here. */
#ifndef WEFTIO_STAND_IN_CUDA_H
#define WEFTIO_STAND_IN_CUDA_H

typedef enum cudaError_enum { CUDA_SUCCESS = 0 } CUresult;
typedef struct CUstream_st* CUstream;

#endif
