// CRC-32 by carry-less multiplication of four 128-bit blocks at a time.
#include "net/crc32_x86.hpp"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 takes what its own intrinsics leave undefined on purpose for a mistake of ours.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include "net/crc32_constants.hpp"
#include "net/crc32_reduce.hpp"

#define WEFTIO_AVX512 __attribute__((target("pclmul,vpclmulqdq,avx512f,avx512bw,avx512dq,avx512vl")))

namespace weftio::net::crc32 {
namespace {

constexpr std::size_t vector = 64;

constexpr fold over_4_vectors = fold_over(2048);
constexpr fold over_vector = fold_over(512);
alignas(vector) constexpr auto without_padding = folds_without_padding<vector, 4>();

WEFTIO_AVX512 inline __m512i in_each_lane(const fold& by) noexcept
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(&by)));
}

template <bool copies>
WEFTIO_AVX512 inline __m512i take(std::uint8_t* to, const std::uint8_t* from, std::size_t at) noexcept
{
    const __m512i bytes = _mm512_loadu_si512(from + at);
    if constexpr (copies)
        _mm512_storeu_si512(to + at, bytes);
    return bytes;
}

/// The last `count` bytes, 1 to 63, with zeros behind them.
template <bool copies>
WEFTIO_AVX512 inline __m512i take_rest(std::uint8_t* to, const std::uint8_t* from, std::size_t at,
                                       std::size_t count) noexcept
{
    const __mmask64 wanted = ~std::uint64_t{0} >> (vector - count);
    const __m512i bytes = _mm512_maskz_loadu_epi8(wanted, from + at);
    if constexpr (copies)
        _mm512_mask_storeu_epi8(to + at, wanted, bytes);
    return bytes;
}

/// Moves `sum` over what lies between it and `more`.
WEFTIO_AVX512 inline __m512i folded(__m512i sum, __m512i factors, __m512i more) noexcept
{
    const __m512i first = _mm512_clmulepi64_epi128(sum, factors, 0x00);
    const __m512i second = _mm512_clmulepi64_epi128(sum, factors, 0x11);
    return _mm512_ternarylogic_epi64(first, second, more, 0x96); // all three added
}

/// The register behind a sum whose last `padding` bytes, 0 to 63, are not of the message.
WEFTIO_AVX512 inline std::uint32_t reduced_lanes(__m512i sum, std::size_t padding) noexcept
{
    const __m512i factors = _mm512_load_si512(without_padding[padding].data());
    const __m512i lanes = folded(sum, factors, _mm512_setzero_si512());
    const __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(lanes), _mm512_extracti64x4_epi64(lanes, 1));
    return reduced(_mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1)));
}

/// Whole groups of four vectors, of which there is one at least. Moves `at` behind them.
template <bool copies>
WEFTIO_AVX512 inline __m512i fold_groups(__m512i seed, std::uint8_t* to, const std::uint8_t* from, std::size_t bytes,
                                         std::size_t& at) noexcept
{
    const __m512i by_4 = in_each_lane(over_4_vectors);
    __m512i a = _mm512_xor_si512(seed, take<copies>(to, from, 0));
    __m512i b = take<copies>(to, from, vector);
    __m512i c = take<copies>(to, from, 2 * vector);
    __m512i d = take<copies>(to, from, 3 * vector);
    for (at = 4 * vector; at + 4 * vector <= bytes; at += 4 * vector) {
        a = folded(a, by_4, take<copies>(to, from, at));
        b = folded(b, by_4, take<copies>(to, from, at + vector));
        c = folded(c, by_4, take<copies>(to, from, at + 2 * vector));
        d = folded(d, by_4, take<copies>(to, from, at + 3 * vector));
    }
    const __m512i by_1 = in_each_lane(over_vector);
    return folded(folded(folded(a, by_1, b), by_1, c), by_1, d);
}

template <bool copies>
WEFTIO_AVX512 inline std::uint32_t run(std::uint32_t raw, std::uint8_t* to, const std::uint8_t* from,
                                       std::size_t bytes) noexcept
{
    const __m512i seed = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(raw)));
    if (bytes < vector)
        return bytes == 0
                   ? raw
                   : reduced_lanes(_mm512_xor_si512(seed, take_rest<copies>(to, from, 0, bytes)), vector - bytes);
    std::size_t at = vector;
    __m512i sum = bytes >= 4 * vector ? fold_groups<copies>(seed, to, from, bytes, at)
                                      : _mm512_xor_si512(seed, take<copies>(to, from, 0));
    const __m512i by_1 = in_each_lane(over_vector);
    for (; at + vector <= bytes; at += vector)
        sum = folded(sum, by_1, take<copies>(to, from, at));
    const std::size_t rest = bytes - at;
    if (rest == 0)
        return reduced_lanes(sum, 0);
    return reduced_lanes(folded(sum, by_1, take_rest<copies>(to, from, at, rest)), vector - rest);
}

} // namespace

WEFTIO_AVX512 std::uint32_t update_avx512(std::uint32_t raw, const std::uint8_t* from, std::size_t bytes) noexcept
{
    return run<false>(raw, nullptr, from, bytes);
}

WEFTIO_AVX512 std::uint32_t copy_avx512(std::uint32_t raw, std::uint8_t* to, const std::uint8_t* from,
                                        std::size_t bytes) noexcept
{
    return run<true>(raw, to, from, bytes);
}

} // namespace weftio::net::crc32
#endif
