#include "common.h"

#include <cuda_runtime_api.h>
#include <doca_log.h>
#include <stdio.h>

DOCA_LOG_REGISTER(PROGRAM::COMMON);

doca_error_t start_logging(void)
{
    struct doca_log_backend* library_log;
    doca_error_t result = doca_log_backend_create_standard();

    if (result != DOCA_SUCCESS)
        return result;
    result = doca_log_backend_create_with_file_sdk(stderr, &library_log);
    if (result != DOCA_SUCCESS)
        return result;
    return doca_log_backend_set_sdk_level(library_log, DOCA_LOG_LEVEL_WARNING);
}

static doca_error_t make_option(const char* short_name, const char* long_name, const char* text,
                                doca_argp_param_cb_t callback, enum doca_argp_type type,
                                struct doca_argp_param** option)
{
    doca_error_t result = doca_argp_param_create(option);

    if (result != DOCA_SUCCESS) {
        DOCA_LOG_ERR("No option is made: %s", doca_error_get_descr(result));
        return result;
    }
    doca_argp_param_set_short_name(*option, short_name);
    doca_argp_param_set_long_name(*option, long_name);
    doca_argp_param_set_description(*option, text);
    doca_argp_param_set_callback(*option, callback);
    doca_argp_param_set_type(*option, type);
    return DOCA_SUCCESS;
}

static doca_error_t register_made(const char* short_name, struct doca_argp_param* option)
{
    doca_error_t result = doca_argp_register_param(option);

    if (result != DOCA_SUCCESS)
        DOCA_LOG_ERR("Option -%s is not registered: %s", short_name, doca_error_get_descr(result));
    return result;
}

doca_error_t register_option(const char* short_name, const char* long_name, const char* arguments, const char* text,
                             doca_argp_param_cb_t callback, enum doca_argp_type type)
{
    struct doca_argp_param* option;
    doca_error_t result = make_option(short_name, long_name, text, callback, type, &option);

    if (result != DOCA_SUCCESS)
        return result;
    doca_argp_param_set_arguments(option, arguments);
    doca_argp_param_set_mandatory(option);
    return register_made(short_name, option);
}

doca_error_t register_optional(const char* short_name, const char* long_name, const char* arguments, const char* text,
                               doca_argp_param_cb_t callback, enum doca_argp_type type)
{
    struct doca_argp_param* option;
    doca_error_t result = make_option(short_name, long_name, text, callback, type, &option);

    if (result != DOCA_SUCCESS)
        return result;
    doca_argp_param_set_arguments(option, arguments);
    return register_made(short_name, option);
}

doca_error_t register_flag(const char* short_name, const char* long_name, const char* text,
                           doca_argp_param_cb_t callback)
{
    struct doca_argp_param* option;
    doca_error_t result = make_option(short_name, long_name, text, callback, DOCA_ARGP_TYPE_BOOLEAN, &option);

    return result == DOCA_SUCCESS ? register_made(short_name, option) : result;
}

doca_error_t copy_pci_address(char* to, const char* from)
{
    const size_t length = strnlen(from, DOCA_DEVINFO_PCI_ADDR_SIZE);

    if (length >= DOCA_DEVINFO_PCI_ADDR_SIZE) {
        DOCA_LOG_ERR("A PCI address has at most %d characters", DOCA_DEVINFO_PCI_ADDR_SIZE - 1);
        return DOCA_ERROR_INVALID_VALUE;
    }
    strncpy(to, from, length + 1);
    return DOCA_SUCCESS;
}

doca_error_t choose_gpu(const char* pci_address)
{
    int number;

    if (cudaDeviceGetByPCIBusId(&number, pci_address) != cudaSuccess || cudaSetDevice(number) != cudaSuccess ||
        cudaFree(NULL) != cudaSuccess) {
        DOCA_LOG_ERR("No GPU at %s", pci_address);
        return DOCA_ERROR_NOT_FOUND;
    }
    return DOCA_SUCCESS;
}

