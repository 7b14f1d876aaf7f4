// One end of a connection, as described to the peer: the content of an rdma_address.
#pragma once

#include "nic/rdma_backend.hpp"
#include "weftio/rdma.hpp"

namespace weftio::rdma {

/// The rights that a peer can get, and the limit of READs and atomics in flight.
inline constexpr access remote_rights = access::remote_write | access::remote_read | access::remote_atomic;
inline constexpr std::uint32_t most_reads_in_flight = 16;

struct rdma_end_info {
    nic::rdma_end end;
    rdma_service service = rdma_service::reliable;
    std::uint32_t path_mtu = 1024;
    std::uint8_t most_reads = 16; ///< READs and atomics that this end accepts, and has in flight at most

    /// Whether the MAC of `end` is known. An unknown MAC is all zeros.
    bool has_mac() const noexcept { return end.mac != decltype(end.mac){}; }
};

/// @throws weftio::error errc::invalid_argument rdma_service does not have this value. @param who  for the error text
void require_service(std::string_view who, rdma_service service);
constexpr bool is_service(rdma_service service) noexcept
{
    switch (service) {
        case rdma_service::reliable:
        case rdma_service::unreliable: return true;
    }
    return false;
}

rdma_address to_address(const rdma_end_info& info) noexcept;
/// @throws weftio::error errc::invalid_argument it is not an address, or a field has an invalid value
rdma_end_info from_address(const rdma_address& address);

/// Parses an IPv4 or IPv6 address as inet_pton() does. Empty: it is not an address, or not one that a host can have.
std::optional<std::array<std::uint8_t, 16>> address_of_host(const std::string& text);

} // namespace weftio::rdma
