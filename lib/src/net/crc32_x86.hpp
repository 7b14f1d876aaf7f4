// The methods of the CRC-32 that need more of an x86 processor than its first generation has.
#pragma once

#if defined(__x86_64__)
#include <cstddef>
#include <cstdint>

namespace weftio::net::crc32 {

/// Folds 64 bytes at a time. Wants PCLMULQDQ and SSE4.1.
std::uint32_t update_pclmul(std::uint32_t raw, const std::uint8_t* from, std::size_t bytes) noexcept;
std::uint32_t copy_pclmul(std::uint32_t raw, std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) noexcept;

/// Folds 256 bytes at a time. Wants VPCLMULQDQ, AVX-512 F, BW, DQ and VL.
std::uint32_t update_avx512(std::uint32_t raw, const std::uint8_t* from, std::size_t bytes) noexcept;
std::uint32_t copy_avx512(std::uint32_t raw, std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) noexcept;

} // namespace weftio::net::crc32
#endif
