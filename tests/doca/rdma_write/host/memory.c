#include <doca_log.h>
#include <stdlib.h>

#include "end.h"

DOCA_LOG_REGISTER(RDMA_WRITE::MEMORY);

static doca_error_t make_array(struct end* all, struct buffer* buffer, size_t element_size)
{
    doca_error_t result = doca_buf_arr_create(CONNECTIONS, &buffer->array);

    if (result == DOCA_SUCCESS)
        result = doca_buf_arr_set_target_gpu(buffer->array, all->gpu);
    if (result == DOCA_SUCCESS)
        result = doca_buf_arr_set_params(buffer->array, buffer->memory.mmap, element_size, 0);
    if (result == DOCA_SUCCESS)
        result = doca_buf_arr_start(buffer->array);
    if (result == DOCA_SUCCESS)
        result = doca_buf_arr_get_gpu_handle(buffer->array, &buffer->array_gpu);
    return result;
}

static doca_error_t make_buffer(struct end* all, struct buffer* buffer, size_t element_size)
{
    const uint32_t permissions =
        DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE | DOCA_ACCESS_FLAG_PCI_RELAXED_ORDERING;
    doca_error_t result;

    buffer->memory.size = CONNECTIONS * element_size;
    result = doca_gpu_mem_alloc(all->gpu, buffer->memory.size, GPU_PAGE_SIZE, DOCA_GPU_MEM_TYPE_GPU,
                                &buffer->memory.gpu_address, NULL);
    if (result == DOCA_SUCCESS && cudaMemset(buffer->memory.gpu_address, 0, buffer->memory.size) != cudaSuccess)
        result = DOCA_ERROR_DRIVER;
    if (result == DOCA_SUCCESS)
        result = map_gpu_memory(all->gpu, all->device, permissions, &buffer->memory);
    if (result == DOCA_SUCCESS)
        result = make_array(all, buffer, element_size);
    return result;
}

static doca_error_t make_reports(struct end* all)
{
    doca_error_t result =
        doca_gpu_mem_alloc(all->gpu, CONNECTIONS * sizeof *all->reports, GPU_PAGE_SIZE, DOCA_GPU_MEM_TYPE_GPU_CPU,
                           (void**)&all->reports_gpu, (void**)&all->reports);

    if (result == DOCA_SUCCESS)
        memset(all->reports, 0, CONNECTIONS * sizeof *all->reports);
    return result;
}

/* All of it before a kernel runs: CUDA's calls might wait for that. */
doca_error_t make_memory(struct end* all)
{
    unsigned i;
    doca_error_t result = make_buffer(all, &all->a, TEXT_SIZE);

    if (result == DOCA_SUCCESS)
        result = make_buffer(all, &all->b, WRITTEN_BYTES);
    if (result == DOCA_SUCCESS)
        result = make_buffer(all, &all->c, WRITTEN_BYTES);
    if (result == DOCA_SUCCESS)
        result = make_reports(all);
    for (i = 0; i < CONNECTIONS && result == DOCA_SUCCESS; ++i) {
        if (cudaMemcpy((char*)all->a.memory.gpu_address + i * TEXT_SIZE, TEXT_OF_SERVER, sizeof TEXT_OF_SERVER,
                       cudaMemcpyDefault) != cudaSuccess ||
            cudaStreamCreateWithFlags(&all->streams[i], cudaStreamNonBlocking) != cudaSuccess)
            result = DOCA_ERROR_DRIVER;
    }
    if (result != DOCA_SUCCESS)
        DOCA_LOG_ERR("No memory or streams: %s", doca_error_get_descr(result));
    return result;
}

static doca_error_t send_memory(struct end* all, struct buffer* buffer)
{
    const void* descriptor;
    size_t size;
    doca_error_t result = doca_mmap_export_rdma(buffer->memory.mmap, all->device, &descriptor, &size);

    return result == DOCA_SUCCESS ? send_bytes(all, descriptor, size) : result;
}

static doca_error_t receive_memory(struct end* all, struct buffer* buffer)
{
    void* descriptor;
    size_t size;
    doca_error_t result = receive_bytes(all, &descriptor, &size);

    if (result == DOCA_SUCCESS)
        result = doca_mmap_create_from_export(NULL, descriptor, size, all->device, &buffer->memory.mmap);
    free(descriptor);
    if (result == DOCA_SUCCESS)
        result = make_array(all, buffer, WRITTEN_BYTES);
    return result;
}

/* The client learns B and C of the server. */
doca_error_t exchange_memory(struct end* all)
{
    doca_error_t result = all->is_client ? receive_memory(all, &all->remote_b) : send_memory(all, &all->b);

    if (result == DOCA_SUCCESS)
        result = all->is_client ? receive_memory(all, &all->remote_c) : send_memory(all, &all->c);
    if (result != DOCA_SUCCESS)
        DOCA_LOG_ERR("The client does not learn the memory of the server: %s", doca_error_get_descr(result));
    return result;
}

static doca_error_t check_buffer(struct buffer* buffer, unsigned which, unsigned connection)
{
    static uint8_t bytes[WRITTEN_BYTES];
    size_t i;

    if (cudaMemcpy(bytes, (char*)buffer->memory.gpu_address + connection * WRITTEN_BYTES, WRITTEN_BYTES,
                   cudaMemcpyDefault) != cudaSuccess)
        return DOCA_ERROR_DRIVER;
    for (i = 0; i < WRITTEN_BYTES; ++i)
        if (bytes[i] != BYTE_OF(which, connection, i)) {
            DOCA_LOG_ERR("Connection %u: byte %zu of %c is %u, not %u", connection, i, "BC"[which], bytes[i],
                         BYTE_OF(which, connection, i));
            return DOCA_ERROR_UNEXPECTED;
        }
    return DOCA_SUCCESS;
}

doca_error_t check_written(struct end* all, unsigned connection)
{
    doca_error_t result = check_buffer(&all->b, 0, connection);

    if (result == DOCA_SUCCESS)
        result = check_buffer(&all->c, 1, connection);
    if (result == DOCA_SUCCESS)
        printf("Connection %u: %lu bytes of B and of C are the client's\n", connection, WRITTEN_BYTES);
    return result;
}

static doca_error_t destroy_buffer(struct end* all, struct buffer* buffer)
{
    doca_error_t result = DOCA_SUCCESS, last;

    if (buffer->array) {
        last = doca_buf_arr_stop(buffer->array);
        DOCA_ERROR_PROPAGATE(result, last);
        last = doca_buf_arr_destroy(buffer->array);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (buffer->memory.mmap) {
        last = doca_mmap_destroy(buffer->memory.mmap);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (buffer->memory.gpu_address) {
        last = doca_gpu_mem_free(all->gpu, buffer->memory.gpu_address);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    return result;
}

doca_error_t destroy_memory(struct end* all)
{
    struct buffer* buffers[] = {&all->a, &all->b, &all->c, &all->remote_b, &all->remote_c};
    unsigned i;
    doca_error_t result = DOCA_SUCCESS, last;

    for (i = 0; i < sizeof buffers / sizeof *buffers; ++i) {
        last = destroy_buffer(all, buffers[i]);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (all->reports_gpu) {
        last = doca_gpu_mem_free(all->gpu, all->reports_gpu);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    for (i = 0; i < CONNECTIONS; ++i)
        if (all->streams[i])
            cudaStreamDestroy(all->streams[i]);
    return result;
}
