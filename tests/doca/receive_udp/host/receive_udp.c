#include "receive_udp.h"

#include <arpa/inet.h>
#include <doca_ctx.h>
#include <doca_log.h>
#include <signal.h>
#include <unistd.h>

DOCA_LOG_REGISTER(RECEIVE_UDP::HOST);

struct receiver {
    struct doca_gpu* gpu;
    struct doca_dev* device;
    struct doca_flow_port* port;
    struct doca_eth_rxq* rxq;
    struct doca_ctx* rxq_context;
    struct doca_gpu_eth_rxq* rxq_gpu;
    struct gpu_memory packets;
    struct doca_flow_pipe* udp_pipe;
    struct doca_flow_pipe* root_pipe;
    struct doca_flow_pipe_entry* root_entry;
    uint32_t* exit_flag_gpu;
    uint32_t* exit_flag_cpu;
    uint32_t* received_gpu;
    uint32_t* received_cpu;
};

static volatile sig_atomic_t is_stopped;

static void stop(int signal)
{
    (void)signal;
    is_stopped = 1;
}

static doca_error_t make_queue(struct receiver* all)
{
    uint32_t size;
    doca_error_t result = doca_eth_rxq_create(all->device, MAX_PACKETS, MAX_PACKET_SIZE, &all->rxq);

    if (result == DOCA_SUCCESS)
        result = doca_eth_rxq_set_type(all->rxq, DOCA_ETH_RXQ_TYPE_CYCLIC);
    if (result == DOCA_SUCCESS)
        result = doca_eth_rxq_estimate_packet_buf_size(DOCA_ETH_RXQ_TYPE_CYCLIC, 0, 0, MAX_PACKET_SIZE, MAX_PACKETS, 0,
                                                       &size);
    if (result != DOCA_SUCCESS)
        return result;
    all->packets.size = size;
    result = doca_gpu_mem_alloc(all->gpu, size, GPU_PAGE_SIZE, DOCA_GPU_MEM_TYPE_GPU, &all->packets.gpu_address, NULL);
    if (result == DOCA_SUCCESS)
        result = map_gpu_memory(all->gpu, all->device, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, &all->packets);
    if (result == DOCA_SUCCESS)
        result = doca_eth_rxq_set_pkt_buf(all->rxq, all->packets.mmap, 0, size);
    if (result != DOCA_SUCCESS)
        return result;
    all->rxq_context = doca_eth_rxq_as_doca_ctx(all->rxq);
    if (all->rxq_context == NULL)
        return DOCA_ERROR_UNEXPECTED;
    result = doca_ctx_set_datapath_on_gpu(all->rxq_context, all->gpu);
    if (result == DOCA_SUCCESS)
        result = doca_ctx_start(all->rxq_context);
    if (result == DOCA_SUCCESS)
        result = doca_eth_rxq_get_gpu_handle(all->rxq, &all->rxq_gpu);
    return result;
}

/* A pipe of one entry: UDP over IPv4 goes to the queue, all else is dropped. */
static doca_error_t make_udp_pipe(struct receiver* all)
{
    struct doca_flow_match match = {0};
    struct doca_flow_fwd to_queue = {0}, drop = {.type = DOCA_FLOW_FWD_DROP};
    struct doca_flow_monitor count = {.counter_type = DOCA_FLOW_RESOURCE_TYPE_NON_SHARED};
    struct doca_flow_pipe_cfg* settings;
    struct doca_flow_pipe_entry* entry;
    uint16_t queue;
    doca_error_t result = doca_eth_rxq_get_flow_queue_id(all->rxq, &queue);

    if (result != DOCA_SUCCESS)
        return result;
    match.parser_meta.outer_l3_type = DOCA_FLOW_L3_META_IPV4;
    match.parser_meta.outer_l4_type = DOCA_FLOW_L4_META_UDP;
    to_queue.type = DOCA_FLOW_FWD_RSS;
    to_queue.rss_type = DOCA_FLOW_RESOURCE_TYPE_NON_SHARED;
    to_queue.rss.outer_flags = DOCA_FLOW_RSS_IPV4 | DOCA_FLOW_RSS_UDP;
    to_queue.rss.queues_array = &queue;
    to_queue.rss.nr_queues = 1;

    result = doca_flow_pipe_cfg_create(&settings, all->port);
    if (result != DOCA_SUCCESS)
        return result;
    result = doca_flow_pipe_cfg_set_name(settings, "UDP");
    if (result == DOCA_SUCCESS)
        result = doca_flow_pipe_cfg_set_type(settings, DOCA_FLOW_PIPE_BASIC);
    if (result == DOCA_SUCCESS)
        result = doca_flow_pipe_cfg_set_is_root(settings, false);
    if (result == DOCA_SUCCESS)
        result = doca_flow_pipe_cfg_set_match(settings, &match, NULL);
    if (result == DOCA_SUCCESS)
        result = doca_flow_pipe_cfg_set_monitor(settings, &count);
    if (result == DOCA_SUCCESS)
        result = doca_flow_pipe_create(settings, &to_queue, &drop, &all->udp_pipe);
    doca_flow_pipe_cfg_destroy(settings);
    if (result == DOCA_SUCCESS)
        result = doca_flow_pipe_add_entry(0, all->udp_pipe, &match, NULL, NULL, NULL, DOCA_FLOW_NO_WAIT, NULL, &entry);
    if (result == DOCA_SUCCESS)
        result = doca_flow_entries_process(all->port, 0, 0, 0);
    return result;
}

