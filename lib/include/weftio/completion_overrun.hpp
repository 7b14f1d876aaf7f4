// What a completion queue does when it is full.
#pragma once

#include <cstdint>

namespace weftio {

enum class completion_overrun : std::uint8_t {
    hold,  ///< queues complete nothing more, and take no receive, until the program has consumed some
    fail,  ///< the completion queue and all its queues end in error, as those of a NIC do
    ignore ///< completions that were not consumed are overwritten: the consumer index is never read (mlx5's `oi`)
};

} // namespace weftio
