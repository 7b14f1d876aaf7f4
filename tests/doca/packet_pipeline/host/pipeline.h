/* What the parts of the host share. */
#ifndef PIPELINE_H
#define PIPELINE_H

#include <doca_ctx.h>
#include <doca_eth_txq_gpu_data_path.h>
#include <doca_pe.h>
#include <rte_mempool.h>
#include <signal.h>

#include "../packet_pipeline.h"

#define DPDK_PORT 0

struct receive_queue {
    struct doca_eth_rxq* rxq;
    struct doca_ctx* context;
    struct doca_gpu_eth_rxq* gpu;
    struct gpu_memory packets;
    struct doca_gpu_semaphore* semaphore; /* none for ICMP */
    struct doca_gpu_semaphore_gpu* semaphore_gpu;
    uint32_t next_item; /* that the CPU reads */
    uint64_t known;
    uint64_t total;
};

struct send_queue {
    struct doca_eth_txq* txq;
    struct doca_ctx* context;
    struct doca_gpu_eth_txq* gpu;
    struct doca_pe* pe;
    uint64_t sent;
    uint64_t last_ns; /* when the last one left */
};

struct pipeline {
    struct program_settings settings;
    struct doca_gpu* gpu;
    struct doca_dev* device;
    bool is_dpdk_port_started;
    struct rte_mempool* pool;
    struct doca_flow_port* port;
    struct receive_queue udp[MAX_QUEUES];
    struct receive_queue tcp[MAX_QUEUES];
    struct receive_queue icmp;
    struct send_queue icmp_send;
    struct doca_flow_pipe* udp_pipe;
    struct doca_flow_pipe* tcp_pipe;
    struct doca_flow_pipe* cpu_pipe;
    struct doca_flow_pipe* icmp_pipe;
    struct doca_flow_pipe* root_pipe;
    uint32_t* exit_flag_gpu;
    uint32_t* exit_flag_cpu;
    uint64_t accepted; /* TCP connections */
};

extern volatile sig_atomic_t is_stopped;

/* dpdk_port.c */
doca_error_t start_dpdk(void);
doca_error_t start_dpdk_port(struct pipeline* all);
void stop_dpdk_port(struct pipeline* all);

/* queues.c */
doca_error_t make_queues(struct pipeline* all);
doca_error_t destroy_queues(struct pipeline* all);

/* flow.c */
doca_error_t start_flow(struct pipeline* all);
doca_error_t make_pipes(struct pipeline* all);
/* An entry for packets of one connection: addresses and ports as they are in packets. */
doca_error_t add_connection(struct pipeline* all, const struct doca_flow_match* connection,
                            struct doca_flow_pipe_entry** entry);
doca_error_t remove_connection(struct pipeline* all, struct doca_flow_pipe_entry* entry);

/* tcp_cpu.c, counters.c: functions of lcores; they end when is_stopped is set. */
int serve_tcp(void* all);
int print_counters(void* all);

#endif
