// The state transitions of a queue pair, with the attributes that must and may be set.
#pragma once

#include <cstdint>
#include <string>

#include "weftio/queue_pair.hpp"

namespace weftio::rdma {

/// Attributes, one bit for each.
enum attribute : std::uint32_t {
    partition_key = 1u << 0,
    rights = 1u << 1,
    peer = 1u << 2,
    path_mtu = 1u << 3,
    peer_queue = 1u << 4,
    receive_psn = 1u << 5,
    send_psn = 1u << 6,
    most_reads_of_peer = 1u << 7,
    most_reads = 1u << 8,
    min_rnr_timer = 1u << 9,
    timeout = 1u << 10,
    retry_count = 1u << 11,
    rnr_retry = 1u << 12,
};
inline constexpr unsigned all_attributes = 13;

/// The attributes that one transition must and may set.
struct transition {
    bool exists = false;
    std::uint32_t must = 0, may = 0;
};

/// The table of verbs (InfiniBand 11.2.5.2 and 11.2.5.3, ibv_modify_qp(3)).
transition transition_of(rdma_service service, rdma_state from, rdma_state to) noexcept;
/// The attributes that are set in `given`.
std::uint32_t attributes_of(const queue_pair_attributes& given) noexcept;
/// Names for error texts: "path_mtu, peer_queue".
std::string names_of(std::uint32_t attributes);
/// @throws weftio::error errc::invalid_argument the table does not have this transition, or not with these attributes
void require_transition(std::uint32_t queue, rdma_service service, rdma_state from, rdma_state to,
                        const queue_pair_attributes& given);

} // namespace weftio::rdma
