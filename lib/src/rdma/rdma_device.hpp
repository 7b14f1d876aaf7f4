// The internals of an rdma_device, for the queue pairs made on it.
#pragma once

#include <vector>

#include "net/roce_headers.hpp"
#include "rdma/rdma_end.hpp"

namespace weftio {

struct rdma_device::state {
    /// An address of the device.
    struct gid {
        nic::rdma_own_address own;
        std::string text;
        std::unique_ptr<nic::held_rdma_address> held; ///< keeps the address claimed at the port
    };

    /// @param addresses  at least one
    state(std::shared_ptr<nic::backend> of, const std::vector<nic::rdma_own_address>& addresses);

    /// Its first address.
    const nic::rdma_own_address& own() const noexcept { return gids.front().own; }
    /// Resolves the MAC of `peer`, asking from the address `ours`. Blocks 3 s at most.
    /// @param who, number  for the error text
    /// @throws weftio::error errc::timed_out, errc::closed
    std::array<std::uint8_t, 6> mac_of(std::string_view who, std::uint32_t number, const gid& ours,
                                       const net::roce_gid& peer) const;
    /// @throws weftio::error errc::invalid_argument the two addresses are of different IP versions
    static void require_same_kind(std::string_view who, std::uint32_t number, const gid& ours,
                                  const net::roce_gid& peer);

    const std::shared_ptr<nic::backend> nic;
    const std::vector<gid> gids;
};

} // namespace weftio
