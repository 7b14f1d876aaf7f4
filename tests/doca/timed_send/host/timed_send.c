#include "timed_send.h"

#include <doca_bitfield.h>
#include <doca_buf_array.h>
#include <doca_ctx.h>
#include <doca_dpdk.h>
#include <doca_log.h>
#include <stdlib.h>
#include <time.h>

DOCA_LOG_REGISTER(TIMED_SEND::HOST);

struct sender {
    struct doca_gpu* gpu;
    struct doca_dev* device;
    struct doca_flow_port* port;
    struct doca_eth_txq* txq;
    struct doca_ctx* txq_context;
    struct doca_gpu_eth_txq* txq_gpu;
    struct gpu_memory frames;
    struct doca_buf_arr* buffers;
    struct doca_gpu_buf_arr* buffers_gpu;
    uint64_t* times_gpu;
    uint64_t* times_cpu;
};

struct frame_headers {
    uint8_t to[6];
    uint8_t from[6];
    uint16_t type;
    uint8_t version_and_length;
    uint8_t service;
    uint16_t ip_length;
    uint16_t id;
    uint16_t fragment;
    uint8_t hops;
    uint8_t protocol;
    uint16_t ip_checksum; /* the queue computes it */
    uint8_t source[4];
    uint8_t destination[4];
    uint16_t source_port;
    uint16_t destination_port;
    uint16_t udp_length;
    uint16_t udp_checksum; /* 0: none */
} __attribute__((packed));

/* Frames to everybody. The ID of the IPv4 header is the number of the frame. */
static void fill_frame(uint8_t* frame, const uint8_t* source_mac, unsigned number)
{
    struct frame_headers headers = {.to = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
                                    .type = DOCA_HTOBE16(0x0800),
                                    .version_and_length = 0x45,
                                    .ip_length = DOCA_HTOBE16(FRAME_SIZE - 14),
                                    .id = DOCA_HTOBE16(number),
                                    .hops = 64,
                                    .protocol = 17,
                                    .source = {10, 9, 0, 1},
                                    .destination = {10, 9, 0, 2},
                                    .source_port = DOCA_HTOBE16(UDP_PORT),
                                    .destination_port = DOCA_HTOBE16(UDP_PORT),
                                    .udp_length = DOCA_HTOBE16(FRAME_SIZE - 34)};

    memcpy(headers.from, source_mac, sizeof headers.from);
    memset(frame, (int)number, FRAME_SIZE);
    memcpy(frame, &headers, sizeof headers);
}

static doca_error_t copy_frames(struct sender* all)
{
    uint8_t source_mac[6];
    uint8_t* frames;
    unsigned i;
    doca_error_t result = doca_devinfo_get_mac_addr(doca_dev_as_devinfo(all->device), source_mac, sizeof source_mac);

    if (result != DOCA_SUCCESS)
        return result;
    frames = malloc(all->frames.size);
    if (frames == NULL)
        return DOCA_ERROR_NO_MEMORY;
    for (i = 0; i < FRAMES; ++i)
        fill_frame(frames + i * FRAME_SIZE, source_mac, i);
    if (cudaMemcpy(all->frames.gpu_address, frames, all->frames.size, cudaMemcpyDefault) != cudaSuccess)
        result = DOCA_ERROR_DRIVER;
    free(frames);
    return result;
}

static doca_error_t make_frames(struct sender* all)
{
    doca_error_t result;

    all->frames.size = FRAMES * FRAME_SIZE;
    result = doca_gpu_mem_alloc(all->gpu, all->frames.size, GPU_PAGE_SIZE, DOCA_GPU_MEM_TYPE_GPU,
                                &all->frames.gpu_address, NULL);
    if (result == DOCA_SUCCESS)
        result = copy_frames(all);
    if (result == DOCA_SUCCESS)
        result =
            map_gpu_memory(all->gpu, all->device,
                           DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_PCI_RELAXED_ORDERING, &all->frames);
    if (result == DOCA_SUCCESS)
        result = doca_buf_arr_create(FRAMES, &all->buffers);
    if (result == DOCA_SUCCESS)
        result = doca_buf_arr_set_target_gpu(all->buffers, all->gpu);
    if (result == DOCA_SUCCESS)
        result = doca_buf_arr_set_params(all->buffers, all->frames.mmap, FRAME_SIZE, 0);
    if (result == DOCA_SUCCESS)
        result = doca_buf_arr_start(all->buffers);
    if (result == DOCA_SUCCESS)
        result = doca_buf_arr_get_gpu_handle(all->buffers, &all->buffers_gpu);
    return result;
}

/* A device whose waits DPDK executes is a DPDK port first. */
static doca_error_t prepare_waits(struct sender* all)
{
    enum doca_eth_wait_on_time_type type;
    doca_error_t result = doca_eth_txq_cap_get_wait_on_time_offload_supported(doca_dev_as_devinfo(all->device), &type);

    if (result != DOCA_SUCCESS)
        return result;
    DOCA_LOG_INFO("Waits: %s", type == DOCA_ETH_WAIT_ON_TIME_TYPE_DPDK ? "DPDK" : "native");
    if (type == DOCA_ETH_WAIT_ON_TIME_TYPE_DPDK)
        result = doca_dpdk_port_probe(all->device, "tx_pp=500,txq_inline_max=0,dv_flow_en=2");
    return result;
}