doca_error_t open_device(const char* pci_address, struct doca_dev** device)
{
    struct doca_devinfo** list;
    uint32_t count, i;
    uint8_t is_it = 0;
    doca_error_t result = doca_devinfo_create_list(&list, &count);

    if (result != DOCA_SUCCESS) {
        DOCA_LOG_ERR("No list of devices: %s", doca_error_get_descr(result));
        return result;
    }
    result = DOCA_ERROR_NOT_FOUND;
    for (i = 0; i < count; ++i) {
        if (doca_devinfo_is_equal_pci_addr(list[i], pci_address, &is_it) == DOCA_SUCCESS && is_it) {
            result = doca_dev_open(list[i], device);
            break;
        }
    }
    if (result != DOCA_SUCCESS)
        DOCA_LOG_ERR("Device %s, one of %u, is not opened: %s", pci_address, count, doca_error_get_descr(result));
    doca_devinfo_destroy_list(list);
    return result;
}

static doca_error_t init_flow(void)
{
    struct doca_flow_cfg* settings;
    doca_error_t result = doca_flow_cfg_create(&settings), last;

    if (result != DOCA_SUCCESS)
        return result;
    result = doca_flow_cfg_set_pipe_queues(settings, 1);
    if (result == DOCA_SUCCESS)
        result = doca_flow_cfg_set_mode_args(settings, "vnf,hws,isolated,use_doca_eth");
    if (result == DOCA_SUCCESS)
        result = doca_flow_cfg_set_nr_counters(settings, 524228);
    if (result == DOCA_SUCCESS)
        result = doca_flow_init(settings);
    last = doca_flow_cfg_destroy(settings);
    DOCA_ERROR_PROPAGATE(result, last);
    return result;
}

doca_error_t start_flow_port(struct doca_dev* device, struct doca_flow_port** port)
{
    struct doca_flow_port_cfg* settings;
    doca_error_t result = init_flow();

    if (result != DOCA_SUCCESS) {
        DOCA_LOG_ERR("Flow is not initialized: %s", doca_error_get_descr(result));
        return result;
    }
    result = doca_flow_port_cfg_create(&settings); /* never destroyed, as in the programs that people have */
    if (result == DOCA_SUCCESS)
        result = doca_flow_port_cfg_set_dev(settings, device);
    if (result == DOCA_SUCCESS)
        result = doca_flow_port_start(settings, port);
    if (result != DOCA_SUCCESS)
        DOCA_LOG_ERR("No flow port: %s", doca_error_get_descr(result));
    return result;
}

doca_error_t map_gpu_memory(struct doca_gpu* gpu, struct doca_dev* device, uint32_t permissions,
                            struct gpu_memory* memory)
{
    int descriptor;
    doca_error_t result = doca_mmap_create(&memory->mmap);

    if (result == DOCA_SUCCESS)
        result = doca_mmap_add_dev(memory->mmap, device);
    if (result != DOCA_SUCCESS)
        return result;
    if (doca_gpu_dmabuf_fd(gpu, memory->gpu_address, memory->size, &descriptor) == DOCA_SUCCESS) {
        DOCA_LOG_INFO("Memory at %p, %zu bytes, is mapped by dma-buf", memory->gpu_address, memory->size);
        result = doca_mmap_set_dmabuf_memrange(memory->mmap, descriptor, memory->gpu_address, 0, memory->size);
    } else {
        DOCA_LOG_INFO("Memory at %p, %zu bytes, is mapped by its address", memory->gpu_address, memory->size);
        result = doca_mmap_set_memrange(memory->mmap, memory->gpu_address, memory->size);
    }
    if (result == DOCA_SUCCESS)
        result = doca_mmap_set_permissions(memory->mmap, permissions);
    if (result == DOCA_SUCCESS)
        result = doca_mmap_start(memory->mmap);
    return result;
}
