// Messages of InfiniBand connection management (IBTA 12.6 to 12.11): 256 bytes each, which travel as datagrams between
// the queue pairs 1 of two hosts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "cm/reasons.hpp"
#include "net/roce_headers.hpp"

namespace weftio::cm {

using net::roce_gid;

inline constexpr std::size_t mad_bytes = 256;
inline constexpr std::uint32_t mad_queue = 1;              ///< number of the queue pair that sends and receives them
inline constexpr std::uint32_t mad_queue_key = 0x80010000; ///< Q_Key of that queue pair

/// Private data always has the full size of its field. What a user gives is followed by zeros.
template <std::size_t size>
using private_bytes = std::array<std::uint8_t, size>;

/// Transport service of a REQ (IBTA 12.6.5.9). 3 is "extended": XRC.
enum class transport_service : std::uint8_t { reliable = 0, unreliable = 1, reliable_datagram = 2, extended = 3 };

/// Which message an MRA or a REJ is about.
enum class about : std::uint8_t { req = 0, rep = 1, other = 2 };

/// One way between two ports, as a REQ and a LAP describe it.
struct path_fields {
    std::uint16_t local_lid = 0, remote_lid = 0; ///< RoCE: 0xffff
    roce_gid local_gid{}, remote_gid{};
    std::uint32_t flow_label = 0; ///< 20 bits
    std::uint8_t packet_rate = 0; ///< 6 bits
    std::uint8_t traffic_class = 0, hop_limit = 0;
    std::uint8_t service_level = 0; ///< 4 bits
    bool subnet_local = false;
    std::uint8_t ack_timeout = 0; ///< code: 4.096 us x 2^code

    bool operator==(const path_fields&) const = default;
};

/// Connect request.
struct req {
    std::uint32_t local_id = 0;
    std::uint64_t service = 0; ///< service ID
    std::uint64_t guid = 0;    ///< of the sender's device
    std::uint32_t queue_key = 0;
    std::uint32_t queue = 0; ///< 24 bits
    std::uint8_t responder_resources = 0, initiator_depth = 0;
    std::uint32_t local_eec = 0, remote_eec = 0; ///< 24 bits
    std::uint8_t remote_response_timeout = 0;    ///< code: how soon the receiver is to answer
    transport_service transport = transport_service::reliable;
    bool flow_control = false;
    std::uint32_t first_psn = 0;             ///< 24 bits: of what the receiver sends
    std::uint8_t local_response_timeout = 0; ///< code: how soon the sender will answer
    std::uint8_t retry_count = 0;            ///< 3 bits
    std::uint16_t partition_key = 0xffff;
    std::uint8_t path_mtu = 0; ///< code: 1 is 256 bytes, 5 is 4096
    bool rdc_exists = false;
    std::uint8_t rnr_retry_count = 0; ///< 3 bits
    std::uint8_t most_retries = 0;    ///< 4 bits: of messages of connection management
    bool shared_receives = false;
    std::uint8_t extended_transport = 0; ///< 3 bits
    path_fields primary{}, alternate{};
    private_bytes<92> data{};

    bool operator==(const req&) const = default;
};

/// Message receipt acknowledgment: the answer takes longer.
struct mra {
    std::uint32_t local_id = 0, remote_id = 0;
    about what = about::req;
    std::uint8_t service_timeout = 0; ///< code
    private_bytes<222> data{};

    bool operator==(const mra&) const = default;
};

/// Reject.
struct rej {
    std::uint32_t local_id = 0, remote_id = 0;
    about what = about::req;
    std::uint8_t info_bytes = 0; ///< 7 bits: how much of `info` counts
    reject_reason reason = reject_reason::consumer_reject;
    std::array<std::uint8_t, 72> info{};
    private_bytes<148> data{};

    bool operator==(const rej&) const = default;
};

/// Connect reply.
struct rep {
    std::uint32_t local_id = 0, remote_id = 0;
    std::uint32_t queue_key = 0;
    std::uint32_t queue = 0;     ///< 24 bits
    std::uint32_t local_eec = 0; ///< 24 bits
    std::uint32_t first_psn = 0; ///< 24 bits: of what the receiver sends
    std::uint8_t responder_resources = 0, initiator_depth = 0;
    std::uint8_t ack_delay = 0; ///< code
    std::uint8_t failover = 0;  ///< 2 bits: 0 accepted, 1 not supported, 2 rejected
    bool flow_control = false;
    std::uint8_t rnr_retry_count = 0; ///< 3 bits
    bool shared_receives = false;
    std::uint64_t guid = 0;
    private_bytes<196> data{};

