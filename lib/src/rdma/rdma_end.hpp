// One end of a connection, as it is told to the other: what an rdma_address has inside.
#pragma once

#include "nic/rdma_backend.hpp"
#include "weftio/rdma.hpp"

namespace weftio::rdma {

/// What a peer can be allowed, and READs and atomics in flight at most.
inline constexpr access remote_rights = access::remote_write | access::remote_read | access::remote_atomic;
inline constexpr std::uint32_t most_reads_in_flight = 16;

struct rdma_end_info {
    nic::rdma_end end;
    rdma_service service = rdma_service::reliable;
    std::uint32_t path_mtu = 1024;
    std::uint8_t most_reads = 16; ///< that this end takes, and has in flight

    /// Whether the MAC of `end` is known; all zeros else.
    bool tells_mac() const noexcept { return end.mac != decltype(end.mac){}; }
};

rdma_address to_address(const rdma_end_info& info) noexcept;
/// @throws weftio::error errc::invalid_argument it is no address, or has values that none has
rdma_end_info from_address(const rdma_address& address);

/// Of IPv4 or IPv6, as inet_pton() reads it. Nothing: it is none, or none that a host can have.
std::optional<std::array<std::uint8_t, 16>> address_of_host(const std::string& text);

} // namespace weftio::rdma
