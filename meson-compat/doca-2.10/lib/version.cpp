#include "doca_version.h"

const char* doca_version(void)
{
    return "2.10.0087";
}

const char* doca_version_runtime(void)
{
    return "2.10.0087 (Weftio " WEFTIO_VERSION ")";
}
