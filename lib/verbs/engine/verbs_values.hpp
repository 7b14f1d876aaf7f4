// Values of verbs for queue pairs that the kernel's user headers do not define.
#pragma once

#include <cstdint>

#include "weftio/rdma_state.hpp"

namespace weftio::verbs {

/// States (enum ibv_qp_state).
enum state_code : std::uint8_t { code_reset, code_init, code_rtr, code_rts, code_sqd, code_sqe, code_err };

/// Bits of MODIFY_QP's attribute mask (enum ibv_qp_attr_mask).
enum attribute : std::uint32_t {
    sets_state = 1u << 0,
    names_state = 1u << 1,
    sets_drained_event = 1u << 2,
    sets_access = 1u << 3,
    sets_pkey = 1u << 4,
    sets_port = 1u << 5,
    sets_qkey = 1u << 6,
    sets_path = 1u << 7,
    sets_path_mtu = 1u << 8,
    sets_timeout = 1u << 9,
    sets_retry_count = 1u << 10,
    sets_rnr_retry = 1u << 11,
    sets_receive_psn = 1u << 12,
    sets_reads = 1u << 13,
    sets_other_path = 1u << 14,
    sets_rnr_timer = 1u << 15,
    sets_send_psn = 1u << 16,
    sets_reads_of_peer = 1u << 17,
    sets_migration = 1u << 18,
    sets_capabilities = 1u << 19,
    sets_peer = 1u << 20
};
/// The attributes of this command; later ones belong to another command.
inline constexpr std::uint32_t all_attributes = (sets_peer << 1) - 1;

/// Rights of a peer on a queue pair: remote_write, remote_read, remote_atomic. local_write has no effect.
inline constexpr std::uint32_t peer_rights = 0xe;

/// @throws failure EINVAL
rdma_state state_of(std::uint8_t code);
std::uint8_t code_of(rdma_state state) noexcept;

} // namespace weftio::verbs
