// How the small parts of a queue lie in memory.
#pragma once

#include <cstddef>

namespace weftio::queues {

/// Of handles, marks and control lines: two cache lines, which are fetched together. A page for each, as allocate()
/// gives by default, would be much of a small queue.
inline constexpr std::size_t small_alignment = 128;

} // namespace weftio::queues
