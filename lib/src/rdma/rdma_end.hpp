// One end of a connection, as it is told to the other: what an rdma_address has inside.
#pragma once

#include "nic/rdma_backend.hpp"
#include "weftio/rdma.hpp"

namespace weftio::detail {

struct rdma_end_info {
    nic::rdma_end end;
    rdma_service service = rdma_service::reliable;
    std::uint32_t path_mtu = 1024;
    std::uint8_t most_reads = 16; ///< that this end takes, and has in flight
};

rdma_address to_address(const rdma_end_info& info) noexcept;
/// @throws weftio::error errc::invalid_argument it is no address, or has values that none has
rdma_end_info from_address(const rdma_address& address);

/// Whether an address of 16 bytes is IPv4's, ::ffff:a.b.c.d.
bool is_ipv4(const std::array<std::uint8_t, 16>& address) noexcept;
/// As inet_ntop() writes it.
std::string to_text(const std::array<std::uint8_t, 16>& address);

} // namespace weftio::detail
