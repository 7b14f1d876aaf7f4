// What this process may do with memory that it has not allocated through the library.
#pragma once

#include <cstddef>

namespace weftio::devices::cpu {

/// Whether `bytes` bytes at `address`, which can be read, may be written too, as /proc/self/maps says now. True where
/// there is no such file.
/// @throws weftio::error errc::not_reachable some of them cannot be read
bool may_be_written(const void* address, std::size_t bytes);

} // namespace weftio::devices::cpu
