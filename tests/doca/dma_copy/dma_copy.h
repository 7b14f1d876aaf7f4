/* Copies a text from the CPU to the GPU by a task, and another from the GPU to the CPU by a kernel. */
#ifndef DMA_COPY_H
#define DMA_COPY_H

#include <cuda_runtime_api.h>
#include <doca_dma.h>
#include <doca_error.h>

#include "common.h"

#define TEXT_SIZE 64
#define TEXT_OF_CPU "This is a text of the CPU"
#define TEXT_OF_GPU "This is a text of the GPU"

struct program_settings {
    char gpu_pci_address[MAX_PCI_ADDRESS_LEN];
    char nic_pci_address[MAX_PCI_ADDRESS_LEN];
};

struct doca_gpu_buf_arr;

#ifdef __cplusplus
extern "C" {
#endif

doca_error_t dma_copy(const struct program_settings* settings);

/* Starts a kernel of one thread: prints the text at received, then copies its own from one buffer to the other. */
doca_error_t launch_dma_copy(cudaStream_t stream, struct doca_gpu_dma* dma, const char* received,
                             struct doca_gpu_buf_arr* from, struct doca_gpu_buf_arr* to);

#ifdef __cplusplus
}
#endif

#endif
