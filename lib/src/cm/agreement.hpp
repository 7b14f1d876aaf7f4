// What the two ends of a connection propose in REQ and REP, and what their queue pairs then get.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "cm/messages.hpp"

namespace weftio::cm {

/// Of one end.
struct proposal {
    std::uint32_t queue = 0;
    std::uint32_t first_psn = 0;          ///< of what it receives
    std::uint8_t responder_resources = 0; ///< READs and atomics of the peer that it answers at a time
    std::uint8_t initiator_depth = 0;     ///< READs and atomics that it has in flight
    std::uint8_t retry_count = 7;         ///< REQ: of both ends
    std::uint8_t rnr_retry_count = 7;     ///< of the peer
    std::uint32_t path_mtu = 0;           ///< REQ: in bytes
    transport_service transport = transport_service::reliable; ///< REQ
    bool flow_control = false, shared_receives = false;
    std::uint8_t ack_timeout = 0;                   ///< REQ: code
    std::uint8_t traffic_class = 0, hop_limit = 64; ///< REQ
};

/// Programs have so many bytes of private data in a REQ and in a SIDR REQ to a service of the RDMA communication
/// manager: an ip_header stands first.
inline constexpr std::size_t most_request_data = 92 - ip_header::bytes, most_resolve_data = 216 - ip_header::bytes;

/// A REQ to a service of the RDMA communication manager.
/// @param ports  of both ends, with their addresses  @param data  most_request_data bytes at most
req request_of(const proposal& ours, std::uint64_t service, const ip_header& ports, std::span<const std::uint8_t> data);
/// @param data  196 bytes at most
rep reply_of(const proposal& ours, std::span<const std::uint8_t> data);

/// The attributes of this end's queue pair.
struct agreement {
    transport_service transport = transport_service::reliable;
    std::uint32_t peer_queue = 0;
    std::uint32_t receive_psn = 0, send_psn = 0;
    std::uint32_t path_mtu = 0; ///< in bytes
    std::uint8_t most_reads_of_peer = 0, most_reads = 0;
    std::uint8_t timeout = 0; ///< code
    std::uint8_t retry_count = 0, rnr_retry = 0;

    bool operator==(const agreement&) const = default;
};

agreement agreed_by_active(const req& sent, const rep& received);
/// The part of agreed_by_passive() that is known before the reply.
agreement asked_of_passive(const req& received);
agreement agreed_by_passive(const req& received, const rep& sent);

} // namespace weftio::cm
