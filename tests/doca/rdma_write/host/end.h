/* One end of the connections: this program, which is the client or the server. */
#ifndef END_H
#define END_H

#include <doca_buf_array.h>
#include <doca_ctx.h>
#include <doca_pe.h>

#include "../rdma_write.h"

/* Memory of this GPU or of the peer, as an array of an element for each connection. */
struct buffer {
    struct gpu_memory memory; /* of the peer: only the mmap */
    struct doca_buf_arr* array;
    struct doca_gpu_buf_arr* array_gpu;
};

/* What callbacks have told. */
struct connection {
    struct doca_rdma_connection* handle;
    bool is_established, has_failed, has_ended;
};

struct end {
    const struct program_settings* settings;
    bool is_client;
    int socket; /* to the peer's program, or -1 */
    struct doca_dev* device;
    struct doca_gpu* gpu;
    struct buffer a, b, c, remote_b, remote_c;
    struct kernel_report *reports_gpu, *reports; /* of each connection */
    cudaStream_t streams[CONNECTIONS];
    bool kernel_runs;
    struct doca_rdma* rdma;
    struct doca_ctx* context;
    struct doca_pe* pe;
    struct doca_gpu_dev_rdma* rdma_gpu;
    bool listens;
    struct connection connections[CONNECTIONS];
    unsigned made; /* connections that were begun or accepted */
};

/* socket.c */
doca_error_t meet_peer(struct end* all);
doca_error_t send_bytes(struct end* all, const void* bytes, size_t size);
/* Allocates the bytes, which the caller frees. */
doca_error_t receive_bytes(struct end* all, void** bytes, size_t* size);
/* Both programs wait for each other here. */
doca_error_t meet(struct end* all);
bool peer_is_gone(struct end* all);

/* memory.c */
doca_error_t make_memory(struct end* all);
doca_error_t exchange_memory(struct end* all);
doca_error_t check_written(struct end* all, unsigned connection);
doca_error_t destroy_memory(struct end* all);

/* connection.c */
doca_error_t make_context(struct end* all);
/* Of the server with -cm: connections may come from now on. */
doca_error_t listen_to_peers(struct end* all);
doca_error_t make_connection(struct end* all);
doca_error_t end_connections(struct end* all);
doca_error_t destroy_context(struct end* all);

#endif
