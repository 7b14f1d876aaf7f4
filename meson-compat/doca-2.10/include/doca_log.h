/**
 * Logging. A line is "[HH:MM:SS:usec][thread][DOCA][INF][file.c:line][function] text", written at once.
 *
 * Lines of the program go to the standard backend: warnings and worse to standard error, others to standard output.
 * Lines of the library (SDK) go to each SDK backend; without one they are dropped, unless the environment variable
 * WEFTIO_LOG names a level (debug, info, warning, error): standard error then. With both, the higher level counts.
 *
 * Threads: every function may be called from any thread, together.
 */
#pragma once

#include <stdio.h>

#include "doca_error.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A line is written when its level is at most that of the backend. */
enum doca_log_level {
    DOCA_LOG_LEVEL_DISABLE = 10, /**< no line */
    DOCA_LOG_LEVEL_CRIT = 20,
    DOCA_LOG_LEVEL_ERROR = 30,
    DOCA_LOG_LEVEL_WARNING = 40,
    DOCA_LOG_LEVEL_INFO = 50,
    DOCA_LOG_LEVEL_DEBUG = 60,
    DOCA_LOG_LEVEL_TRACE = 70
};

struct doca_log_backend;

/** Lines of the program are written from now on. A second call changes nothing. */
doca_error_t doca_log_backend_create_standard(void);
/**
 * Lines of the library, Weftio's own included, are written to `file` too, at level DOCA_LOG_LEVEL_WARNING.
 * `file` must stay open until the process ends, as the backend does.
 */
doca_error_t doca_log_backend_create_with_file_sdk(FILE *file, struct doca_log_backend **backend);
/**
 * Sets the level of one SDK backend.
 * Returns DOCA_ERROR_INVALID_VALUE when `level` is not one of enum doca_log_level.
 */
doca_error_t doca_log_backend_set_sdk_level(struct doca_log_backend *backend, uint32_t level);
/** Sets the level of lines of the program. It is DOCA_LOG_LEVEL_INFO before. Errors as above. */
doca_error_t doca_log_level_set_global_lower_limit(uint32_t level);
/** Sets the level of all SDK backends, and of those that are made later. Errors as above. */
doca_error_t doca_log_level_set_global_sdk_limit(uint32_t level);

/** Writes one line of the program. For the macros below. */
void doca_log_line(uint32_t level, const char *file, int line, const char *function, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/** Names the source file at file scope. Takes any tokens (GROUP::PART); lines do not show them. */
#define DOCA_LOG_REGISTER(...) static const char *const doca_log_source __attribute__((unused)) = #__VA_ARGS__

#define DOCA_LOG(level, ...) doca_log_line((level), __FILE__, __LINE__, __func__, __VA_ARGS__)
#define DOCA_LOG_CRIT(...) DOCA_LOG(DOCA_LOG_LEVEL_CRIT, __VA_ARGS__)
#define DOCA_LOG_ERR(...) DOCA_LOG(DOCA_LOG_LEVEL_ERROR, __VA_ARGS__)
#define DOCA_LOG_WARN(...) DOCA_LOG(DOCA_LOG_LEVEL_WARNING, __VA_ARGS__)
#define DOCA_LOG_INFO(...) DOCA_LOG(DOCA_LOG_LEVEL_INFO, __VA_ARGS__)
#define DOCA_LOG_DBG(...) DOCA_LOG(DOCA_LOG_LEVEL_DEBUG, __VA_ARGS__)
#define DOCA_LOG_TRC(...) DOCA_LOG(DOCA_LOG_LEVEL_TRACE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
