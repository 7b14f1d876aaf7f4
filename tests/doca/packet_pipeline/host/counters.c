/* What kernels report by semaphores, printed each second. */
#include <doca_log.h>
#include <time.h>
#include <unistd.h>

#include "pipeline.h"

DOCA_LOG_REGISTER(PACKET_PIPELINE::COUNTERS);

#define POLL_US 1000
#define PRINT_NS 1000000000ULL

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Items are ready in their order; one that was read is free. */
static void read_items(struct receive_queue* queue)
{
    enum doca_gpu_semaphore_status status;
    void* address;
    const struct packet_counts* counts;

    for (;;) {
        if (doca_gpu_semaphore_get_status(queue->semaphore, queue->next_item, &status) != DOCA_SUCCESS ||
            status != DOCA_GPU_SEMAPHORE_STATUS_READY ||
            doca_gpu_semaphore_get_custom_info_addr(queue->semaphore, queue->next_item, &address) != DOCA_SUCCESS)
            return;
        counts = address;
        queue->known += DOCA_GPUNETIO_VOLATILE(counts->known);
        queue->total += DOCA_GPUNETIO_VOLATILE(counts->total);
        doca_gpu_semaphore_set_status(queue->semaphore, queue->next_item, DOCA_GPU_SEMAPHORE_STATUS_FREE);
        queue->next_item = (queue->next_item + 1) % SEMAPHORE_ITEMS;
    }
}

static void print_all(struct pipeline* all)
{
    uint32_t i;

    for (i = 0; i < all->settings.queues; ++i)
        printf("[UDP] queue %u: DNS %lu, other %lu, total %lu\n", i, all->udp[i].known,
               all->udp[i].total - all->udp[i].known, all->udp[i].total);
    for (i = 0; i < all->settings.queues; ++i)
        printf("[TCP] queue %u: HTTP %lu, other %lu, total %lu\n", i, all->tcp[i].known,
               all->tcp[i].total - all->tcp[i].known, all->tcp[i].total);
    printf("[TCP] connections: %lu\n", __atomic_load_n(&all->accepted, __ATOMIC_RELAXED));
    fflush(stdout);
}

int print_counters(void* argument)
{
    struct pipeline* all = argument;
    uint64_t next_ns = now_ns() + PRINT_NS;
    uint32_t i;

    while (!is_stopped) {
        for (i = 0; i < all->settings.queues; ++i) {
            read_items(&all->udp[i]);
            read_items(&all->tcp[i]);
        }
        if (now_ns() >= next_ns) {
            print_all(all);
            next_ns += PRINT_NS;
        }
        usleep(POLL_US);
    }
    print_all(all);
    return 0;
}
