// What an rdma_device has inside, for the queue pairs that are made at it.
#pragma once

#include "net/roce_headers.hpp"
#include "rdma/rdma_end.hpp"

namespace weftio {

struct rdma_device::state {
    state(std::shared_ptr<nic::backend> of, const nic::rdma_own_address& its)
        : nic(std::move(of)), own(its), text(net::text_of(its.address)), held(nic->add_rdma_address(its))
    {}

    /// Asks for the MAC of a peer's address. Blocks 3 s at most. @param who, number  for the error text
    /// @throws weftio::error errc::timed_out, errc::closed
    std::array<std::uint8_t, 6> mac_of(std::string_view who, std::uint32_t number, const net::roce_gid& peer) const;
    /// @throws weftio::error errc::invalid_argument the peer's address is of the other IP version
    void require_same_kind(std::string_view who, std::uint32_t number, const net::roce_gid& peer) const;

    const std::shared_ptr<nic::backend> nic;
    const nic::rdma_own_address own;
    const std::string text;                             ///< of the address
    const std::unique_ptr<nic::held_rdma_address> held; ///< the port has it as long
};

} // namespace weftio
