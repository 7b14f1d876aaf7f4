// Device code that was not written for Weftio: no header of Weftio's is included here.
#include <cuda_runtime.h>

#include "foreign_code.hpp"
#include "unit/rdma/foreign_crowd.h"

__global__ void play(foreign_game* game)
{
    foreign_play(game);
}

bool foreign_code_plays(foreign_game* game)
{
    play<<<1, 1>>>(game);
    return cudaDeviceSynchronize() == cudaSuccess;
}

/* Block 0 polls and checks; each lane of the others posts. */
__global__ void play_as_crowd(foreign_game* game, foreign_crowd* crowd, unsigned manner)
{
    if (blockIdx.x != 0)
        foreign_crowd_post(game, crowd, manner);
    else if (threadIdx.x == 0)
        foreign_crowd_check(game, crowd);
}

bool foreign_crowd_plays(foreign_game* game, foreign_blocks posters, unsigned manner)
{
    foreign_crowd* crowd = nullptr;
    bool works = cudaMalloc(&crowd, sizeof *crowd) == cudaSuccess &&
                 cudaMemset(crowd, 0, sizeof *crowd) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess;

    if (works) {
        play_as_crowd<<<posters.count + 1, posters.lanes>>>(game, crowd, manner);
        works = cudaDeviceSynchronize() == cudaSuccess;
    }
    cudaFree(crowd);
    return works;
}
