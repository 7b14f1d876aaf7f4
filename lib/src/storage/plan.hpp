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
    write_gate::kind gate = write_gate::kind::none;
};

struct plan {
    std::array<zone, 3> zones{}; ///< in the order in which they begin; what is behind the last is empty
    file_fall fall = file_fall::none;
    int error = 0;                 ///< errno: nothing can be transferred
    bool direct = false;           ///< the page cache is avoided, but for edges
    bool by_threads = false;       ///< not by io_uring, whatever its queue has
    vendor_use vendor{};           ///< with a file: all zones go by NVIDIA's library
    file_way way = file_way::none; ///< set by choose_way()
};

/// A direct write has its middle first. Its edges go through the page cache afterwards, in pages of their own.
plan plan_transfer(open_file& file, io::kind what, const place& memory, std::size_t bytes, std::uint64_t offset);

/// Decides the way and the fall of a plan that a queue of that way executes, and refuses the plan where `strict` does.
void choose_way(plan& made, file_way of_queue, const context& engine);

} // namespace weftio::storage
