/* Queues of kernels, and the semaphores by which kernels report. */
#include <doca_log.h>

#include "pipeline.h"

DOCA_LOG_REGISTER(PACKET_PIPELINE::QUEUES);

static doca_error_t make_receive_queue(struct pipeline* all, uint32_t packets, uint32_t packet_size,
                                       struct receive_queue* queue)
{
    uint32_t size;
    doca_error_t result = doca_eth_rxq_create(all->device, packets, packet_size, &queue->rxq);

    if (result == DOCA_SUCCESS)
        result = doca_eth_rxq_set_type(queue->rxq, DOCA_ETH_RXQ_TYPE_CYCLIC);
    if (result == DOCA_SUCCESS)
        result = doca_eth_rxq_estimate_packet_buf_size(DOCA_ETH_RXQ_TYPE_CYCLIC, 0, 0, packet_size, packets, 0, &size);
    if (result != DOCA_SUCCESS)
        return result;
    queue->packets.size = size;
    result =
        doca_gpu_mem_alloc(all->gpu, size, GPU_PAGE_SIZE, DOCA_GPU_MEM_TYPE_GPU, &queue->packets.gpu_address, NULL);
    if (result == DOCA_SUCCESS)
        result = map_gpu_memory(all->gpu, all->device, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE, &queue->packets);
    if (result == DOCA_SUCCESS)
        result = doca_eth_rxq_set_pkt_buf(queue->rxq, queue->packets.mmap, 0, size);
    if (result != DOCA_SUCCESS)
        return result;
    queue->context = doca_eth_rxq_as_doca_ctx(queue->rxq);
    if (queue->context == NULL)
        return DOCA_ERROR_UNEXPECTED;
    result = doca_ctx_set_datapath_on_gpu(queue->context, all->gpu);
    if (result == DOCA_SUCCESS)
        result = doca_ctx_start(queue->context);
    if (result == DOCA_SUCCESS)
        result = doca_eth_rxq_get_gpu_handle(queue->rxq, &queue->gpu);
    return result;
}

static doca_error_t make_semaphore(struct pipeline* all, struct receive_queue* queue)
{
    doca_error_t result = doca_gpu_semaphore_create(all->gpu, &queue->semaphore);

    if (result == DOCA_SUCCESS)
        result = doca_gpu_semaphore_set_memory_type(queue->semaphore, DOCA_GPU_MEM_TYPE_CPU_GPU);
    if (result == DOCA_SUCCESS)
        result = doca_gpu_semaphore_set_items_num(queue->semaphore, SEMAPHORE_ITEMS);
    if (result == DOCA_SUCCESS)
        result = doca_gpu_semaphore_set_custom_info(queue->semaphore, sizeof(struct packet_counts),
                                                    DOCA_GPU_MEM_TYPE_CPU_GPU);
    if (result == DOCA_SUCCESS)
        result = doca_gpu_semaphore_start(queue->semaphore);
    if (result == DOCA_SUCCESS)
        result = doca_gpu_semaphore_get_gpu_handle(queue->semaphore, &queue->semaphore_gpu);
    return result;
}

static void send_failed(struct doca_eth_txq_gpu_event_error_send_packet* event, union doca_data data)
{
    uint16_t position = 0;

    (void)data;
    doca_eth_txq_gpu_event_error_send_packet_get_position(event, &position);
    DOCA_LOG_ERR("Entry %u of the send queue has failed", position);
    is_stopped = 1;
}

static void echo_left(struct doca_eth_txq_gpu_event_notify_send_packet* event, union doca_data data)
{
    struct send_queue* queue = data.ptr;
    uint16_t position = 0;
    uint64_t now_ns = 0;

    doca_eth_txq_gpu_event_notify_send_packet_get_position(event, &position);
    doca_eth_txq_gpu_event_notify_send_packet_get_timestamp(event, &now_ns);
    ++queue->sent;
    if (queue->last_ns == 0)
        DOCA_LOG_INFO("[ICMP] the first echo has left, entry %u", position);
    else
        DOCA_LOG_INFO("[ICMP] echo %lu has left, entry %u, %.3f ms after the one before", queue->sent, position,
                      (double)(now_ns - queue->last_ns) / 1e6);
    queue->last_ns = now_ns;
}

