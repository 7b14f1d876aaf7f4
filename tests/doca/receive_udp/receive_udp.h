/* Receives UDP packets into memory of the GPU; a kernel prints one line for each. */
#ifndef RECEIVE_UDP_H
#define RECEIVE_UDP_H

#include <cuda_runtime_api.h>
#include <doca_error.h>
#include <doca_eth_rxq.h>
#include <stdint.h>

#include "common.h"

#define MAX_PACKETS 16384
#define MAX_PACKET_SIZE 2048
#define THREADS 512
#define PACKETS_PER_CALL 512
#define RECEIVE_TIMEOUT_NS 1000000 /* 1 ms: how often the kernel looks at its exit flag */

struct program_settings {
    char gpu_pci_address[MAX_PCI_ADDRESS_LEN];
    char nic_pci_address[MAX_PCI_ADDRESS_LEN];
};

#ifdef __cplusplus
extern "C" {
#endif

/* Runs until SIGINT or SIGTERM. */
doca_error_t receive_udp(const struct program_settings* settings);

/* Starts the kernel. It ends when *exit_flag is not 0; *received is how many packets it has seen. */
doca_error_t launch_receive_udp(cudaStream_t stream, struct doca_gpu_eth_rxq* rxq, uint32_t* exit_flag,
                                uint32_t* received);

#ifdef __cplusplus
}
#endif

#endif
