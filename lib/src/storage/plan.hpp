// How a transfer is divided: what goes straight, what is bounced, and why.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "storage/open_file.hpp"
#include "storage/place.hpp"
#include "storage/way.hpp"

namespace weftio::storage {

/// A range of the file, all of which is transferred in the same manner.
struct zone {
    std::uint64_t begin = 0, end = 0; ///< file offsets
    int fd = -1;
    bool staged = false;     ///< through a staging buffer; else memory and file meet
    std::uint32_t align = 1; ///< of offset and size of each io; 1: any
};

struct plan {
    std::array<zone, 3> zones{}; ///< in the order in which they begin; what is behind the last is empty
    file_fall fall = file_fall::none;
    int error = 0;       ///< errno: nothing can be transferred
    bool direct = false; ///< the page cache is avoided, but for edges
};

/// A direct write has its middle first. Its edges go through the page cache, in whole pages that the middle does not
/// touch: the kernel must never have a page dirty that a direct write is to replace.
plan plan_transfer(open_file& file, io::kind what, const place& memory, std::size_t bytes, std::uint64_t offset);

} // namespace weftio::storage
