// A whole file at once.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace weftio::core {

/// Creates or truncates the file and writes the bytes. Blocks as long as the file does. Any thread.
/// @return 0, or errno of what failed: the file may have a part then
int write_file(const std::string& path, std::span<const std::uint8_t> bytes) noexcept;

} // namespace weftio::core
