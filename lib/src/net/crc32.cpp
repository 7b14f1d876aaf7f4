#include "net/crc32.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <cstring>

#include "net/crc32_constants.hpp"
#include "net/crc32_x86.hpp"

namespace weftio::net {
namespace {

constexpr std::size_t slices = 8;

/// [n][b]: what byte b adds to the register when n more bytes follow it in the same step.
constexpr auto tables = [] {
    std::array<std::array<std::uint32_t, 256>, slices> made{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t value = byte;
        for (auto& table : made) {
            for (int bit = 0; bit < 8; ++bit)
                value = crc32::times_x(value);
            table[byte] = value;
        }
    }
    return made;
}();

/// Eight bytes a step, with a table for each (slicing by 8).
std::uint32_t update_portable(std::uint32_t raw, const std::uint8_t* from, std::size_t bytes) noexcept
{
    if constexpr (std::endian::native == std::endian::little) {
        for (; bytes >= slices; bytes -= slices, from += slices) {
            std::uint64_t word = 0;
            std::memcpy(&word, from, sizeof word);
            word ^= raw;
            raw = 0;
#pragma GCC unroll 8
            for (std::size_t at = 0; at < slices; ++at)
                raw ^= tables[slices - 1 - at][word >> 8 * at & 0xff];
        }
    }
    for (; bytes > 0; --bytes)
        raw = raw >> 8 ^ tables[0][(raw ^ *from++) & 0xff];
    return raw;
}

std::uint32_t copy_portable(std::uint32_t raw, std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) noexcept
{
    if (bytes > 0)
        std::memcpy(to, from, bytes);
    return update_portable(raw, from, bytes);
}

constexpr std::array methods
{
#if defined(__x86_64__)
    crc32_method{"avx512", crc32::update_avx512, crc32::copy_avx512},
        crc32_method{"pclmul", crc32::update_pclmul, crc32::copy_pclmul},
#endif
        crc32_method{"portable", update_portable, copy_portable},
};

/// How many of the first methods this processor cannot run.
std::size_t beyond_this_processor() noexcept
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("pclmul") || !__builtin_cpu_supports("sse4.1"))
        return 2;
    if (!__builtin_cpu_supports("vpclmulqdq") || !__builtin_cpu_supports("avx512f") ||
        !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl"))
        return 1;
#endif
    return 0;
}

std::uint32_t first_update(std::uint32_t raw, const std::uint8_t* from, std::size_t bytes) noexcept;
std::uint32_t first_copy(std::uint32_t raw, std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) noexcept;

/// Those of the fastest method from the first call on: a packet makes several calls, which must not look for it.
constinit std::atomic<decltype(crc32_method::update)> fastest_update{first_update};
constinit std::atomic<decltype(crc32_method::copy)> fastest_copy{first_copy};

std::uint32_t first_update(std::uint32_t raw, const std::uint8_t* from, std::size_t bytes) noexcept
{
    const auto update = crc32_methods().front().update;
    fastest_update.store(update, std::memory_order_relaxed);
    return update(raw, from, bytes);
}

std::uint32_t first_copy(std::uint32_t raw, std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) noexcept
{
    const auto copy = crc32_methods().front().copy;
    fastest_copy.store(copy, std::memory_order_relaxed);
    return copy(raw, to, from, bytes);
}

} // namespace

std::span<const crc32_method> crc32_methods() noexcept
{
    return std::span(methods).subspan(beyond_this_processor());
}

std::uint32_t crc32_update(std::uint32_t raw, std::span<const std::uint8_t> bytes) noexcept
{
    return fastest_update.load(std::memory_order_relaxed)(raw, bytes.data(), bytes.size());
}

std::uint32_t copy_and_sum(std::uint32_t raw, std::uint8_t* to, std::span<const std::uint8_t> bytes) noexcept
{
    return fastest_copy.load(std::memory_order_relaxed)(raw, to, bytes.data(), bytes.size());
}

} // namespace weftio::net