static doca_error_t make_root_pipe(struct receiver* all)
{
    struct doca_flow_match udp = {.outer.eth.type = htons(DOCA_FLOW_ETHER_TYPE_IPV4),
                                  .outer.l3_type = DOCA_FLOW_L3_TYPE_IP4,
                                  .outer.ip4.next_proto = 17};
    struct doca_flow_fwd to_pipe = {.type = DOCA_FLOW_FWD_PIPE, .next_pipe = all->udp_pipe};
    struct doca_flow_pipe_cfg* settings;
    doca_error_t result = doca_flow_pipe_cfg_create(&settings, all->port);

    if (result != DOCA_SUCCESS)
        return result;
    result = doca_flow_pipe_cfg_set_name(settings, "ROOT");
    if (result == DOCA_SUCCESS)
        result = doca_flow_pipe_cfg_set_type(settings, DOCA_FLOW_PIPE_CONTROL);
    if (result == DOCA_SUCCESS)
        result = doca_flow_pipe_cfg_set_is_root(settings, true);
    if (result == DOCA_SUCCESS)
        result = doca_flow_pipe_create(settings, NULL, NULL, &all->root_pipe);
    doca_flow_pipe_cfg_destroy(settings);
    if (result == DOCA_SUCCESS)
        result = doca_flow_pipe_control_add_entry(0, 0, all->root_pipe, &udp, NULL, NULL, NULL, NULL, NULL, NULL,
                                                  &to_pipe, NULL, &all->root_entry);
    if (result == DOCA_SUCCESS)
        result = doca_flow_entries_process(all->port, 0, 0, 0);
    return result;
}

static doca_error_t make_flags(struct receiver* all)
{
    doca_error_t result = doca_gpu_mem_alloc(all->gpu, sizeof(uint32_t), GPU_PAGE_SIZE, DOCA_GPU_MEM_TYPE_GPU_CPU,
                                             (void**)&all->exit_flag_gpu, (void**)&all->exit_flag_cpu);

    if (result == DOCA_SUCCESS)
        result = doca_gpu_mem_alloc(all->gpu, sizeof(uint32_t), GPU_PAGE_SIZE, DOCA_GPU_MEM_TYPE_CPU_GPU,
                                    (void**)&all->received_gpu, (void**)&all->received_cpu);
    if (result != DOCA_SUCCESS)
        return result;
    DOCA_GPUNETIO_VOLATILE(*all->exit_flag_cpu) = 0;
    DOCA_GPUNETIO_VOLATILE(*all->received_cpu) = 0;
    return DOCA_SUCCESS;
}

static doca_error_t run_kernel(struct receiver* all)
{
    cudaStream_t stream;
    cudaError_t error;
    doca_error_t result;

    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
        return DOCA_ERROR_DRIVER;
    result = launch_receive_udp(stream, all->rxq_gpu, all->exit_flag_gpu, all->received_gpu);
    if (result == DOCA_SUCCESS) {
        DOCA_LOG_INFO("The kernel runs: interrupt the program to end it");
        while (!is_stopped)
            usleep(10000);
    }
    DOCA_GPUNETIO_VOLATILE(*all->exit_flag_cpu) = 1;
    error = cudaStreamSynchronize(stream);
    if (error != cudaSuccess) {
        DOCA_LOG_ERR("The kernel failed: %s", cudaGetErrorString(error));
        result = DOCA_ERROR_DRIVER;
    }
    DOCA_LOG_INFO("%u packets received", DOCA_GPUNETIO_VOLATILE(*all->received_cpu));
    cudaStreamDestroy(stream);
    return result;
}

/* The order is that of programs that people have: memory is freed before its mmap, and the GPU and the flag stay. */
static doca_error_t tear_down(struct receiver* all)
{
    doca_error_t result = DOCA_SUCCESS, last;

    if (all->root_pipe)
        doca_flow_pipe_destroy(all->root_pipe);
    if (all->udp_pipe)
        doca_flow_pipe_destroy(all->udp_pipe);
    if (all->rxq_context) {
        last = doca_ctx_stop(all->rxq_context);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (all->packets.gpu_address) {
        last = doca_gpu_mem_free(all->gpu, all->packets.gpu_address);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (all->rxq) {
        last = doca_eth_rxq_destroy(all->rxq);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (all->port) {
        last = doca_flow_port_stop(all->port);
        DOCA_ERROR_PROPAGATE(result, last);
        doca_flow_destroy();
    }
    if (all->packets.mmap) {
        last = doca_mmap_destroy(all->packets.mmap);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (all->device) {
        last = doca_dev_close(all->device);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (result != DOCA_SUCCESS)
        DOCA_LOG_ERR("The end: %s", doca_error_get_descr(result));
    return result;
}

static doca_error_t set_up(const struct program_settings* settings, struct receiver* all)
{
    doca_error_t result = open_device(settings->nic_pci_address, &all->device);

    if (result == DOCA_SUCCESS)
        result = start_flow_port(all->device, &all->port);
    if (result == DOCA_SUCCESS)
        result = doca_gpu_create(settings->gpu_pci_address, &all->gpu);
    if (result == DOCA_SUCCESS)
        result = make_queue(all);
    if (result == DOCA_SUCCESS)
        result = make_udp_pipe(all);
    if (result == DOCA_SUCCESS)
        result = make_root_pipe(all);
    if (result == DOCA_SUCCESS)
        result = make_flags(all);
    return result;
}

doca_error_t receive_udp(const struct program_settings* settings)
{
    struct receiver all = {0};
    doca_error_t result = choose_gpu(settings->gpu_pci_address), last;

    if (result != DOCA_SUCCESS)
        return result;
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    result = set_up(settings, &all);
    if (result == DOCA_SUCCESS)
        result = run_kernel(&all);
    last = tear_down(&all);
    DOCA_ERROR_PROPAGATE(result, last);
    return result;
}
