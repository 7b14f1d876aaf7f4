// CRC-32 by carry-less multiplication of 128-bit blocks.
#include "net/crc32_x86.hpp"

#if defined(__x86_64__)
#include <cstring>

#include <immintrin.h>

#include "net/crc32_constants.hpp"
#include "net/crc32_reduce.hpp"

namespace weftio::net::crc32 {
namespace {

constexpr std::size_t block = 16;

constexpr fold over_4_blocks = fold_over(512);
constexpr fold over_block = fold_over(128);
constexpr auto without_padding = folds_without_padding<block, 1>();

/// 16 bytes of it from place n on: what takes the bytes behind the first n of a block to its begin, zeros behind them.
constexpr auto shifts = [] {
    std::array<std::uint8_t, 2 * block> bytes{};
    for (std::size_t at = 0; at < bytes.size(); ++at)
        bytes[at] = at < block ? static_cast<std::uint8_t>(at) : std::uint8_t{0x80};
    return bytes;
}();

WEFTIO_PCLMUL inline __m128i load(const void* from) noexcept
{
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
}

template <bool copies>
WEFTIO_PCLMUL inline __m128i take(std::uint8_t* to, const std::uint8_t* from, std::size_t at) noexcept
{
    const __m128i bytes = load(from + at);
    if constexpr (copies)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + at), bytes);
    return bytes;
}

/// Moves `sum` over what lies between it and `more`.
WEFTIO_PCLMUL inline __m128i folded(__m128i sum, const fold& by, __m128i more) noexcept
{
    const __m128i factors = load(&by);
    const __m128i first = _mm_clmulepi64_si128(sum, factors, 0x00);
    const __m128i second = _mm_clmulepi64_si128(sum, factors, 0x11);
    return _mm_xor_si128(_mm_xor_si128(first, second), more);
}

/// Whole groups of four blocks, of which there is one at least. Moves `at` behind them.
template <bool copies>
WEFTIO_PCLMUL inline __m128i fold_groups(__m128i seed, std::uint8_t* to, const std::uint8_t* from, std::size_t bytes,
                                         std::size_t& at) noexcept
{
    __m128i a = _mm_xor_si128(seed, take<copies>(to, from, 0));
    __m128i b = take<copies>(to, from, block);
    __m128i c = take<copies>(to, from, 2 * block);
    __m128i d = take<copies>(to, from, 3 * block);
    for (at = 4 * block; at + 4 * block <= bytes; at += 4 * block) {
        a = folded(a, over_4_blocks, take<copies>(to, from, at));
        b = folded(b, over_4_blocks, take<copies>(to, from, at + block));
        c = folded(c, over_4_blocks, take<copies>(to, from, at + 2 * block));
        d = folded(d, over_4_blocks, take<copies>(to, from, at + 3 * block));
    }
    return folded(folded(folded(a, over_block, b), over_block, c), over_block, d);
}

/// The last bytes, fewer than a block, with zeros behind them, when there is a whole block with and before them.
template <bool copies>
WEFTIO_PCLMUL inline __m128i take_rest(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes,
                                       std::size_t rest) noexcept
{
    return _mm_shuffle_epi8(take<copies>(to, from, bytes - block), load(&shifts[block - rest]));
}

/// Fewer bytes than a block.
template <bool copies>
WEFTIO_PCLMUL inline std::uint32_t run_short(std::uint32_t raw, std::uint8_t* to, const std::uint8_t* from,
                                             std::size_t bytes) noexcept
{
    alignas(block) std::uint8_t padded[block] = {};
    if (bytes == 0)
        return raw;
    std::memcpy(padded, from, bytes);
    if constexpr (copies)
        std::memcpy(to, from, bytes);
    const __m128i sum = _mm_xor_si128(_mm_cvtsi32_si128(static_cast<int>(raw)), load(padded));
    return reduced(folded(sum, without_padding[block - bytes][0], _mm_setzero_si128()));
}

template <bool copies>
WEFTIO_PCLMUL inline std::uint32_t run(std::uint32_t raw, std::uint8_t* to, const std::uint8_t* from,
                                       std::size_t bytes) noexcept
{
    if (bytes < block)
        return run_short<copies>(raw, to, from, bytes);
    const __m128i seed = _mm_cvtsi32_si128(static_cast<int>(raw));
    std::size_t at = block;
    __m128i sum = bytes >= 4 * block ? fold_groups<copies>(seed, to, from, bytes, at)
                                     : _mm_xor_si128(seed, take<copies>(to, from, 0));
    for (; at + block <= bytes; at += block)
        sum = folded(sum, over_block, take<copies>(to, from, at));
    const std::size_t rest = bytes - at;
    if (rest == 0)
        return reduced(sum);
    sum = folded(sum, over_block, take_rest<copies>(to, from, bytes, rest));
    return reduced(folded(sum, without_padding[block - rest][0], _mm_setzero_si128()));
}

} // namespace

WEFTIO_PCLMUL std::uint32_t update_pclmul(std::uint32_t raw, const std::uint8_t* from, std::size_t bytes) noexcept
{
    return run<false>(raw, nullptr, from, bytes);
}

WEFTIO_PCLMUL std::uint32_t copy_pclmul(std::uint32_t raw, std::uint8_t* to, const std::uint8_t* from,
                                        std::size_t bytes) noexcept
{
    return run<true>(raw, to, from, bytes);
}

} // namespace weftio::net::crc32
#endif
