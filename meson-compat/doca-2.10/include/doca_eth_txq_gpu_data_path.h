/** What the CPU learns of frames that kernels send: doca_pe_progress() calls back. */
#pragma once

#include "doca_eth_txq.h"
#include "doca_pe.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_eth_txq_gpu_event_error_send_packet;
struct doca_eth_txq_gpu_event_notify_send_packet;

/** An entry has failed; the queue executes no more. The event lives as long as the call. */
typedef void (*doca_eth_txq_gpu_event_error_send_packet_cb_t)(struct doca_eth_txq_gpu_event_error_send_packet *event,
                                                              union doca_data user_data);
/** A frame with DOCA_GPU_SEND_FLAG_NOTIFY has left. The event lives as long as the call. */
typedef void (*doca_eth_txq_gpu_event_notify_send_packet_cb_t)(struct doca_eth_txq_gpu_event_notify_send_packet *event,
                                                               union doca_data user_data);

/** Sets a callback. @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE; DOCA_ERROR_BAD_STATE the queue is started */
doca_error_t doca_eth_txq_gpu_event_error_send_packet_register(struct doca_eth_txq *txq,
                                                               doca_eth_txq_gpu_event_error_send_packet_cb_t callback,
                                                               union doca_data user_data);
doca_error_t doca_eth_txq_gpu_event_notify_send_packet_register(struct doca_eth_txq *txq,
                                                                doca_eth_txq_gpu_event_notify_send_packet_cb_t callback,
                                                                union doca_data user_data);

/** Position of the entry, modulo 2^16. @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE a null pointer */
doca_error_t
doca_eth_txq_gpu_event_error_send_packet_get_position(const struct doca_eth_txq_gpu_event_error_send_packet *event,
                                                      uint16_t *position);
doca_error_t
doca_eth_txq_gpu_event_notify_send_packet_get_position(const struct doca_eth_txq_gpu_event_notify_send_packet *event,
                                                       uint16_t *position);
/** When the frame left, in nanoseconds of CLOCK_REALTIME. @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE */
doca_error_t
doca_eth_txq_gpu_event_notify_send_packet_get_timestamp(const struct doca_eth_txq_gpu_event_notify_send_packet *event,
                                                        uint64_t *timestamp_ns);

#ifdef __cplusplus
}
#endif
