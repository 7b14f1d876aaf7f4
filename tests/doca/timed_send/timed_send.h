/* Sends bursts of frames from memory of the GPU, each at a time that the host has set before. */
#ifndef TIMED_SEND_H
#define TIMED_SEND_H

#include <cuda_runtime_api.h>
#include <doca_error.h>
#include <doca_eth_txq.h>
#include <doca_gpunetio.h>
#include <stdint.h>

#include "common.h"

#define BURSTS 8
#define FRAMES_PER_BURST 32
#define FRAMES (BURSTS * FRAMES_PER_BURST)
#define FRAME_SIZE 1024
#define QUEUE_ENTRIES 8192
#define FIRST_BURST_NS 50000000 /* after the times are computed */
#define UDP_PORT 4711

struct program_settings {
    char gpu_pci_address[MAX_PCI_ADDRESS_LEN];
    char nic_pci_address[MAX_PCI_ADDRESS_LEN];
    uint32_t interval_ns; /* from burst to burst */
};

struct doca_gpu_buf_arr;

#ifdef __cplusplus
extern "C" {
#endif

doca_error_t timed_send(const struct program_settings* settings);

/* Starts the kernel, which ends when it has handed all bursts to the queue: times[i] is when burst i is due. */
doca_error_t launch_timed_send(cudaStream_t stream, struct doca_gpu_eth_txq* txq, struct doca_gpu_buf_arr* frames,
                               const uint64_t* times);

#ifdef __cplusplus
}
#endif

#endif
