#include "../dma_copy.h"

#include <doca_buf_array.h>
#include <doca_buf_inventory.h>
#include <doca_ctx.h>
#include <doca_log.h>
#include <doca_pe.h>
#include <stdlib.h>

DOCA_LOG_REGISTER(DMA_COPY::HOST);

#define TASKS 1

/* Bytes that the engine reads or writes; an array of one buffer, for the kernel. */
struct place {
    char* address;
    struct doca_mmap* mmap;
    struct doca_buf_arr* array;
    struct doca_gpu_buf_arr* array_gpu;
};

struct copier {
    struct doca_gpu* gpu;
    struct doca_dev* device;
    struct place cpu_source, gpu_destination; /* of the task */
    struct place gpu_source, cpu_destination; /* of the kernel */
    struct doca_dma* task_dma;
    struct doca_ctx* task_context;
    struct doca_pe* pe;
    struct doca_buf_inventory* inventory;
    struct doca_buf *source, *destination;
    struct doca_dma* kernel_dma;
    struct doca_ctx* kernel_context;
    struct doca_gpu_dma* kernel_dma_gpu;
};

struct task_end {
    bool has_ended;
    doca_error_t status;
};

static void task_ended(struct doca_dma_task_memcpy* task, union doca_data task_data, union doca_data context_data)
{
    struct task_end* end = task_data.ptr;

    (void)context_data;
    end->status = doca_task_get_status(doca_dma_task_memcpy_as_task(task));
    end->has_ended = true;
    doca_task_free(doca_dma_task_memcpy_as_task(task));
}

/* No permissions are set. */
static doca_error_t map_place(struct copier* all, struct place* place)
{
    doca_error_t result = doca_mmap_create(&place->mmap);

    if (result == DOCA_SUCCESS)
        result = doca_mmap_add_dev(place->mmap, all->device);
    if (result == DOCA_SUCCESS)
        result = doca_mmap_set_memrange(place->mmap, place->address, TEXT_SIZE);
    if (result == DOCA_SUCCESS)
        result = doca_mmap_start(place->mmap);
    return result;
}

static doca_error_t make_array(struct copier* all, struct place* place)
{
    doca_error_t result = doca_buf_arr_create(1, &place->array);

    if (result == DOCA_SUCCESS)
        result = doca_buf_arr_set_target_gpu(place->array, all->gpu);
    if (result == DOCA_SUCCESS)
        result = doca_buf_arr_set_params(place->array, place->mmap, TEXT_SIZE, 0);
    if (result == DOCA_SUCCESS)
        result = doca_buf_arr_start(place->array);
    if (result == DOCA_SUCCESS)
        result = doca_buf_arr_get_gpu_handle(place->array, &place->array_gpu);
    return result;
}

static doca_error_t make_cpu_place(struct copier* all, struct place* place)
{
    place->address = calloc(1, TEXT_SIZE);
    return place->address ? map_place(all, place) : DOCA_ERROR_NO_MEMORY;
}

static doca_error_t make_gpu_place(struct copier* all, struct place* place)
{
    doca_error_t result =
        doca_gpu_mem_alloc(all->gpu, TEXT_SIZE, GPU_PAGE_SIZE, DOCA_GPU_MEM_TYPE_GPU, (void**)&place->address, NULL);

    if (result == DOCA_SUCCESS && cudaMemset(place->address, 0, TEXT_SIZE) != cudaSuccess)
        result = DOCA_ERROR_DRIVER;
    if (result == DOCA_SUCCESS)
        result = map_place(all, place);
    return result;
}

static doca_error_t make_places(struct copier* all)
{
    doca_error_t result = make_cpu_place(all, &all->cpu_source);

    if (result == DOCA_SUCCESS)
        result = make_gpu_place(all, &all->gpu_destination);
    if (result == DOCA_SUCCESS)
        result = make_gpu_place(all, &all->gpu_source);
    if (result == DOCA_SUCCESS)
        result = make_cpu_place(all, &all->cpu_destination);
    if (result == DOCA_SUCCESS)
        result = make_array(all, &all->gpu_source);
    if (result == DOCA_SUCCESS)
        result = make_array(all, &all->cpu_destination);
    return result;
}

