#include <doca_argp.h>
#include <doca_log.h>
#include <stdlib.h>

#include "dma_copy.h"

DOCA_LOG_REGISTER(DMA_COPY::MAIN);

static doca_error_t set_gpu(void* value, void* settings)
{
    return copy_pci_address(((struct program_settings*)settings)->gpu_pci_address, value);
}

static doca_error_t set_nic(void* value, void* settings)
{
    return copy_pci_address(((struct program_settings*)settings)->nic_pci_address, value);
}

static doca_error_t read_options(int argc, char** argv, struct program_settings* settings)
{
    doca_error_t result = doca_argp_init("dma_copy", settings);

    if (result == DOCA_SUCCESS)
        result = register_option("g", "gpu", "<GPU PCI address>", "GPU that runs the kernel", set_gpu,
                                 DOCA_ARGP_TYPE_STRING);
    if (result == DOCA_SUCCESS)
        result = register_option("n", "nic", "<NIC PCI address>", "Device whose engine copies", set_nic,
                                 DOCA_ARGP_TYPE_STRING);
    if (result == DOCA_SUCCESS)
        result = doca_argp_start(argc, argv);
    return result;
}

int main(int argc, char** argv)
{
    struct program_settings settings = {{0}, {0}};
    doca_error_t result = start_logging();

    if (result != DOCA_SUCCESS)
        return EXIT_FAILURE;
    result = read_options(argc, argv, &settings);
    if (result != DOCA_SUCCESS) {
        DOCA_LOG_ERR("Options: %s", doca_error_get_descr(result));
        return EXIT_FAILURE;
    }
    DOCA_LOG_INFO("GPU %s, NIC %s", settings.gpu_pci_address, settings.nic_pci_address);
    result = dma_copy(&settings);
    doca_argp_destroy();
    if (result != DOCA_SUCCESS) {
        DOCA_LOG_ERR("dma_copy: %s", doca_error_get_descr(result));
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
