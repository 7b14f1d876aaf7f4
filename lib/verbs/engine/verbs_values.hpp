// Values of verbs for queue pairs that the kernel's user headers do not define.
#pragma once

#include <cstdint>
#include <string>

#include "weftio/rdma_state.hpp"

namespace weftio::verbs {

/// States (enum ibv_qp_state).
enum state_code : std::uint8_t { code_reset, code_init, code_rtr, code_rts, code_sqd, code_sqe, code_err };

/// The attributes of MODIFY_QP (rdma::attribute); later ones belong to another command.
inline constexpr std::uint32_t all_attributes = (1u << 21) - 1;

/// Rights of a peer on a queue pair: remote_write, remote_read, remote_atomic. local_write has no effect.
inline constexpr std::uint32_t peer_rights = 0xe;

/// Limits of a shared receive queue: entries that can be posted, and segments of one.
inline constexpr std::uint32_t most_shared_receives = 32767, most_shared_segments = 31;

/// Text of a GID in the format of inet_ntop(); IPv4 if the GID is an IPv4-mapped address.
std::string text_of(const std::uint8_t (&gid)[16]);

/// @throws failure EINVAL
rdma_state state_of(std::uint8_t code);
std::uint8_t code_of(rdma_state state) noexcept;

} // namespace weftio::verbs
