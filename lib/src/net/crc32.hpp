// The Ethernet CRC-32, over pieces, and while they are copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace weftio::net {

/// One way to compute the CRC-32 (reflected polynomial 0xedb88320). Its functions take and return the raw register: all
/// ones before the first byte, and the CRC is its complement after the last. Any thread; they never block.
struct crc32_method {
    const char* name;
    /// The register behind `bytes` more bytes, which may be 0.
    std::uint32_t (*update)(std::uint32_t raw, const std::uint8_t* from, std::size_t bytes) noexcept;
    /// The same, and copies the bytes, which must not overlap with `to`, in the same pass.
    std::uint32_t (*copy)(std::uint32_t raw, std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) noexcept;
};

inline constexpr std::uint32_t crc32_start = 0xffffffff; ///< the raw register before the first byte

/// The methods that this processor can run, the fastest first, the portable one last. For tests and benchmarks.
std::span<const crc32_method> crc32_methods() noexcept;

/// The register behind `bytes`, by the fastest method.
std::uint32_t crc32_update(std::uint32_t raw, std::span<const std::uint8_t> bytes) noexcept;

/// The same, and copies them to `to`, which has room and does not overlap with them: one pass instead of two.
std::uint32_t copy_and_sum(std::uint32_t raw, std::uint8_t* to, std::span<const std::uint8_t> bytes) noexcept;

} // namespace weftio::net
