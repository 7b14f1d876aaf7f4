// Operations that the calling thread waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "storage/open_file.hpp"
#include "storage/place.hpp"

namespace weftio::storage {

/// Finds out where memory lies of which only the address is known.
void locate(const context& engine, place& memory);

/// Reads or writes, and counts it. Small transfers that need no bounce are one system call of this thread; others go
/// through an idle queue of the engine: by io_uring what avoids the page cache, by threads what is in it, as io_uring
/// copies from there on one core.
/// Throws weftio::error errc::closed in a child of fork(), and errc::out_of_memory.
file_result transfer(const std::shared_ptr<open_file>& file, io::kind what, place memory, std::size_t bytes,
                     std::uint64_t offset);
/// fsync, or fdatasync.
file_result sync(open_file& file, bool data_only);

} // namespace weftio::storage
