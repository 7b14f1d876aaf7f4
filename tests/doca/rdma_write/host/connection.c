#include <doca_log.h>
#include <stdlib.h>
#include <time.h>

#include "end.h"

DOCA_LOG_REGISTER(RDMA_WRITE::CONNECTION);

#define QUEUE_SIZE 8192
#define MOST_SECONDS 60

static void requested(struct doca_rdma_connection* handle, union doca_data context_data)
{
    struct end* all = context_data.ptr;
    struct connection* connection = &all->connections[all->made];
    doca_error_t result = DOCA_ERROR_FULL;

    if (all->made < CONNECTIONS) {
        ++all->made;
        connection->handle = handle;
        result = doca_rdma_connection_set_user_data(handle, (union doca_data){.ptr = connection});
        if (result == DOCA_SUCCESS)
            result = doca_rdma_connection_accept(handle, NULL, 0);
        connection->has_failed = result != DOCA_SUCCESS;
    }
    if (result != DOCA_SUCCESS)
        DOCA_LOG_ERR("A connection is not accepted: %s", doca_error_get_descr(result));
}

static void established(struct doca_rdma_connection* handle, union doca_data connection_data,
                        union doca_data context_data)
{
    struct connection* connection = connection_data.ptr;

    (void)context_data;
    if (connection == NULL)
        return; /* of exported addresses, which have no data */
    connection->handle = handle;
    connection->is_established = true;
}

static void failed(struct doca_rdma_connection* handle, union doca_data connection_data, union doca_data context_data)
{
    (void)handle;
    (void)context_data;
    if (connection_data.ptr)
        ((struct connection*)connection_data.ptr)->has_failed = true;
}

static void ended(struct doca_rdma_connection* handle, union doca_data connection_data, union doca_data context_data)
{
    (void)handle;
    (void)context_data;
    if (connection_data.ptr)
        ((struct connection*)connection_data.ptr)->has_ended = true;
}

static doca_error_t configure(struct end* all)
{
    doca_error_t result =
        doca_rdma_set_permissions(all->rdma, DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE);

    if (result == DOCA_SUCCESS && all->settings->gid_index >= 0)
        result = doca_rdma_set_gid_index(all->rdma, (uint32_t)all->settings->gid_index);
    if (result == DOCA_SUCCESS)
        result = doca_rdma_set_send_queue_size(all->rdma, QUEUE_SIZE);
    if (result == DOCA_SUCCESS)
        result = doca_rdma_set_recv_queue_size(all->rdma, QUEUE_SIZE);
    if (result == DOCA_SUCCESS)
        result = doca_rdma_set_grh_enabled(all->rdma, 1);
    if (result == DOCA_SUCCESS)
        result = doca_rdma_set_max_num_connections(all->rdma, CONNECTIONS);
    if (result == DOCA_SUCCESS)
        result = doca_rdma_set_connection_state_callbacks(all->rdma, requested, established, failed, ended);
    if (result == DOCA_SUCCESS)
        result = doca_ctx_set_user_data(all->context, (union doca_data){.ptr = all});
    return result;
}

doca_error_t make_context(struct end* all)
{
    doca_error_t result = doca_rdma_cap_task_write_is_supported(doca_dev_as_devinfo(all->device));

    if (result == DOCA_SUCCESS)
        result = doca_rdma_create(all->device, &all->rdma);
    if (result == DOCA_SUCCESS) {
        all->context = doca_rdma_as_ctx(all->rdma);
        result = configure(all);
    }
    if (result == DOCA_SUCCESS)
        result = doca_pe_create(&all->pe);
    if (result == DOCA_SUCCESS)
        result = doca_pe_connect_ctx(all->pe, all->context);
    if (result == DOCA_SUCCESS)
        result = doca_ctx_set_datapath_on_gpu(all->context, all->gpu);
    if (result == DOCA_SUCCESS)
        result = doca_ctx_start(all->context);
    if (result == DOCA_SUCCESS)
        result = doca_rdma_get_gpu_handle(all->rdma, &all->rdma_gpu);
    if (result != DOCA_SUCCESS)
        DOCA_LOG_ERR("No RDMA context: %s", doca_error_get_descr(result));
    return result;
}

