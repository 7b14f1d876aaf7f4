// The end of every CRC-32 by carry-less multiplication: from 128 bits to 32.
#pragma once

#if defined(__x86_64__)
#include <cstdint>

#include <immintrin.h>

#include "net/crc32_constants.hpp"

#define WEFTIO_PCLMUL __attribute__((target("pclmul,sse4.1")))

namespace weftio::net::crc32 {

inline constexpr std::uint64_t over_32 = factor(x_to(96)), over_64 = factor(x_to(64)), whole_quotient = quotient();

/// The register behind a block: block * x^32 modulo the polynomial. 128 bits become 96, then 64, then 32 (Barrett).
WEFTIO_PCLMUL inline std::uint32_t reduced(__m128i sum) noexcept
{
    const __m128i factors = _mm_set_epi64x(static_cast<long long>(over_64), static_cast<long long>(over_32));
    const __m128i barrett =
        _mm_set_epi64x(static_cast<long long>(whole_polynomial), static_cast<long long>(whole_quotient));
    __m128i rest = _mm_xor_si128(_mm_clmulepi64_si128(sum, factors, 0x00), _mm_slli_si128(_mm_srli_si128(sum, 8), 4));
    rest = _mm_xor_si128(_mm_clmulepi64_si128(rest, factors, 0x10), rest);
    const __m128i high = _mm_srli_si128(rest, 8);
    const __m128i first_half = _mm_and_si128(high, _mm_set_epi32(0, 0, 0, -1));
    const __m128i times = _mm_and_si128(_mm_clmulepi64_si128(first_half, barrett, 0x00), _mm_set_epi32(0, 0, 0, -1));
    const __m128i left = _mm_xor_si128(high, _mm_clmulepi64_si128(times, barrett, 0x10));
    return static_cast<std::uint32_t>(_mm_extract_epi32(left, 1));
}

} // namespace weftio::net::crc32
#endif
