/**
 * RDMA: kernels write, read and send to peers (doca_gpunetio_dev_rdma.cuh).
 *
 * Life: create, configure, doca_ctx_set_datapath_on_gpu(), doca_ctx_start(), connect, use. A context has one or several
 * connections, which kernels name by their index: 0 is the first that was exported, accepted or begun, 1 the next. A
 * connection comes about in one of two ways:
 *
 * - doca_rdma_export() here and at the peer, each side's bytes travel to the other by any channel, doca_rdma_connect();
 * - the connection manager of RDMA: one side listens and accepts, the other calls doca_rdma_connect_to_addr(). Each
 *   device has one connection manager, so one of its contexts at a time listens or connects by it.
 *
 * Callbacks are called by doca_pe_progress(), and without a progress engine by the functions that cause them. No call
 * waits for a kernel.
 *
 * All functions return DOCA_SUCCESS or DOCA_ERROR_INVALID_VALUE (a null pointer, no such object, a value out of range).
 * DOCA_ERROR_BAD_STATE: the context is started and may not be, or the other way round.
 */
#pragma once

#include "doca_mmap.h"
#include "doca_pe.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_rdma;
struct doca_rdma_connection; /**< lives until its context is stopped or destroyed, or its index has a new one */
struct doca_rdma_addr;
struct doca_gpu_dev_rdma; /**< of kernels: doca_gpunetio_dev_rdma.cuh */

enum doca_rdma_addr_type {
    DOCA_RDMA_ADDR_TYPE_IPv4 = 0,
    DOCA_RDMA_ADDR_TYPE_IPv6 = 1,
    DOCA_RDMA_ADDR_TYPE_GID = 2 /**< written as an IPv6 address; ::ffff:a.b.c.d is an IPv4 address */
};

/** A peer asks for a connection: accept it in the callback or later. */
typedef void (*doca_rdma_connection_request_cb_t)(struct doca_rdma_connection *connection,
                                                  union doca_data ctx_user_data);
/** A connection is there. */
typedef void (*doca_rdma_connection_established_cb_t)(struct doca_rdma_connection *connection,
                                                      union doca_data connection_user_data,
                                                      union doca_data ctx_user_data);
/** doca_rdma_connect_to_addr() has failed later; the log tells why. */
typedef void (*doca_rdma_connection_failure_cb_t)(struct doca_rdma_connection *connection,
                                                  union doca_data connection_user_data, union doca_data ctx_user_data);
/** The peer has disconnected, or the connection has failed, which the log tells. */
typedef void (*doca_rdma_connection_disconnection_cb_t)(struct doca_rdma_connection *connection,
                                                        union doca_data connection_user_data,
                                                        union doca_data ctx_user_data);

doca_error_t doca_rdma_create(struct doca_dev *dev, struct doca_rdma **rdma);
/** Destroys a context in any state. Connections end without a callback. */
doca_error_t doca_rdma_destroy(struct doca_rdma *rdma);
/** The context, which has the same life; NULL if there is no such object. */
struct doca_ctx *doca_rdma_as_ctx(struct doca_rdma *rdma);
/** What peers may do: DOCA_ACCESS_FLAG_*, of which those of RDMA matter. By default nothing but messages. */
doca_error_t doca_rdma_set_permissions(struct doca_rdma *rdma, uint32_t access_flags);
/**
 * Which address of the device: 0 (by default), 2 or 3 its address of WEFTIO_DOCA_DEVICES, or if that names none,
 * 198.18.x.y with the end of the MAC; 1 the link-local IPv6 address of its MAC.
 */
