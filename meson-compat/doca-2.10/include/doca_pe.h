/** The progress engine: callbacks of contexts, and tasks of the CPU. */
#pragma once

#include "doca_ctx.h"

#ifdef __cplusplus
extern "C" {
#endif

struct doca_pe;
struct doca_task;

/** @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE */
doca_error_t doca_pe_create(struct doca_pe **pe);
/** Contexts that are connected stay as they are. @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE */
doca_error_t doca_pe_destroy(struct doca_pe *pe);
/**
 * Connects a context: doca_pe_progress() then delivers its events. A context has one progress engine.
 *
 * @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE; DOCA_ERROR_BAD_STATE it is connected already
 */
doca_error_t doca_pe_connect_ctx(struct doca_pe *pe, struct doca_ctx *ctx);
/**
 * Calls back for what has happened. One thread at a time; does not block.
 *
 * @return 1: something was done; 0: nothing was, or there is no such progress engine
 */
uint8_t doca_pe_progress(struct doca_pe *pe);

/** Submits a task. @return DOCA_SUCCESS; DOCA_ERROR_INVALID_VALUE; DOCA_ERROR_BAD_STATE its context does not run */
doca_error_t doca_task_submit(struct doca_task *task);
/** How a completed task ended; DOCA_ERROR_IN_PROGRESS it has not. */
doca_error_t doca_task_get_status(const struct doca_task *task);
/** Frees a task, which must not be in progress. */
void doca_task_free(struct doca_task *task);

#ifdef __cplusplus
}
#endif
