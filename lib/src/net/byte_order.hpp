// Numbers in big-endian bytes, wherever they lie.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace weftio::net {

/// Between the order of this host and big-endian, both ways.
template <std::unsigned_integral number>
constexpr number as_be(number value) noexcept
{
    if constexpr (std::endian::native == std::endian::big)
        return value;
    else if constexpr (sizeof value == 8)
        return __builtin_bswap64(value);
    else if constexpr (sizeof value == 4)
        return __builtin_bswap32(value);
    else if constexpr (sizeof value == 2)
        return __builtin_bswap16(value);
    else
        return value;
}

/// The number in the first `bytes` bytes at `from`. One load at run time: GCC 12 makes none of a loop over bytes.
template <std::unsigned_integral number, std::size_t bytes = sizeof(number)>
constexpr number load_be(const std::uint8_t* from) noexcept
{
    number value = 0;
    if constexpr (bytes == 3) {
        return static_cast<number>(number{load_be<std::uint16_t>(from)} << 8 | from[2]);
    } else if (bytes == sizeof value && !std::is_constant_evaluated()) {
        std::memcpy(&value, from, sizeof value);
        return as_be(value);
    }
    for (std::size_t at = 0; at < bytes; ++at)
        value = static_cast<number>(value << 8 | from[at]);
    return value;
}

/// Writes the lower `bytes` bytes of a number.
template <std::unsigned_integral number, std::size_t bytes = sizeof(number)>
constexpr void store_be(std::uint8_t* to, number value) noexcept
{
    if constexpr (bytes == 3) {
        store_be(to, static_cast<std::uint16_t>(value >> 8));
        to[2] = static_cast<std::uint8_t>(value);
        return;
    } else if (bytes == sizeof value && !std::is_constant_evaluated()) {
        value = as_be(value);
        std::memcpy(to, &value, sizeof value);
        return;
    }
    for (std::size_t at = 0; at < bytes; ++at)
        to[at] = static_cast<std::uint8_t>(value >> 8 * (bytes - 1 - at));
}

} // namespace weftio::net
