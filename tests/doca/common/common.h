/* What the programs share: the network device, its flow port, memory that the NIC maps, and options. */
#ifndef COMMON_H
#define COMMON_H

#include <doca_argp.h>
#include <doca_dev.h>
#include <doca_error.h>
#include <doca_flow.h>
#include <doca_gpunetio.h>
#include <doca_mmap.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_PCI_ADDRESS_LEN 32
#define GPU_PAGE_SIZE (1UL << 16)

/* Memory that a queue and kernels use. */
struct gpu_memory {
    void* gpu_address;
    size_t size;
    struct doca_mmap* mmap;
};

/* Standard log backend, and one for the library with its warnings. */
doca_error_t start_logging(void);

doca_error_t register_option(const char* short_name, const char* long_name, const char* arguments, const char* text,
                             doca_argp_param_cb_t callback, enum doca_argp_type type);

/* An option that may be left out. */
doca_error_t register_optional(const char* short_name, const char* long_name, const char* arguments, const char* text,
                               doca_argp_param_cb_t callback, enum doca_argp_type type);

/* An option without a value, which may be left out. */
doca_error_t register_flag(const char* short_name, const char* long_name, const char* text,
                           doca_argp_param_cb_t callback);

/* Copies an option's text. Returns DOCA_ERROR_INVALID_VALUE for a longer one. */
doca_error_t copy_pci_address(char* to, const char* from);

/* CUDA's calls of this thread are for this GPU from now on. */
doca_error_t choose_gpu(const char* pci_address);

doca_error_t open_device(const char* pci_address, struct doca_dev** device);

/* Initializes flow, and starts a port on the device. */
doca_error_t start_flow_port(struct doca_dev* device, struct doca_flow_port** port);

/* Maps size bytes that are at memory->gpu_address. memory->mmap is set first: destroy it after a failure, too. */
doca_error_t map_gpu_memory(struct doca_gpu* gpu, struct doca_dev* device, uint32_t permissions,
                            struct gpu_memory* memory);

#endif
