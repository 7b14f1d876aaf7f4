// Numbers in big-endian bytes, wherever they lie.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace weftio::net {

/// The number in the first `bytes` bytes at `from`.
template <std::unsigned_integral number, std::size_t bytes = sizeof(number)>
constexpr number load_be(const std::uint8_t* from) noexcept
{
    number value = 0;
    for (std::size_t at = 0; at < bytes; ++at)
        value = static_cast<number>(value << 8 | from[at]);
    return value;
}

/// Writes the lower `bytes` bytes of a number.
template <std::unsigned_integral number, std::size_t bytes = sizeof(number)>
constexpr void store_be(std::uint8_t* to, number value) noexcept
{
    for (std::size_t at = 0; at < bytes; ++at)
        to[at] = static_cast<std::uint8_t>(value >> 8 * (bytes - 1 - at));
}

} // namespace weftio::net
