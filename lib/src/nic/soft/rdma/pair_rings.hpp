// The rings of a queue pair as the engine accesses them: CPU addresses of the memory in nic/rings.hpp.
#pragma once

#include <cstdint>

#include "nic/soft/work/rings.hpp"

namespace weftio::nic::soft {

class linked_receives;

/// See nic::rdma_receive_ring.
struct rdma_rx_ring {
    const std::uint32_t* words = nullptr;
    const std::uint32_t* dbrec = nullptr;
    weftio_cqe* completions = nullptr; ///< nullptr: completes in `target`
    completions_at target{};
    std::uint32_t depth = 0;
    std::uint32_t segments = 1;
    linked_receives* shared = nullptr; ///< the entries' source, in place of `words`; nullptr: they are its own
};

/// The memory stays valid until the queue pair is removed or gets other rings.
struct pair_rings {
    tx_ring send;
    rdma_rx_ring receive;
    window_options windows{};
};

} // namespace weftio::nic::soft
