/* Kernels of a client write into buffers of a server and send it a text, over two connections of one RDMA context. */
#ifndef RDMA_WRITE_H
#define RDMA_WRITE_H

#include <cuda_runtime_api.h>
#include <doca_error.h>
#include <doca_rdma.h>

#include "common.h"

#define CONNECTIONS 2
#define THREADS 2
#define RECEIVES 3 /* of each connection: two WRITEs with an immediate, and a message */
#define NO_IMMEDIATE 0xffffffffU
#define TEXT_OF_SERVER "nothing yet"
#define TEXT_OF_CLIENT "B and C are written by connection " /* and its index, one digit */
#define TEXT_SIZE 64
#define WRITTEN_BYTES 16384UL /* of a buffer, by each connection: several packets */

/* B is 0 and C is 1: what a connection writes there, and the immediate. */
#define BYTE_OF(buffer, connection, i) ((uint8_t)(1 + (buffer)*97 + (connection)*31 + (i)*7 + (i) / 256))
#define IMMEDIATE_OF(buffer, connection) (1000U + 1000U * (buffer) + (connection))

struct program_settings {
    char device_name[DOCA_DEVINFO_IBDEV_NAME_SIZE];
    char gpu_pci_address[MAX_PCI_ADDRESS_LEN];
    char server_ip[64]; /* empty: this is the server */
    int gid_index;      /* -1: not set */
    int socket_port;
    bool by_address; /* connections are made by the connection manager of RDMA */
    int address_port;
    char server_address[64]; /* of RDMA */
    enum doca_rdma_addr_type address_type;
};

struct doca_gpu_buf_arr;

/* The CPU starts the kernel of the client; both kernels tell the CPU how far they are. */
struct kernel_report {
    uint32_t may_write;
    uint32_t has_posted;
    uint32_t has_ended;
    uint32_t error; /* of doca_error_t */
    uint32_t count; /* of commits, or of receives */
    uint32_t immediates[RECEIVES];
};

/* What a kernel uses. Each array has an element for each connection. */
struct kernel_arguments {
    struct doca_gpu_dev_rdma* rdma;
    uint32_t connection;
    struct doca_gpu_buf_arr* a;         /* of texts */
    struct doca_gpu_buf_arr* local[2];  /* B and C; of the client */
    struct doca_gpu_buf_arr* remote[2]; /* B and C of the server; of the client */
    struct kernel_report* report;
};

#ifdef __cplusplus
extern "C" {
#endif

doca_error_t rdma_write(const struct program_settings* settings);

/* Starts a kernel of THREADS threads, which waits for report->may_write. It writes B and C, then sends A. */
doca_error_t launch_client(cudaStream_t stream, struct kernel_arguments arguments);

/* Starts a kernel of one thread: it posts receives, waits for all, and prints A before and after that. */
doca_error_t launch_server(cudaStream_t stream, struct kernel_arguments arguments);

#ifdef __cplusplus
}
#endif

#endif
