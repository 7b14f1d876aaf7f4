// Arithmetic modulo the polynomial of the Ethernet CRC-32, from which compilers make the constants of its folding.
//
// All is reflected, as the CRC is: in a word of n bits, bit i is the coefficient of x^(n-1-i), so the first bit of a
// message is its highest power.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace weftio::net::crc32 {

inline constexpr std::uint32_t polynomial = 0xedb88320; ///< IEEE 802.3, without x^32

constexpr std::uint32_t times_x(std::uint32_t value) noexcept
{
    return value >> 1 ^ ((value & 1) != 0 ? polynomial : 0);
}

constexpr std::uint32_t divided_by_x(std::uint32_t value) noexcept
{
    return (value >> 31) != 0 ? (value ^ polynomial) << 1 | 1 : value << 1;
}

/// x^power modulo the polynomial; a negative power is that of the inverse of x.
constexpr std::uint32_t x_to(int power) noexcept
{
    std::uint32_t value = 0x80000000; // 1
    for (; power > 0; --power)
        value = times_x(value);
    for (; power < 0; ++power)
        value = divided_by_x(value);
    return value;
}

/// What a carry-less product of 64-bit words must have as its other factor to be one by `power`, which is x^n: such a
/// product of reflected words comes out one bit too low, so the factor is divided by x.
constexpr std::uint64_t factor(std::uint32_t power) noexcept
{
    return std::uint64_t{divided_by_x(power)} << 32;
}

/// The factors of the two halves of a 128-bit block, by which it moves over the bits behind it.
struct fold {
    std::uint64_t first; ///< of the 8 bytes that come first in memory
    std::uint64_t second;
};

constexpr fold fold_over(int bits) noexcept
{
    return {.first = factor(x_to(bits + 64)), .second = factor(x_to(bits))};
}

/// [n] takes n bytes of zeros, with which the last block was filled up, off a sum again; then moves each of the `lanes`
/// blocks of 128 bits over those behind it.
template <std::size_t padded, std::size_t lanes>
constexpr auto folds_without_padding() noexcept
{
    std::array<std::array<fold, lanes>, padded> folds{};
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        const int distance = static_cast<int>(128 * (lanes - 1 - lane));
        std::uint32_t first = x_to(distance + 64);
        std::uint32_t second = x_to(distance);
        for (auto& row : folds) {
            row[lane] = {.first = factor(first), .second = factor(second)};
            for (int bit = 0; bit < 8; ++bit) {
                first = divided_by_x(first);
                second = divided_by_x(second);
            }
        }
    }
    return folds;
}

/// The polynomial with its x^32, in 33 bits.
inline constexpr std::uint64_t whole_polynomial = std::uint64_t{polynomial} << 1 | 1;

/// x^64 divided by the polynomial, in 33 bits: what Barrett's reduction multiplies by.
constexpr std::uint64_t quotient() noexcept
{
    std::uint64_t result = 0;
    std::uint32_t rest = 0x80000000; // 1
    for (int step = 0; step < 64; ++step) {
        const bool taken = (rest & 1) != 0; // the polynomial goes into rest * x
        rest = times_x(rest);
        if (taken)
            result |= std::uint64_t{1} << (step - 31);
    }
    return result;
}

static_assert(x_to(0) == 0x80000000 && x_to(32) == polynomial && times_x(x_to(-1)) == x_to(0));

} // namespace weftio::net::crc32
