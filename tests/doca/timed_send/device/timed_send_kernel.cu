#include <doca_gpunetio_dev_buf.cuh>
#include <doca_gpunetio_dev_eth_txq.cuh>
#include <doca_log.h>
#include <stdio.h>

#include "timed_send.h"

DOCA_LOG_REGISTER(TIMED_SEND::KERNEL);

/* One warp: a wait, then a frame of each thread, for each burst. */
static __global__ void timed_send_kernel(struct doca_gpu_eth_txq* txq, struct doca_gpu_buf_arr* frames,
                                         const uint64_t* times)
{
    struct doca_gpu_buf* frame;
    doca_error_t result;

    for (uint32_t burst = 0; burst < BURSTS; ++burst) {
        if (threadIdx.x == 0) {
            result = doca_gpu_dev_eth_txq_wait_time_enqueue_strong(txq, times[burst], 0);
            if (result != DOCA_SUCCESS)
                printf("wait of burst %u: error %d\n", burst, (int)result);
        }
        __syncthreads();
        result = doca_gpu_dev_buf_get_buf(frames, burst * FRAMES_PER_BURST + threadIdx.x, &frame);
        if (result == DOCA_SUCCESS)
            result = doca_gpu_dev_eth_txq_send_enqueue_strong(txq, frame, FRAME_SIZE, DOCA_GPU_SEND_FLAG_NONE);
        if (result != DOCA_SUCCESS)
            printf("frame %u of burst %u: error %d\n", threadIdx.x, burst, (int)result);
        __syncthreads();
        if (threadIdx.x == 0) {
            doca_gpu_dev_eth_txq_commit_strong(txq);
            doca_gpu_dev_eth_txq_push(txq);
        }
        __syncthreads();
    }
}

extern "C" doca_error_t launch_timed_send(cudaStream_t stream, struct doca_gpu_eth_txq* txq,
                                          struct doca_gpu_buf_arr* frames, const uint64_t* times)
{
    cudaError_t error = cudaGetLastError();

    if (error == cudaSuccess) {
        timed_send_kernel<<<1, FRAMES_PER_BURST, 0, stream>>>(txq, frames, times);
        error = cudaGetLastError();
    }
    if (error != cudaSuccess) {
        DOCA_LOG_ERR("The kernel does not start: %s", cudaGetErrorString(error));
        return DOCA_ERROR_DRIVER;
    }
    return DOCA_SUCCESS;
}
