#include <doca_log.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "end.h"

DOCA_LOG_REGISTER(RDMA_WRITE::HOST);

static doca_error_t open_by_name(const char* name, struct doca_dev** device)
{
    struct doca_devinfo** list;
    uint32_t count, i;
    char found[DOCA_DEVINFO_IBDEV_NAME_SIZE];
    doca_error_t result = doca_devinfo_create_list(&list, &count);

    if (result != DOCA_SUCCESS) {
        DOCA_LOG_ERR("No list of devices: %s", doca_error_get_descr(result));
        return result;
    }
    result = DOCA_ERROR_NOT_FOUND;
    for (i = 0; i < count; ++i) {
        if (doca_devinfo_get_ibdev_name(list[i], found, sizeof found) == DOCA_SUCCESS &&
            strncmp(found, name, sizeof found) == 0) {
            result = doca_dev_open(list[i], device);
            break;
        }
    }
    if (result != DOCA_SUCCESS)
        DOCA_LOG_ERR("Device %s, one of %u, is not opened: %s", name, count, doca_error_get_descr(result));
    doca_devinfo_destroy_list(list);
    return result;
}

static doca_error_t launch(struct end* all, unsigned connection)
{
    const struct kernel_arguments arguments = {
        .rdma = all->rdma_gpu,
        .connection = connection,
        .a = all->a.array_gpu,
        .local = {all->b.array_gpu, all->c.array_gpu},
        .remote = {all->remote_b.array_gpu, all->remote_c.array_gpu},
        .report = all->reports_gpu + connection,
    };
    doca_error_t result = all->is_client ? launch_client(all->streams[connection], arguments)
                                         : launch_server(all->streams[connection], arguments);

    all->kernel_runs = result == DOCA_SUCCESS;
    return result;
}

/* Until the kernel has set one of its two flags. */
static doca_error_t wait_for_kernel(struct end* all, const uint32_t* flag, const uint32_t* or_flag)
{
    const struct timespec a_millisecond = {.tv_nsec = 1000000};

    while (DOCA_GPUNETIO_VOLATILE(*flag) == 0 && DOCA_GPUNETIO_VOLATILE(*or_flag) == 0) {
        nanosleep(&a_millisecond, NULL);
        if (peer_is_gone(all)) {
            DOCA_LOG_ERR("The peer's program has ended before the kernel");
            return DOCA_ERROR_CONNECTION_ABORTED;
        }
    }
    return DOCA_SUCCESS;
}

/* When it returns both kernels run, and the server's has posted its receives. */
static doca_error_t start_kernel(struct end* all, unsigned connection)
{
    const struct kernel_report* report = all->reports + connection;
    doca_error_t result = launch(all, connection);

    if (result == DOCA_SUCCESS && !all->is_client)
        result = wait_for_kernel(all, &report->has_posted, &report->has_ended);
    return result == DOCA_SUCCESS ? meet(all) : result;
}

static doca_error_t check_received(struct end* all, unsigned connection)
{
    const struct kernel_report* report = all->reports + connection;
    const uint32_t b = IMMEDIATE_OF(0, connection), c = IMMEDIATE_OF(1, connection);
    const uint32_t *got = report->immediates, count = report->count;

    if (count != RECEIVES || got[2] != NO_IMMEDIATE ||
        !((got[0] == b && got[1] == c) || (got[0] == c && got[1] == b))) {
        DOCA_LOG_ERR("Connection %u: %u receives have the immediates %u, %u, %u", connection, count, got[0], got[1],
                     got[2]);
        return DOCA_ERROR_UNEXPECTED;
    }
    return check_written(all, connection);
}

static doca_error_t finish_kernel(struct end* all, unsigned connection)
{
    struct kernel_report* report = all->reports + connection;
    doca_error_t result;

    DOCA_GPUNETIO_VOLATILE(report->may_write) = 1;
    result = wait_for_kernel(all, &report->has_ended, &report->has_ended);
    if (result != DOCA_SUCCESS)
        return result;
    if (cudaStreamSynchronize(all->streams[connection]) != cudaSuccess)
        return DOCA_ERROR_DRIVER;
    all->kernel_runs = false;
    if (report->error)
        return (doca_error_t)report->error;
    return all->is_client ? DOCA_SUCCESS : check_received(all, connection);
}

/* The second connection, while the kernel of the first waits for the client's CPU, or for the client. */
static doca_error_t make_second(struct end* all)
{
    doca_error_t result = make_connection(all);

    if (result == DOCA_SUCCESS && DOCA_GPUNETIO_VOLATILE(all->reports[0].has_ended)) {
        DOCA_LOG_ERR("The kernel of the first connection has ended early");
        result = DOCA_ERROR_UNEXPECTED;
    }
    if (result == DOCA_SUCCESS)
        result = meet(all);
    if (result == DOCA_SUCCESS) {
        printf("Connection 1 is made while the kernel of connection 0 runs\n");
        fflush(stdout);
    }
    return result;
}

static doca_error_t set_up(struct end* all)
{
    doca_error_t result = open_by_name(all->settings->device_name, &all->device);

    if (result == DOCA_SUCCESS)
        result = doca_gpu_create(all->settings->gpu_pci_address, &all->gpu);
    if (result == DOCA_SUCCESS)
        result = make_memory(all);
    if (result == DOCA_SUCCESS)
        result = make_context(all);
    if (result == DOCA_SUCCESS)
        result = listen_to_peers(all);
    if (result == DOCA_SUCCESS)
        result = meet_peer(all);
    if (result == DOCA_SUCCESS)
        result = exchange_memory(all);
    return result;
}

static doca_error_t run(struct end* all)
{
    doca_error_t result = make_connection(all);

    if (result == DOCA_SUCCESS)
        result = start_kernel(all, 0);
    if (result == DOCA_SUCCESS)
        result = make_second(all);
    if (result == DOCA_SUCCESS)
        result = finish_kernel(all, 0);
    if (result == DOCA_SUCCESS)
        result = start_kernel(all, 1);
    if (result == DOCA_SUCCESS)
        result = finish_kernel(all, 1);
    if (result == DOCA_SUCCESS)
        result = end_connections(all);
    return result;
}

static doca_error_t tear_down(struct end* all)
{
    doca_error_t result = DOCA_SUCCESS, last;

    if (all->socket >= 0)
        close(all->socket);
    if (all->kernel_runs) /* after an error: the end of the process ends it */
        return DOCA_SUCCESS;
    last = destroy_context(all);
    DOCA_ERROR_PROPAGATE(result, last);
    last = destroy_memory(all);
    DOCA_ERROR_PROPAGATE(result, last);
    if (all->gpu) {
        last = doca_gpu_destroy(all->gpu);
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

doca_error_t rdma_write(const struct program_settings* settings)
{
    struct end all = {.settings = settings, .is_client = settings->server_ip[0] != 0, .socket = -1};
    doca_error_t result = choose_gpu(settings->gpu_pci_address), last;

    if (result != DOCA_SUCCESS)
        return result;
    result = set_up(&all);
    if (result == DOCA_SUCCESS)
        result = run(&all);
    last = tear_down(&all);
    DOCA_ERROR_PROPAGATE(result, last);
    return result;
}
