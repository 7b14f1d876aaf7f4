// The rings of a queue pair as the engine reaches them: CPU addresses in the memory that nic/rings.hpp names.
#pragma once

#include <cstdint>

#include "nic/soft/work/rings.hpp"

namespace weftio::nic::soft {

/// See nic::rdma_receive_ring.
struct rdma_rx_ring {
    const std::uint32_t* words = nullptr;
    const std::uint32_t* dbrec = nullptr;
    weftio_cqe* completions = nullptr; ///< nullptr: `target`
    completions_at target{};
    std::uint32_t depth = 0;
    std::uint32_t segments = 1;
};

/// Their memory stays until the queue pair is removed or has other rings.
struct pair_rings {
    tx_ring send;
    rdma_rx_ring receive;
};

} // namespace weftio::nic::soft
