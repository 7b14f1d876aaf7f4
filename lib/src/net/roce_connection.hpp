// The attributes of one end of a connection, as the transport needs them.
#pragma once

#include <cstdint>

#include "weftio/access.hpp"

namespace weftio::net {

/// The rights that a peer can get at a queue pair.
inline constexpr access remote_rights = access::remote_write | access::remote_read | access::remote_atomic;

/// The attributes of queue_pair_attributes, except those of the path. Its comments state the ranges.
struct roce_connection {
    std::uint16_t partition_key = 0xffff;
    access rights = remote_rights;        ///< of the peer, at this queue
    std::uint32_t path_mtu = 1024;        ///< a value for which is_path_mtu() is true
    std::uint32_t peer_queue = 0;         ///< 24 bits
    std::uint32_t queue_key = 0;          ///< of datagrams
    std::uint32_t receive_psn = 0;        ///< of the peer's first request
    std::uint32_t send_psn = 0;           ///< of the first request of this end
    std::uint8_t most_reads_of_peer = 16; ///< READs and atomics that the peer may have in flight
    std::uint8_t most_reads = 16;         ///< READs and atomics that this end may have in flight
    std::uint8_t min_rnr_timer = 12;      ///< code of the delay after which the peer retries without a receive
    std::uint8_t timeout = 14;            ///< code of the time to wait for an answer: 4.096 us x 2^timeout; 0: no limit
    std::uint8_t retry_count = 7;         ///< 0..7 retries without an answer
    std::uint8_t rnr_retry = 7;           ///< 0..7 retries while the peer has no receive; 7: no limit
    std::uint8_t window = 128;            ///< packets in flight, 1 to 128
};

} // namespace weftio::net
