/**
 * Contexts: what queues have in common. A queue is configured, started, used and stopped.
 *
 * All functions return DOCA_SUCCESS or DOCA_ERROR_INVALID_VALUE (a null pointer, no such context).
 */
#pragma once

#include "doca_gpunetio.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_ctx;

enum doca_ctx_states {
    DOCA_CTX_STATE_IDLE = 0,
    DOCA_CTX_STATE_STARTING = 1,
    DOCA_CTX_STATE_RUNNING = 2,
    DOCA_CTX_STATE_STOPPING = 3
};

/**
 * Starts a context: its queues are made and connected to the device.
 *
 * @return DOCA_ERROR_BAD_STATE it is started, or something is not set, which the log names; else why the queue could
 *         not be made
 */
doca_error_t doca_ctx_start(struct doca_ctx *ctx);
/**
 * Stops a context. Kernels must not use it any more.
 *
 * @return DOCA_ERROR_BAD_STATE it is not started; DOCA_ERROR_IN_PROGRESS tasks are in progress: doca_pe_progress()
 *         moves the context to DOCA_CTX_STATE_IDLE when they have ended
 */
doca_error_t doca_ctx_stop(struct doca_ctx *ctx);
doca_error_t doca_ctx_get_state(const struct doca_ctx *ctx, enum doca_ctx_states *state);
/** What callbacks of the context get. */
doca_error_t doca_ctx_set_user_data(struct doca_ctx *ctx, union doca_data user_data);
/** The GPU whose kernels use the context. DOCA_ERROR_BAD_STATE it is started. */
doca_error_t doca_ctx_set_datapath_on_gpu(struct doca_ctx *ctx, struct doca_gpu *gpu);

#ifdef __cplusplus
}
#endif
