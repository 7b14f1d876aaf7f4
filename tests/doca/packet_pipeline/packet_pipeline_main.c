#include <doca_argp.h>
#include <doca_log.h>
#include <doca_version.h>
#include <stdlib.h>

#include "packet_pipeline.h"

DOCA_LOG_REGISTER(PACKET_PIPELINE::MAIN);

static doca_error_t set_gpu(void* value, void* settings)
{
    return copy_pci_address(((struct program_settings*)settings)->gpu_pci_address, value);
}

static doca_error_t set_nic(void* value, void* settings)
{
    return copy_pci_address(((struct program_settings*)settings)->nic_pci_address, value);
}

static doca_error_t set_queues(void* value, void* settings)
{
    const int queues = *(int*)value;

    if (queues < 1 || queues > MAX_QUEUES) {
        DOCA_LOG_ERR("There may be 1 to %d queues, not %d", MAX_QUEUES, queues);
        return DOCA_ERROR_INVALID_VALUE;
    }
    ((struct program_settings*)settings)->queues = (uint32_t)queues;
    return DOCA_SUCCESS;
}

static doca_error_t set_server(void* value, void* settings)
{
    ((struct program_settings*)settings)->is_server = *(bool*)value;
    return DOCA_SUCCESS;
}

static doca_error_t print_version(void* value, void* settings)
{
    (void)value;
    (void)settings;
    printf("packet_pipeline, built with %s, runs with %s\n", doca_version(), doca_version_runtime());
    doca_argp_destroy();
    exit(EXIT_SUCCESS);
}

static doca_error_t read_options(int argc, char** argv, struct program_settings* settings)
{
    doca_error_t result = doca_argp_init("packet_pipeline", settings);

    if (result == DOCA_SUCCESS)
        result = register_option("g", "gpu", "<GPU PCI address>", "GPU that runs the kernels", set_gpu,
                                 DOCA_ARGP_TYPE_STRING);
    if (result == DOCA_SUCCESS)
        result = register_option("n", "nic", "<NIC PCI address>", "Network device", set_nic, DOCA_ARGP_TYPE_STRING);
    if (result == DOCA_SUCCESS)
        result = register_option("q", "queue", "<number>", "Queues of UDP, and of TCP: 1 to 4", set_queues,
                                 DOCA_ARGP_TYPE_INT);
    if (result == DOCA_SUCCESS)
        result = register_flag("s", "server", "TCP reaches the GPU from accepted connections only", set_server);
    if (result == DOCA_SUCCESS)
        result = doca_argp_register_version_callback(print_version);
    if (result == DOCA_SUCCESS)
        result = doca_argp_start(argc, argv);
    return result;
}

int main(int argc, char** argv)
{
    struct program_settings settings = {{0}, {0}, 0, false};
    doca_error_t result = start_logging();

    if (result != DOCA_SUCCESS)
        return EXIT_FAILURE;
    result = read_options(argc, argv, &settings);
    if (result != DOCA_SUCCESS) {
        DOCA_LOG_ERR("Options: %s", doca_error_get_descr(result));
        return EXIT_FAILURE;
    }
    DOCA_LOG_INFO("GPU %s, NIC %s, %u queues%s", settings.gpu_pci_address, settings.nic_pci_address, settings.queues,
                  settings.is_server ? ", server" : "");
    result = packet_pipeline(&settings);
    doca_argp_destroy();
    if (result != DOCA_SUCCESS) {
        DOCA_LOG_ERR("packet_pipeline: %s", doca_error_get_descr(result));
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
