/** Versions, as "2.10.0087". */
#pragma once

#include "doca_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Version of the API that the program was compiled with, a static string. */
const char *doca_version(void);
/** Version of the library that runs, a static string; names Weftio and its version behind the number. */
const char *doca_version_runtime(void);

#ifdef __cplusplus
}
#endif
