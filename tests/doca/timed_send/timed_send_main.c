#include <doca_argp.h>
#include <doca_log.h>
#include <stdlib.h>

#include "timed_send.h"

DOCA_LOG_REGISTER(TIMED_SEND::MAIN);

static doca_error_t set_gpu(void* value, void* settings)
{
    return copy_pci_address(((struct program_settings*)settings)->gpu_pci_address, value);
}

static doca_error_t set_nic(void* value, void* settings)
{
    return copy_pci_address(((struct program_settings*)settings)->nic_pci_address, value);
}

static doca_error_t set_interval(void* value, void* settings)
{
    const int interval_ns = *(int*)value;

    if (interval_ns <= 0) {
        DOCA_LOG_ERR("The interval is %d ns, and must be above 0", interval_ns);
        return DOCA_ERROR_INVALID_VALUE;
    }
    ((struct program_settings*)settings)->interval_ns = (uint32_t)interval_ns;
    return DOCA_SUCCESS;
}

static doca_error_t read_options(int argc, char** argv, struct program_settings* settings)
{
    doca_error_t result = doca_argp_init("timed_send", settings);

    if (result == DOCA_SUCCESS)
        result = register_option("g", "gpu", "<GPU PCI address>", "GPU that runs the kernel", set_gpu,
                                 DOCA_ARGP_TYPE_STRING);
    if (result == DOCA_SUCCESS)
        result = register_option("n", "nic", "<NIC PCI address>", "Network device that sends", set_nic,
                                 DOCA_ARGP_TYPE_STRING);
    if (result == DOCA_SUCCESS)
        result =
            register_option("t", "time", "<nanoseconds>", "Time from burst to burst", set_interval, DOCA_ARGP_TYPE_INT);
    if (result == DOCA_SUCCESS)
        result = doca_argp_start(argc, argv);
    return result;
}

int main(int argc, char** argv)
{
    struct program_settings settings = {{0}, {0}, 0};
    doca_error_t result = start_logging();

    if (result != DOCA_SUCCESS)
        return EXIT_FAILURE;
    result = read_options(argc, argv, &settings);
    if (result != DOCA_SUCCESS) {
        DOCA_LOG_ERR("Options: %s", doca_error_get_descr(result));
        return EXIT_FAILURE;
    }
    DOCA_LOG_INFO("GPU %s, NIC %s, %u ns", settings.gpu_pci_address, settings.nic_pci_address, settings.interval_ns);
    result = timed_send(&settings);
    doca_argp_destroy();
    if (result != DOCA_SUCCESS) {
        DOCA_LOG_ERR("timed_send: %s", doca_error_get_descr(result));
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