doca_error_t listen_to_peers(struct end* all)
{
    doca_error_t result;

    if (!all->settings->by_address || all->is_client)
        return DOCA_SUCCESS;
    result = doca_rdma_start_listen_to_port(all->rdma, (uint16_t)all->settings->address_port);
    all->listens = result == DOCA_SUCCESS;
    if (!all->listens)
        DOCA_LOG_ERR("RDMA port %d: %s", all->settings->address_port, doca_error_get_descr(result));
    return result;
}

/* Progress until the flag of a callback is set. It was set before the peer's program ended, or never will be. */
static doca_error_t wait_for(struct end* all, struct connection* connection, const bool* flag)
{
    const time_t last = time(NULL) + MOST_SECONDS;

    while (!*flag) {
        if (connection->has_failed || peer_is_gone(all))
            return DOCA_ERROR_CONNECTION_ABORTED;
        if (time(NULL) > last)
            return DOCA_ERROR_TIME_OUT;
        doca_pe_progress(all->pe);
    }
    return DOCA_SUCCESS;
}

static doca_error_t connect_by_address(struct end* all, struct connection* connection)
{
    struct doca_rdma_addr* address;
    doca_error_t result = DOCA_SUCCESS;

    if (all->is_client) {
        result = doca_rdma_addr_create(all->settings->address_type, all->settings->server_address,
                                       (uint16_t)all->settings->address_port, &address);
        if (result != DOCA_SUCCESS)
            return result;
        ++all->made;
        result = doca_rdma_connect_to_addr(all->rdma, address, (union doca_data){.ptr = connection});
        doca_rdma_addr_destroy(address);
    }
    return result == DOCA_SUCCESS ? wait_for(all, connection, &connection->is_established) : result;
}

static doca_error_t connect_by_export(struct end* all, struct connection* connection)
{
    const void* own;
    void* of_peer = NULL;
    size_t size;
    doca_error_t result = doca_rdma_export(all->rdma, &own, &size, &connection->handle);

    if (result != DOCA_SUCCESS)
        return result;
    ++all->made;
    result = send_bytes(all, own, size);
    if (result == DOCA_SUCCESS)
        result = receive_bytes(all, &of_peer, &size);
    if (result == DOCA_SUCCESS)
        result = doca_rdma_connect(all->rdma, of_peer, size, connection->handle);
    free(of_peer);
    return result;
}

/* When it returns the peer has connected, too. */
doca_error_t make_connection(struct end* all)
{
    const unsigned index = all->made;
    struct connection* connection = &all->connections[index];
    doca_error_t result =
        all->settings->by_address ? connect_by_address(all, connection) : connect_by_export(all, connection);

    if (result == DOCA_SUCCESS)
        result = meet(all);
    if (result != DOCA_SUCCESS)
        DOCA_LOG_ERR("Connection %u is not made: %s", index, doca_error_get_descr(result));
    return result;
}

/* The connection manager tells the server; others end both sides. */
doca_error_t end_connections(struct end* all)
{
    unsigned i;
    doca_error_t result = meet(all);

    for (i = 0; i < CONNECTIONS && result == DOCA_SUCCESS; ++i) {
        struct connection* connection = &all->connections[i];
        if (all->settings->by_address && !all->is_client)
            result = wait_for(all, connection, &connection->has_ended);
        else
            result = doca_rdma_connection_disconnect(connection->handle);
        if (result != DOCA_SUCCESS)
            DOCA_LOG_ERR("Connection %u does not end: %s", i, doca_error_get_descr(result));
    }
    return result == DOCA_SUCCESS ? meet(all) : result;
}

doca_error_t destroy_context(struct end* all)
{
    enum doca_ctx_states state;
    doca_error_t result = DOCA_SUCCESS, last;

    if (all->listens) {
        last = doca_rdma_stop_listen_to_port(all->rdma, (uint16_t)all->settings->address_port);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (all->rdma_gpu) {
        last = doca_ctx_stop(all->context);
        while (last == DOCA_ERROR_IN_PROGRESS) {
            doca_pe_progress(all->pe);
            if (doca_ctx_get_state(all->context, &state) == DOCA_SUCCESS && state == DOCA_CTX_STATE_IDLE)
                last = DOCA_SUCCESS;
        }
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (all->rdma) {
        last = doca_rdma_destroy(all->rdma);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (all->pe) {
        last = doca_pe_destroy(all->pe);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    return result;
}
