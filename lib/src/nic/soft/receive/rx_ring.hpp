// The ring of a receive queue as the engine accesses it: CPU addresses of the memory in nic/rings.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nic/rings.hpp"

namespace weftio::nic::soft {

/// See nic::receive_ring. Its memory stays valid until the queue is removed or has another ring.
struct rx_ring {
    weftio_cqe* completions = nullptr;
    const std::uint32_t* dbrec = nullptr;
    std::byte* slots = nullptr;
    std::uint32_t depth = 0;
    std::uint32_t stride_bytes = 0;
    std::uint32_t slot_bytes = 0;
    std::uint32_t cut_bytes = UINT32_MAX; ///< the driver may have truncated a packet of this length or more
    std::uint32_t number = 0;             ///< number of the queue
    bool verify_checksums = true;
    bool lendable = true;
    bool consecutive = false;
    std::uint32_t zeroed_bytes = 0;
    staging_target staged{};

    static constexpr std::uint32_t headroom_bytes = receive_ring::headroom_bytes;
};

} // namespace weftio::nic::soft
