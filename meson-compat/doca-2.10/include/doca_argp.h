/**
 * Options of the command line.
 *
 * doca_argp_init(), then for each option create, set and register a parameter, then doca_argp_start(), at last
 * doca_argp_destroy(). Names may have any number of letters: "-g X", "-gpu X", "--gpu X", "--gpu=X" are all understood,
 * and a short name is found behind two dashes too. Options of every program, unless it registers the same name:
 * -h --help, -v --version, -l --log-level LEVEL, --sdk-log-level LEVEL.
 *
 * Threads: one thread at a time.
 */
#pragma once

#include "doca_error.h"
#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What an option takes, and what its callback gets. */
enum doca_argp_type {
    DOCA_ARGP_TYPE_UNKNOWN = 0,
    DOCA_ARGP_TYPE_STRING = 1, /**< char*, a part of argv */
    DOCA_ARGP_TYPE_INT = 2,    /**< int*, decimal */
    DOCA_ARGP_TYPE_BOOLEAN = 3 /**< bool*: takes no value, or =true, =false */
};

struct doca_argp_param;

/** Gets the value (enum doca_argp_type) and the `configuration` of doca_argp_init(). */
typedef doca_error_t (*doca_argp_param_cb_t)(void *value, void *configuration);
/** Gets a null pointer and the `configuration` of doca_argp_init(). */
typedef doca_error_t (*doca_argp_ver_cb_t)(void *value, void *configuration);

/**
 * Begins. `program_name` is copied; `configuration` may be NULL.
 * Returns DOCA_ERROR_BAD_STATE when it was called already, and no doca_argp_destroy() since.
 */
doca_error_t doca_argp_init(const char *program_name, void *configuration);
/**
 * Reads the command line, checks all of it, then calls the callbacks in the order of the command line.
 * --help prints the options to standard output and ends the process with status 0, as --version does after its
 * callback.
 * Returns DOCA_ERROR_INVALID_VALUE for an unknown option, a missing or wrong value, or a missing mandatory option,
 * after one sentence on standard error; what a callback returns, if it fails; DOCA_ERROR_BAD_STATE before
 * doca_argp_init().
 */
doca_error_t doca_argp_start(int argc, char **argv);
/** Ends, and destroys the registered parameters. Returns DOCA_ERROR_BAD_STATE before doca_argp_init(). */
doca_error_t doca_argp_destroy(void);

doca_error_t doca_argp_param_create(struct doca_argp_param **param);
/** Setters copy strings. A null pointer is logged and changes nothing. */
void doca_argp_param_set_short_name(struct doca_argp_param *param, const char *name);
void doca_argp_param_set_long_name(struct doca_argp_param *param, const char *name);
/** What the help shows as the value: "<PCI address>". */
void doca_argp_param_set_arguments(struct doca_argp_param *param, const char *arguments);
void doca_argp_param_set_description(struct doca_argp_param *param, const char *description);
void doca_argp_param_set_callback(struct doca_argp_param *param, doca_argp_param_cb_t callback);
void doca_argp_param_set_type(struct doca_argp_param *param, enum doca_argp_type type);
void doca_argp_param_set_mandatory(struct doca_argp_param *param);
/**
 * The parameter belongs to the parser from now on. It needs a name, a type and a callback.
 * Returns DOCA_ERROR_INVALID_VALUE when one is missing, DOCA_ERROR_ALREADY_EXIST when another parameter has one of its
 * names or it is registered already, DOCA_ERROR_BAD_STATE before doca_argp_init().
 */
doca_error_t doca_argp_register_param(struct doca_argp_param *param);
/** Called for --version, in place of a line with the library's version. NULL is refused. */
doca_error_t doca_argp_register_version_callback(doca_argp_ver_cb_t callback);

#ifdef __cplusplus
}
#endif