static doca_error_t make_send_queue(struct pipeline* all)
{
    struct send_queue* queue = &all->icmp_send;
    union doca_data data = {.ptr = queue};
    doca_error_t result = doca_eth_txq_create(all->device, ICMP_SEND_ENTRIES, &queue->txq);

    if (result == DOCA_SUCCESS)
        result = doca_eth_txq_set_l3_chksum_offload(queue->txq, 1);
    if (result == DOCA_SUCCESS)
        result = doca_eth_txq_gpu_event_error_send_packet_register(queue->txq, send_failed, data);
    if (result == DOCA_SUCCESS)
        result = doca_eth_txq_gpu_event_notify_send_packet_register(queue->txq, echo_left, data);
    if (result != DOCA_SUCCESS)
        return result;
    queue->context = doca_eth_txq_as_doca_ctx(queue->txq);
    if (queue->context == NULL)
        return DOCA_ERROR_UNEXPECTED;
    result = doca_pe_create(&queue->pe);
    if (result == DOCA_SUCCESS)
        result = doca_pe_connect_ctx(queue->pe, queue->context);
    if (result == DOCA_SUCCESS)
        result = doca_ctx_set_datapath_on_gpu(queue->context, all->gpu);
    if (result == DOCA_SUCCESS)
        result = doca_ctx_start(queue->context);
    if (result == DOCA_SUCCESS)
        result = doca_eth_txq_get_gpu_handle(queue->txq, &queue->gpu);
    return result;
}

doca_error_t make_queues(struct pipeline* all)
{
    struct receive_queue* both[] = {all->udp, all->tcp};
    uint32_t kind, i;
    doca_error_t result = DOCA_SUCCESS;

    for (kind = 0; kind < 2; ++kind)
        for (i = 0; i < all->settings.queues && result == DOCA_SUCCESS; ++i) {
            result = make_receive_queue(all, MAX_PACKETS, MAX_PACKET_SIZE, &both[kind][i]);
            if (result == DOCA_SUCCESS)
                result = make_semaphore(all, &both[kind][i]);
        }
    if (result == DOCA_SUCCESS)
        result = make_receive_queue(all, ICMP_MAX_PACKETS, ICMP_MAX_PACKET_SIZE, &all->icmp);
    if (result == DOCA_SUCCESS)
        result = make_send_queue(all);
    if (result != DOCA_SUCCESS)
        DOCA_LOG_ERR("No queues: %s", doca_error_get_descr(result));
    return result;
}

/* Memory last; a queue that was made half is destroyed as well. */
static doca_error_t destroy_receive_queue(struct pipeline* all, struct receive_queue* queue)
{
    doca_error_t result = DOCA_SUCCESS, last;

    if (queue->semaphore_gpu) {
        last = doca_gpu_semaphore_stop(queue->semaphore);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (queue->semaphore) {
        last = doca_gpu_semaphore_destroy(queue->semaphore);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (queue->gpu) {
        last = doca_ctx_stop(queue->context);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (queue->rxq) {
        last = doca_eth_rxq_destroy(queue->rxq);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (queue->packets.mmap) {
        last = doca_mmap_destroy(queue->packets.mmap);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (queue->packets.gpu_address) {
        last = doca_gpu_mem_free(all->gpu, queue->packets.gpu_address);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    return result;
}

doca_error_t destroy_queues(struct pipeline* all)
{
    struct send_queue* send = &all->icmp_send;
    uint32_t i;
    doca_error_t result = DOCA_SUCCESS, last;

    for (i = 0; i < MAX_QUEUES; ++i) {
        last = destroy_receive_queue(all, &all->udp[i]);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (send->gpu) {
        last = doca_ctx_stop(send->context);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (send->txq) {
        last = doca_eth_txq_destroy(send->txq);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (send->pe) {
        last = doca_pe_destroy(send->pe);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    last = destroy_receive_queue(all, &all->icmp);
    DOCA_ERROR_PROPAGATE(result, last);
    for (i = 0; i < MAX_QUEUES; ++i) {
        last = destroy_receive_queue(all, &all->tcp[i]);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    return result;
}
