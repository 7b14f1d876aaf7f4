// Descriptions that two ends exchange: a few bytes in network byte order, with mark, version, size and checksum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weftio::rdma {

/// A blob begins with mark (4 bytes), version (1) and size (1). Its last four bytes are a CRC-32 of all bytes before.
struct blob_kind {
    std::string_view mark; ///< four letters
    const char* name;      ///< for messages: "rdma_address"
    const char* source;    ///< the call that makes it: "rdma_queue::address()"
    std::size_t bytes;
};
inline constexpr std::uint8_t blob_version = 1;
inline constexpr std::size_t blob_body = 6; ///< offset of the first field

void put_be(std::uint8_t* at, std::uint64_t value, std::size_t bytes) noexcept;
std::uint64_t get_be(const std::uint8_t* at, std::size_t bytes) noexcept;

/// Writes mark, version, size and checksum around the fields.
void seal(const blob_kind& kind, std::span<std::uint8_t> blob) noexcept;
/// @throws weftio::error errc::invalid_argument the blob is incomplete, changed, or of another kind or version
void require_sealed(const blob_kind& kind, std::span<const std::uint8_t> blob);

std::string to_hex(std::span<const std::uint8_t> bytes);
/// @throws weftio::error errc::invalid_argument the text is not `to.size()` bytes in hexadecimal digits
void from_hex(const blob_kind& kind, std::string_view text, std::span<std::uint8_t> to);

} // namespace weftio::rdma
