/** Byte order. */
#pragma once

#include "doca_types.h"

#define DOCA_HTOBE16(x) ((uint16_t)((uint16_t)((uint16_t)(x) >> 8) | (uint16_t)((uint16_t)(x) << 8)))
#define DOCA_BETOH16(x) DOCA_HTOBE16(x)
#define DOCA_HTOBE32(x) ((uint32_t)__builtin_bswap32((uint32_t)(x)))
#define DOCA_BETOH32(x) DOCA_HTOBE32(x)
#define DOCA_HTOBE64(x) ((uint64_t)__builtin_bswap64((uint64_t)(x)))
#define DOCA_BETOH64(x) DOCA_HTOBE64(x)
