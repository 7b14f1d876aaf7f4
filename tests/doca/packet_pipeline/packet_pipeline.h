/* Kernels count UDP and TCP packets and answer pings; the CPU accepts TCP connections by DPDK. */
#ifndef PACKET_PIPELINE_H
#define PACKET_PIPELINE_H

#include <cuda_runtime_api.h>
#include <doca_error.h>
#include <doca_eth_rxq.h>
#include <doca_eth_txq.h>
#include <doca_gpunetio.h>
#include <stdbool.h>
#include <stdint.h>

#include "common.h"

#define MAX_QUEUES 4 /* of UDP, and as many of TCP */
#ifndef MAX_PACKETS
#define MAX_PACKETS 65536 /* 512 MiB a queue */
#endif
#define MAX_PACKET_SIZE 8192
#define ICMP_MAX_PACKETS 16384
#define ICMP_MAX_PACKET_SIZE 512
#define ICMP_SEND_ENTRIES 8192
#define THREADS 512
#define WARP_THREADS 32
#define TCP_PACKETS_PER_CALL 2048
#define RECEIVE_TIMEOUT_NS 500000 /* how often kernels report, and look at their exit flag */
#define SEMAPHORE_ITEMS 1024

struct program_settings {
    char gpu_pci_address[MAX_PCI_ADDRESS_LEN];
    char nic_pci_address[MAX_PCI_ADDRESS_LEN];
    uint32_t queues;
    bool is_server; /* TCP reaches the GPU from accepted connections only */
};

/* Custom info of a semaphore's item: packets since the item before. */
struct packet_counts {
    uint32_t known; /* of UDP: DNS; of TCP: requests of HTTP */
    uint32_t total;
};

/* What a kernel of UDP or TCP uses: of each queue; those that are not used are NULL. */
struct kernel_queues {
    struct doca_gpu_eth_rxq* rxq[MAX_QUEUES];
    struct doca_gpu_semaphore_gpu* semaphore[MAX_QUEUES];
};

#ifdef __cplusplus
extern "C" {
#endif

/* Runs until SIGINT or SIGTERM. */
doca_error_t packet_pipeline(const struct program_settings* settings);

/* Start kernels, which end when *exit_flag is not 0. Those of UDP and TCP have a block for each queue. */
doca_error_t launch_udp(cudaStream_t stream, uint32_t* exit_flag, uint32_t queues, const struct kernel_queues* all);
doca_error_t launch_tcp(cudaStream_t stream, uint32_t* exit_flag, uint32_t queues, const struct kernel_queues* all);
doca_error_t launch_icmp(cudaStream_t stream, uint32_t* exit_flag, struct doca_gpu_eth_rxq* rxq,
                         struct doca_gpu_eth_txq* txq);

#ifdef __cplusplus
}
#endif

#endif
