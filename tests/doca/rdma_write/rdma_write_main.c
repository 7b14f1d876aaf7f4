#include <doca_argp.h>
#include <doca_log.h>
#include <stdlib.h>

#include "rdma_write.h"

DOCA_LOG_REGISTER(RDMA_WRITE::MAIN);

static doca_error_t copy_text(char* to, size_t size, const char* from)
{
    if (strlen(from) >= size) {
        DOCA_LOG_ERR("\"%s\" has more than %zu characters", from, size - 1);
        return DOCA_ERROR_INVALID_VALUE;
    }
    strcpy(to, from);
    return DOCA_SUCCESS;
}

static doca_error_t copy_number(int* to, int from, int most)
{
    if (from < 0 || from > most) {
        DOCA_LOG_ERR("%d is not 0 to %d", from, most);
        return DOCA_ERROR_INVALID_VALUE;
    }
    *to = from;
    return DOCA_SUCCESS;
}

static doca_error_t set_device(void* value, void* settings)
{
    struct program_settings* all = settings;

    return copy_text(all->device_name, sizeof all->device_name, value);
}

static doca_error_t set_gpu(void* value, void* settings)
{
    return copy_pci_address(((struct program_settings*)settings)->gpu_pci_address, value);
}

static doca_error_t set_server_ip(void* value, void* settings)
{
    struct program_settings* all = settings;

    return copy_text(all->server_ip, sizeof all->server_ip, value);
}

static doca_error_t set_gid(void* value, void* settings)
{
    return copy_number(&((struct program_settings*)settings)->gid_index, *(int*)value, 255);
}

static doca_error_t set_socket_port(void* value, void* settings)
{
    return copy_number(&((struct program_settings*)settings)->socket_port, *(int*)value, 65535);
}

static doca_error_t set_by_address(void* value, void* settings)
{
    ((struct program_settings*)settings)->by_address = *(bool*)value;
    return DOCA_SUCCESS;
}

static doca_error_t set_address_port(void* value, void* settings)
{
    return copy_number(&((struct program_settings*)settings)->address_port, *(int*)value, 65535);
}

static doca_error_t set_server_address(void* value, void* settings)
{
    struct program_settings* all = settings;

    return copy_text(all->server_address, sizeof all->server_address, value);
}

static doca_error_t set_address_type(void* value, void* settings)
{
    struct program_settings* all = settings;

    if (strcmp(value, "IPv4") == 0)
        all->address_type = DOCA_RDMA_ADDR_TYPE_IPv4;
    else if (strcmp(value, "IPv6") == 0)
        all->address_type = DOCA_RDMA_ADDR_TYPE_IPv6;
    else if (strcmp(value, "GID") == 0)
        all->address_type = DOCA_RDMA_ADDR_TYPE_GID;
    else {
        DOCA_LOG_ERR("\"%s\" is not IPv4, IPv6 or GID", (const char*)value);
        return DOCA_ERROR_INVALID_VALUE;
    }
    return DOCA_SUCCESS;
}

static doca_error_t register_addresses(void)
{
    doca_error_t result = register_flag("cm", "use-rdma-cm", "Connect by RDMA's connection manager", set_by_address);

    if (result == DOCA_SUCCESS)
        result = register_optional("p", "port", "<number>", "Port of the connection manager, 13579 by default",
                                   set_address_port, DOCA_ARGP_TYPE_INT);
    if (result == DOCA_SUCCESS)
        result = register_optional("sa", "server-addr", "<address>", "RDMA address of the server", set_server_address,
                                   DOCA_ARGP_TYPE_STRING);
    if (result == DOCA_SUCCESS)
        result = register_optional("sat", "server-addr-type", "<IPv4|IPv6|GID>", "What -sa is, IPv4 by default",
                                   set_address_type, DOCA_ARGP_TYPE_STRING);
    return result;
}

static doca_error_t read_options(int argc, char** argv, struct program_settings* settings)
{
    doca_error_t result = doca_argp_init("rdma_write", settings);

    if (result == DOCA_SUCCESS)
        result = register_option("d", "device", "<RDMA device name>", "Device of the connections", set_device,
                                 DOCA_ARGP_TYPE_STRING);
    if (result == DOCA_SUCCESS)
        result = register_option("gpu", "gpu-address", "<GPU PCI address>", "GPU that runs the kernels", set_gpu,
                                 DOCA_ARGP_TYPE_STRING);
    if (result == DOCA_SUCCESS)
        result = register_optional("c", "client", "<server IPv4 address>", "Be the client of this server",
                                   set_server_ip, DOCA_ARGP_TYPE_STRING);
    if (result == DOCA_SUCCESS)
        result =
            register_optional("gid", "gid-index", "<number>", "GID index of the device", set_gid, DOCA_ARGP_TYPE_INT);
    if (result == DOCA_SUCCESS)
        result = register_optional("oob", "oob-port", "<number>",
                                   "TCP port on which the two programs meet, 2000 by default; 0: any, of the server",
                                   set_socket_port, DOCA_ARGP_TYPE_INT);
    if (result == DOCA_SUCCESS)
        result = register_addresses();
    if (result == DOCA_SUCCESS)
        result = doca_argp_start(argc, argv);
    return result;
}

int main(int argc, char** argv)
{
    struct program_settings settings = {.gid_index = -1, .socket_port = 2000, .address_port = 13579};
    doca_error_t result = start_logging();

    if (result != DOCA_SUCCESS)
        return EXIT_FAILURE;
    result = read_options(argc, argv, &settings);
    if (result == DOCA_SUCCESS && settings.by_address && settings.server_ip[0] && !settings.server_address[0]) {
        DOCA_LOG_ERR("A client with -cm needs -sa");
        result = DOCA_ERROR_INVALID_VALUE;
    }
    if (result != DOCA_SUCCESS) {
        DOCA_LOG_ERR("Options: %s", doca_error_get_descr(result));
        return EXIT_FAILURE;
    }
    result = rdma_write(&settings);
    doca_argp_destroy();
    if (result != DOCA_SUCCESS) {
        DOCA_LOG_ERR("rdma_write: %s", doca_error_get_descr(result));
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