doca_error_t doca_rdma_set_gid_index(struct doca_rdma *rdma, uint32_t gid_index);
/** Entries of the send queue of each connection, 1 to 32,768: the next power of two, at least 64; by default 1024. */
doca_error_t doca_rdma_set_send_queue_size(struct doca_rdma *rdma, uint32_t entries);
/** The same of the one receive queue. With several connections the largest has room for 32,767 receives. */
doca_error_t doca_rdma_set_recv_queue_size(struct doca_rdma *rdma, uint32_t entries);
/** Accepted: packets of RoCE always have this header. */
doca_error_t doca_rdma_set_grh_enabled(struct doca_rdma *rdma, uint8_t enable);
/** The most connections at a time, 1 (by default) to 4096. All share one receive queue. */
doca_error_t doca_rdma_set_max_num_connections(struct doca_rdma *rdma, uint16_t connections);
/** Each callback may be NULL. A request that nobody hears of is rejected. */
doca_error_t doca_rdma_set_connection_state_callbacks(struct doca_rdma *rdma,
                                                      doca_rdma_connection_request_cb_t on_request,
                                                      doca_rdma_connection_established_cb_t on_established,
                                                      doca_rdma_connection_failure_cb_t on_failure,
                                                      doca_rdma_connection_disconnection_cb_t on_disconnection);
/** DOCA_SUCCESS: every device writes. */
doca_error_t doca_rdma_cap_task_write_is_supported(const struct doca_devinfo *devinfo);

/**
 * Takes the next index for a connection.
 *
 * @param[out] descriptor  what the peer passes to doca_rdma_connect(): text, of which `*bytes` includes the terminating
 *                         zero. Stays valid as long as the connection
 * @return DOCA_ERROR_FULL all indices are taken
 */
doca_error_t doca_rdma_export(struct doca_rdma *rdma, const void **descriptor, size_t *bytes,
                              struct doca_rdma_connection **connection);
/**
 * Connects an exported connection to the peer that `descriptor` describes. Both sides call it; what is enqueued before
 * the peer has, fails after half a second.
 *
 * @return DOCA_ERROR_BAD_STATE also: the connection was not exported, or is connected; DOCA_ERROR_TIME_OUT the peer's
 *         host does not answer
 */
doca_error_t doca_rdma_connect(struct doca_rdma *rdma, const void *descriptor, size_t bytes,
                               struct doca_rdma_connection *connection);

/** Requests of peers that come to this port number call the callback. DOCA_ERROR_IN_USE somebody listens there. */
doca_error_t doca_rdma_start_listen_to_port(struct doca_rdma *rdma, uint16_t port);
/** DOCA_ERROR_NOT_FOUND the context does not listen there. */
doca_error_t doca_rdma_stop_listen_to_port(struct doca_rdma *rdma, uint16_t port);
/** An address of a peer that listens. */
doca_error_t doca_rdma_addr_create(enum doca_rdma_addr_type type, const char *address, uint16_t port,
                                   struct doca_rdma_addr **addr);
doca_error_t doca_rdma_addr_destroy(struct doca_rdma_addr *addr);
/**
 * Takes the next index and begins to connect; a callback tells how it ends. Does not block.
 *
 * @param connection_user_data  for the callbacks
 * @return DOCA_ERROR_FULL all indices are taken
 */
doca_error_t doca_rdma_connect_to_addr(struct doca_rdma *rdma, struct doca_rdma_addr *addr,
                                       union doca_data connection_user_data);
/**
 * Takes the next index and accepts a request. Blocks until the peer has confirmed.
 *
 * @param private_data  for the peer, 196 bytes at most; NULL if there are none
 * @return DOCA_ERROR_BAD_STATE also: it is no request, or was answered; DOCA_ERROR_FULL all indices are taken;
 *         DOCA_ERROR_TIME_OUT the peer does not confirm
 */
doca_error_t doca_rdma_connection_accept(struct doca_rdma_connection *connection, void *private_data,
                                         size_t private_data_bytes);
doca_error_t doca_rdma_connection_set_user_data(struct doca_rdma_connection *connection, union doca_data user_data);
/**
 * Ends a connection, or rejects a request. Kernels must not use its index any more until there is a new one. A peer of
 * the connection manager is told, which blocks for up to a second; others see their next requests fail.
 *
 * @return DOCA_ERROR_BAD_STATE also: it has ended
 */
doca_error_t doca_rdma_connection_disconnect(struct doca_rdma_connection *connection);
/** The argument for kernels. DOCA_ERROR_BAD_STATE before doca_ctx_start(). */
doca_error_t doca_rdma_get_gpu_handle(struct doca_rdma *rdma, struct doca_gpu_dev_rdma **handle);

#ifdef __cplusplus
}
#endif
