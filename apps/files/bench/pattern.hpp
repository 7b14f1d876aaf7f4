// Bytes that tell where they belong in a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weftio::files {

/// Writes the bytes of the file from `offset` on.
void fill_pattern(std::span<std::byte> to, std::uint64_t offset) noexcept;
/// The first byte that is not the file's, as a position in `seen`; none: all are.
std::optional<std::size_t> first_wrong(std::span<const std::byte> seen, std::uint64_t offset) noexcept;

} // namespace weftio::files
