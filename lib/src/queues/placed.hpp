// Memory of rings that the caller may bring.
#pragma once

#include <cstddef>
#include <string_view>

#include "nic/rings.hpp"
#include "weftio/completion_queue.hpp"

namespace weftio::queues {

/// What a part of a ring needs.
struct part {
    std::string_view who;  ///< for the error text: "completion_queue"
    std::string_view name; ///< of the option: "ring"
    std::size_t bytes, alignment;
};

/// The caller's memory, if he brings it, else memory of `device`, zeroed, which the NIC and kernels see.
/// @throws weftio::error errc::invalid_argument the bytes do not lie within the caller's memory, or not on a multiple
/// of the alignment; errc::out_of_memory
nic::ring_memory placed(const part& wanted, const memory_place& callers, const device& device);

} // namespace weftio::queues