    bool operator==(const rep&) const = default;
};

/// Ready to use.
struct rtu {
    std::uint32_t local_id = 0, remote_id = 0;
    private_bytes<224> data{};

    bool operator==(const rtu&) const = default;
};

/// Disconnect request.
struct dreq {
    std::uint32_t local_id = 0, remote_id = 0;
    std::uint32_t remote_queue = 0; ///< 24 bits: the receiver's
    private_bytes<220> data{};

    bool operator==(const dreq&) const = default;
};

/// Disconnect reply.
struct drep {
    std::uint32_t local_id = 0, remote_id = 0;
    private_bytes<224> data{};

    bool operator==(const drep&) const = default;
};

/// Load alternate path. Always refused here, so its path is not read.
struct lap {
    std::uint32_t local_id = 0, remote_id = 0;
    std::uint32_t remote_queue = 0; ///< 24 bits
    private_bytes<168> data{};

    bool operator==(const lap&) const = default;
};

/// Alternate path response.
struct apr {
    std::uint32_t local_id = 0, remote_id = 0;
    std::uint8_t info_bytes = 0;
    alternate_status status = alternate_status::unsupported;
    std::array<std::uint8_t, 72> info{};
    private_bytes<148> data{};

    bool operator==(const apr&) const = default;
};

/// Service ID resolution request: which queue pair takes datagrams for a service?
struct sidr_req {
    std::uint32_t request_id = 0;
    std::uint16_t partition_key = 0xffff;
    std::uint64_t service = 0;
    private_bytes<216> data{};

    bool operator==(const sidr_req&) const = default;
};

/// Service ID resolution response.
struct sidr_rep {
    std::uint32_t request_id = 0;
    service_status status = service_status::valid;
    std::uint8_t info_bytes = 0;
    std::uint32_t queue = 0; ///< 24 bits
    std::uint64_t service = 0;
    std::uint32_t queue_key = 0;
    std::array<std::uint8_t, 72> info{};
    private_bytes<136> data{};

    bool operator==(const sidr_rep&) const = default;
};

using message = std::variant<req, mra, rej, rep, rtu, dreq, drep, sidr_req, sidr_rep, lap, apr>;

/// A whole management datagram.
struct mad {
    std::uint64_t transaction = 0;
    message body{};

    bool operator==(const mad&) const = default;
};

/// Reads a datagram. Any thread; never blocks; reads nothing beyond the bytes. Reserved bits are ignored.
/// @param to  unchanged when the bytes are refused
mad_refusal read(std::span<const std::uint8_t> bytes, mad& to);

/// Writes a datagram. Numbers are cut to the bits of their fields.
std::array<std::uint8_t, mad_bytes> write(const mad& from);

/// "REQ", "SIDR REP".
const char* name_of(const message& body) noexcept;

// The RDMA communication manager, which names services by port numbers (IBTA annex A11).

enum class port_space : std::uint16_t { ipoib = 0x0002, tcp = 0x0106, udp = 0x0111, ib = 0x013f };

constexpr std::uint64_t service_of(port_space space, std::uint16_t port) noexcept
{
    return static_cast<std::uint64_t>(space) << 16 | port;
}

/// What stands first in the private data of a REQ and a SIDR REQ to such a service.
struct ip_header {
    static constexpr std::size_t bytes = 36;

    std::uint16_t source_port = 0;
    roce_gid source{}, destination{}; ///< both of IPv4, or both of IPv6

    bool operator==(const ip_header&) const = default;
};

/// @return nothing: the version is not 0, it is neither IPv4 nor IPv6, or there are less than 36 bytes
std::optional<ip_header> read_ip_header(std::span<const std::uint8_t> data);
/// IPv4 is written where `destination` is of IPv4.
void write_ip_header(std::span<std::uint8_t, ip_header::bytes> to, const ip_header& from);

} // namespace weftio::cm