static doca_error_t make_task_dma(struct copier* all)
{
    doca_error_t result = doca_pe_create(&all->pe);

    if (result == DOCA_SUCCESS)
        result = doca_dma_create(all->device, &all->task_dma);
    if (result != DOCA_SUCCESS)
        return result;
    all->task_context = doca_dma_as_ctx(all->task_dma);
    result = doca_pe_connect_ctx(all->pe, all->task_context);
    if (result == DOCA_SUCCESS)
        result = doca_dma_task_memcpy_set_conf(all->task_dma, task_ended, task_ended, TASKS);
    if (result == DOCA_SUCCESS)
        result = doca_ctx_start(all->task_context);
    if (result == DOCA_SUCCESS)
        result = doca_buf_inventory_create(2, &all->inventory);
    if (result == DOCA_SUCCESS)
        result = doca_buf_inventory_start(all->inventory);
    return result;
}

static doca_error_t make_kernel_dma(struct copier* all)
{
    doca_error_t result = doca_dma_create(all->device, &all->kernel_dma);

    if (result != DOCA_SUCCESS)
        return result;
    all->kernel_context = doca_dma_as_ctx(all->kernel_dma);
    result = doca_ctx_set_datapath_on_gpu(all->kernel_context, all->gpu);
    if (result == DOCA_SUCCESS)
        result = doca_ctx_start(all->kernel_context);
    if (result == DOCA_SUCCESS)
        result = doca_dma_get_gpu_handle(all->kernel_dma, &all->kernel_dma_gpu);
    return result;
}

static doca_error_t copy_to_gpu(struct copier* all)
{
    struct task_end end = {false, DOCA_SUCCESS};
    struct doca_dma_task_memcpy* task;
    doca_error_t result;

    strncpy(all->cpu_source.address, TEXT_OF_CPU, TEXT_SIZE - 1);
    result = doca_buf_inventory_buf_get_by_data(all->inventory, all->cpu_source.mmap, all->cpu_source.address,
                                                TEXT_SIZE, &all->source);
    if (result == DOCA_SUCCESS)
        result = doca_buf_inventory_buf_get_by_addr(all->inventory, all->gpu_destination.mmap,
                                                    all->gpu_destination.address, TEXT_SIZE, &all->destination);
    if (result == DOCA_SUCCESS)
        result = doca_dma_task_memcpy_alloc_init(all->task_dma, all->source, all->destination,
                                                 (union doca_data){.ptr = &end}, &task);
    if (result == DOCA_SUCCESS)
        result = doca_task_submit(doca_dma_task_memcpy_as_task(task));
    if (result != DOCA_SUCCESS)
        return result;
    while (!end.has_ended)
        doca_pe_progress(all->pe);
    return end.status;
}

/* The wait reads the byte once where compilers optimize: the copy has to be there when the kernel has ended. */
static doca_error_t copy_to_cpu(struct copier* all)
{
    const char* received = all->cpu_destination.address;
    cudaStream_t stream;
    doca_error_t result;

    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
        return DOCA_ERROR_DRIVER;
    result = launch_dma_copy(stream, all->kernel_dma_gpu, all->gpu_destination.address, all->gpu_source.array_gpu,
                             all->cpu_destination.array_gpu);
    if (result == DOCA_SUCCESS && cudaStreamSynchronize(stream) != cudaSuccess)
        result = DOCA_ERROR_DRIVER;
    if (result == DOCA_SUCCESS) {
        while (received[0] == 0)
            ;
        printf("The CPU has received: %s\n", received);
    }
    cudaStreamDestroy(stream);
    return result;
}