static doca_error_t make_queue(struct sender* all)
{
    doca_error_t result = doca_eth_txq_create(all->device, QUEUE_ENTRIES, &all->txq);

    if (result == DOCA_SUCCESS)
        result = doca_eth_txq_set_l3_chksum_offload(all->txq, 1);
    if (result == DOCA_SUCCESS)
        result = doca_eth_txq_set_wait_on_time_offload(all->txq);
    if (result != DOCA_SUCCESS)
        return result;
    all->txq_context = doca_eth_txq_as_doca_ctx(all->txq);
    if (all->txq_context == NULL)
        return DOCA_ERROR_UNEXPECTED;
    result = doca_ctx_set_datapath_on_gpu(all->txq_context, all->gpu);
    if (result == DOCA_SUCCESS)
        result = doca_ctx_start(all->txq_context);
    if (result == DOCA_SUCCESS)
        result = doca_eth_txq_get_gpu_handle(all->txq, &all->txq_gpu);
    return result;
}

static doca_error_t set_times(struct sender* all, uint32_t interval_ns)
{
    struct timespec now;
    uint64_t due_ns;
    int i;
    doca_error_t result =
        doca_gpu_mem_alloc(all->gpu, BURSTS * sizeof(uint64_t), GPU_PAGE_SIZE, DOCA_GPU_MEM_TYPE_CPU_GPU,
                           (void**)&all->times_gpu, (void**)&all->times_cpu);

    clock_gettime(CLOCK_REALTIME, &now);
    due_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + FIRST_BURST_NS;
    for (i = 0; i < BURSTS && result == DOCA_SUCCESS; ++i, due_ns += interval_ns)
        result = doca_eth_txq_calculate_timestamp(all->txq, due_ns, &all->times_cpu[i]);
    return result;
}

/* The kernel has ended long before the last burst leaves. */
static doca_error_t run_kernel(struct sender* all, uint32_t interval_ns)
{
    const uint64_t wait_ns = FIRST_BURST_NS + (uint64_t)BURSTS * interval_ns + 1000000000;
    struct timespec wait = {(time_t)(wait_ns / 1000000000), (long)(wait_ns % 1000000000)};
    cudaStream_t stream;
    doca_error_t result;

    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
        return DOCA_ERROR_DRIVER;
    result = launch_timed_send(stream, all->txq_gpu, all->buffers_gpu, all->times_gpu);
    if (result == DOCA_SUCCESS) {
        if (cudaStreamSynchronize(stream) != cudaSuccess)
            result = DOCA_ERROR_DRIVER;
        DOCA_LOG_INFO("The kernel has ended; %d frames leave in %d bursts", FRAMES, BURSTS);
        nanosleep(&wait, NULL);
    }
    cudaStreamDestroy(stream);
    return result;
}

/* The order is that of programs that people have: mmap, memory, queue, and the buffer array at last. */
static doca_error_t tear_down(struct sender* all)
{
    doca_error_t result = DOCA_SUCCESS, last;

    if (all->frames.mmap) {
        last = doca_mmap_destroy(all->frames.mmap);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (all->frames.gpu_address) {
        last = doca_gpu_mem_free(all->gpu, all->frames.gpu_address);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (all->txq_context) {
        last = doca_ctx_stop(all->txq_context);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (all->txq) {
        last = doca_eth_txq_destroy(all->txq);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (all->buffers) {
        last = doca_buf_arr_stop(all->buffers);
        DOCA_ERROR_PROPAGATE(result, last);
        last = doca_buf_arr_destroy(all->buffers);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (all->port) {
        last = doca_flow_port_stop(all->port);
        DOCA_ERROR_PROPAGATE(result, last);
        doca_flow_destroy();
    }
    if (all->device) {
        last = doca_dev_close(all->device);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (result != DOCA_SUCCESS)
        DOCA_LOG_ERR("The end: %s", doca_error_get_descr(result));
    return result;
}

static doca_error_t set_up(const struct program_settings* settings, struct sender* all)
{
    doca_error_t result = open_device(settings->nic_pci_address, &all->device);

    if (result == DOCA_SUCCESS)
        result = start_flow_port(all->device, &all->port);
    if (result == DOCA_SUCCESS)
        result = prepare_waits(all);
    if (result == DOCA_SUCCESS)
        result = doca_gpu_create(settings->gpu_pci_address, &all->gpu);
    if (result == DOCA_SUCCESS)
        result = make_queue(all);
    if (result == DOCA_SUCCESS)
        result = make_frames(all);
    if (result == DOCA_SUCCESS)
        result = set_times(all, settings->interval_ns);
    return result;
}

doca_error_t timed_send(const struct program_settings* settings)
{
    struct sender all = {0};
    doca_error_t result = choose_gpu(settings->gpu_pci_address), last;

    if (result != DOCA_SUCCESS)
        return result;
    result = set_up(settings, &all);
    if (result == DOCA_SUCCESS)
        result = run_kernel(&all, settings->interval_ns);
    last = tear_down(&all);
    DOCA_ERROR_PROPAGATE(result, last);
    return result;
}
