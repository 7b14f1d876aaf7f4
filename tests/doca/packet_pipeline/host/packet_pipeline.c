#include "../packet_pipeline.h"

#include <doca_log.h>
#include <rte_lcore.h>
#include <unistd.h>

#include "pipeline.h"

DOCA_LOG_REGISTER(PACKET_PIPELINE::HOST);

volatile sig_atomic_t is_stopped;

static void stop(int signal)
{
    (void)signal;
    is_stopped = 1;
}

static doca_error_t make_exit_flag(struct pipeline* all)
{
    doca_error_t result = doca_gpu_mem_alloc(all->gpu, sizeof(uint32_t), GPU_PAGE_SIZE, DOCA_GPU_MEM_TYPE_GPU_CPU,
                                             (void**)&all->exit_flag_gpu, (void**)&all->exit_flag_cpu);

    if (result != DOCA_SUCCESS)
        DOCA_LOG_ERR("No exit flag: %s", doca_error_get_descr(result));
    return result;
}

static doca_error_t launch_all(struct pipeline* all, cudaStream_t* streams, bool has_queues)
{
    const uint32_t queues = all->settings.queues;
    struct kernel_queues udp = {{NULL}, {NULL}}, tcp = {{NULL}, {NULL}};
    uint32_t i;
    doca_error_t result;

    for (i = 0; i < queues && has_queues; ++i) {
        udp.rxq[i] = all->udp[i].gpu;
        udp.semaphore[i] = all->udp[i].semaphore_gpu;
        tcp.rxq[i] = all->tcp[i].gpu;
        tcp.semaphore[i] = all->tcp[i].semaphore_gpu;
    }
    result = launch_udp(streams[0], all->exit_flag_gpu, queues, &udp);
    if (result == DOCA_SUCCESS)
        result = launch_tcp(streams[1], all->exit_flag_gpu, queues, &tcp);
    if (result == DOCA_SUCCESS)
        result = launch_icmp(streams[2], all->exit_flag_gpu, has_queues ? all->icmp.gpu : NULL,
                             has_queues ? all->icmp_send.gpu : NULL);
    return result;
}

static doca_error_t wait_for_kernels(cudaStream_t* streams)
{
    doca_error_t result = DOCA_SUCCESS;
    cudaError_t error;
    int i;

    for (i = 0; i < 3; ++i) {
        error = cudaStreamSynchronize(streams[i]);
        if (error != cudaSuccess) {
            DOCA_LOG_ERR("Kernel %d failed: %s", i, cudaGetErrorString(error));
            result = DOCA_ERROR_DRIVER;
        }
    }
    return result;
}

/* Each kernel once without queues and with the flag set: the driver loads all of them before the first one stays. */
static doca_error_t warm_up(struct pipeline* all, cudaStream_t* streams)
{
    doca_error_t result, last;

    DOCA_GPUNETIO_VOLATILE(*all->exit_flag_cpu) = 1;
    result = launch_all(all, streams, false);
    last = wait_for_kernels(streams);
    DOCA_ERROR_PROPAGATE(result, last);
    DOCA_GPUNETIO_VOLATILE(*all->exit_flag_cpu) = 0;
    return result;
}

/* The main lcore delivers events of the send queue. */
static doca_error_t run_lcores(struct pipeline* all)
{
    const unsigned of_counters = rte_get_next_lcore(rte_lcore_id(), 1, 0);
    const unsigned of_tcp = rte_get_next_lcore(of_counters, 1, 0);

    if (of_counters >= RTE_MAX_LCORE || of_tcp >= RTE_MAX_LCORE) {
        DOCA_LOG_ERR("DPDK has %u lcores; 3 are needed", rte_lcore_count());
        return DOCA_ERROR_NOT_SUPPORTED;
    }
    if (rte_eal_remote_launch(print_counters, all, of_counters) != 0)
        return DOCA_ERROR_DRIVER;
    if (rte_eal_remote_launch(serve_tcp, all, of_tcp) != 0) {
        is_stopped = 1;
        rte_eal_wait_lcore(of_counters);
        return DOCA_ERROR_DRIVER;
    }
    DOCA_LOG_INFO("The kernels run: interrupt the program to end them");
    while (!is_stopped)
        if (doca_pe_progress(all->icmp_send.pe) == 0)
            usleep(100);
    rte_eal_wait_lcore(of_tcp);
    rte_eal_wait_lcore(of_counters);
    return DOCA_SUCCESS;
}

static doca_error_t run_kernels(struct pipeline* all)
{
    cudaStream_t streams[3];
    doca_error_t result, last;
    int i;

    for (i = 0; i < 3; ++i)
        if (cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking) != cudaSuccess)
            return DOCA_ERROR_DRIVER;
    result = warm_up(all, streams);
    if (result == DOCA_SUCCESS)
        result = launch_all(all, streams, true);
    if (result == DOCA_SUCCESS)
        result = run_lcores(all);
    DOCA_GPUNETIO_VOLATILE(*all->exit_flag_cpu) = 1;
    last = wait_for_kernels(streams);
    DOCA_ERROR_PROPAGATE(result, last);
    DOCA_LOG_INFO("%lu echoes sent", all->icmp_send.sent);
    for (i = 0; i < 3; ++i)
        cudaStreamDestroy(streams[i]);
    return result;
}

static doca_error_t set_up(struct pipeline* all)
{
    doca_error_t result = start_dpdk();

    if (result == DOCA_SUCCESS)
        result = open_device(all->settings.nic_pci_address, &all->device);
    if (result == DOCA_SUCCESS)
        result = start_dpdk_port(all);
    if (result == DOCA_SUCCESS)
        result = doca_gpu_create(all->settings.gpu_pci_address, &all->gpu);
    if (result == DOCA_SUCCESS)
        result = start_flow(all);
    if (result == DOCA_SUCCESS)
        result = make_queues(all);
    if (result == DOCA_SUCCESS)
        result = make_pipes(all);
    if (result == DOCA_SUCCESS)
        result = make_exit_flag(all);
    return result;
}

/* The order is that of programs that people have: the flow port stops before queues do, and takes its pipes along. */
static doca_error_t tear_down(struct pipeline* all)
{
    doca_error_t result = DOCA_SUCCESS, last;

    if (all->port) {
        last = doca_flow_port_stop(all->port);
        DOCA_ERROR_PROPAGATE(result, last);
        doca_flow_destroy();
    }
    last = destroy_queues(all);
    DOCA_ERROR_PROPAGATE(result, last);
    if (all->exit_flag_gpu) {
        last = doca_gpu_mem_free(all->gpu, all->exit_flag_gpu);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (all->gpu) {
        last = doca_gpu_destroy(all->gpu);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    stop_dpdk_port(all);
    if (all->device) {
        last = doca_dev_close(all->device);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (result != DOCA_SUCCESS)
        DOCA_LOG_ERR("The end: %s", doca_error_get_descr(result));
    return result;
}

doca_error_t packet_pipeline(const struct program_settings* settings)
{
    struct pipeline all = {.settings = *settings};
    doca_error_t result = choose_gpu(settings->gpu_pci_address), last;

    if (result != DOCA_SUCCESS)
        return result;
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    result = set_up(&all);
    if (result == DOCA_SUCCESS)
        result = run_kernels(&all);
    last = tear_down(&all);
    DOCA_ERROR_PROPAGATE(result, last);
    return result;
}