static doca_error_t destroy_context(struct doca_dma* dma, struct doca_ctx* context, struct doca_pe* pe)
{
    enum doca_ctx_states state;
    doca_error_t result, last;

    if (dma == NULL)
        return DOCA_SUCCESS;
    result = doca_ctx_stop(context);
    while (result == DOCA_ERROR_IN_PROGRESS) {
        doca_pe_progress(pe);
        if (doca_ctx_get_state(context, &state) == DOCA_SUCCESS && state == DOCA_CTX_STATE_IDLE)
            result = DOCA_SUCCESS;
    }
    last = doca_dma_destroy(dma);
    DOCA_ERROR_PROPAGATE(result, last);
    return result;
}

static doca_error_t destroy_place(struct place* place)
{
    doca_error_t result = DOCA_SUCCESS, last;

    if (place->array) {
        last = doca_buf_arr_stop(place->array);
        DOCA_ERROR_PROPAGATE(result, last);
        last = doca_buf_arr_destroy(place->array);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    if (place->mmap) {
        last = doca_mmap_destroy(place->mmap);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    return result;
}

static doca_error_t destroy_memory(struct copier* all)
{
    struct place* places[] = {&all->cpu_source, &all->gpu_destination, &all->gpu_source, &all->cpu_destination};
    struct place* of_gpu[] = {&all->gpu_destination, &all->gpu_source};
    unsigned i;
    doca_error_t result = DOCA_SUCCESS, last;

    for (i = 0; i < sizeof places / sizeof *places; ++i) {
        last = destroy_place(places[i]);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    for (i = 0; i < sizeof of_gpu / sizeof *of_gpu; ++i)
        if (of_gpu[i]->address) {
            last = doca_gpu_mem_free(all->gpu, of_gpu[i]->address);
            DOCA_ERROR_PROPAGATE(result, last);
        }
    free(all->cpu_source.address);
    free(all->cpu_destination.address);
    return result;
}

static doca_error_t tear_down(struct copier* all)
{
    doca_error_t result = DOCA_SUCCESS, last;

    if (all->source)
        doca_buf_dec_refcount(all->source, NULL);
    if (all->destination)
        doca_buf_dec_refcount(all->destination, NULL);
    last = destroy_context(all->task_dma, all->task_context, all->pe);
    DOCA_ERROR_PROPAGATE(result, last);
    last = destroy_context(all->kernel_dma, all->kernel_context, all->pe);
    DOCA_ERROR_PROPAGATE(result, last);
    if (all->inventory) {
        last = doca_buf_inventory_destroy(all->inventory);
        DOCA_ERROR_PROPAGATE(result, last);
    }
    last = destroy_memory(all);
    DOCA_ERROR_PROPAGATE(result, last);
    if (all->pe) {
        last = doca_pe_destroy(all->pe);
        DOCA_ERROR_PROPAGATE(result, last);
    }
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

static doca_error_t set_up(const struct program_settings* settings, struct copier* all)
{
    doca_error_t result = open_device(settings->nic_pci_address, &all->device);

    if (result == DOCA_SUCCESS)
        result = doca_gpu_create(settings->gpu_pci_address, &all->gpu);
    if (result == DOCA_SUCCESS)
        result = make_places(all);
    if (result == DOCA_SUCCESS)
        result = make_task_dma(all);
    if (result == DOCA_SUCCESS)
        result = make_kernel_dma(all);
    return result;
}

doca_error_t dma_copy(const struct program_settings* settings)
{
    struct copier all = {0};
    doca_error_t result = choose_gpu(settings->gpu_pci_address), last;

    if (result != DOCA_SUCCESS)
        return result;
    result = set_up(settings, &all);
    if (result == DOCA_SUCCESS)
        result = copy_to_gpu(&all);
    if (result == DOCA_SUCCESS)
        result = copy_to_cpu(&all);
    last = tear_down(&all);
    DOCA_ERROR_PROPAGATE(result, last);
    return result;
}
