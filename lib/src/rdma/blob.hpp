// What two ends tell each other about themselves: few bytes in network byte order, with a mark, a version and a sum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weftio::rdma {

/// The first bytes say what a blob is: mark (4), version (1), size (1). The last four are the sum of all before.
struct blob_kind {
    std::string_view mark; ///< four letters
    const char* name;      ///< for messages: "rdma_address"
    const char* source;    ///< where it comes from: "rdma_queue::address()"
    std::size_t bytes;
};
inline constexpr std::uint8_t blob_version = 1;
inline constexpr std::size_t blob_body = 6; ///< where fields begin

void put_be(std::uint8_t* at, std::uint64_t value, std::size_t bytes) noexcept;
std::uint64_t get_be(const std::uint8_t* at, std::size_t bytes) noexcept;

/// Writes mark, version, size and sum round the fields.
void seal(const blob_kind& kind, std::span<std::uint8_t> blob) noexcept;
/// @throws weftio::error errc::invalid_argument it is not whole, of another kind or version, or was changed
void require_sealed(const blob_kind& kind, std::span<const std::uint8_t> blob);

std::string to_hex(std::span<const std::uint8_t> bytes);
/// @throws weftio::error errc::invalid_argument the text is no `to.size()` bytes in hexadecimal digits
void from_hex(const blob_kind& kind, std::string_view text, std::span<std::uint8_t> to);

} // namespace weftio::rdma
