// The internals of an rdma_device, for the queue pairs made on it.
#pragma once

#include <utility>
#include <vector>

#include "net/roce_headers.hpp"
#include "nic/rdma_backend.hpp"
#include "rdma/rdma_end.hpp"

namespace weftio {

namespace rdma {

/// The addresses of an rdma_device at its port.
struct local_addresses {
    /// An address of the device.
    struct gid {
        nic::rdma_own_address own;
        std::string text;
        std::shared_ptr<nic::held_rdma_address> held; ///< keeps the address claimed at the port
    };

    /// @param addresses  at least one
    /// @param repeated   indices of gids, each of which is listed once more behind it
    local_addresses(std::shared_ptr<nic::backend> of, const std::vector<nic::rdma_own_address>& addresses,
                    const std::vector<std::uint8_t>& repeated);

    /// The address at an index. @throws weftio::error errc::invalid_argument
    const gid& at(std::string_view who, unsigned index) const;
    /// Its first address.
    const nic::rdma_own_address& own() const noexcept { return gids.front().own; }
    /// @throws weftio::error errc::closed the port's device has been removed
    void require_port(std::string_view who) const;
    /// Resolves the MAC of `peer`, asking from the address `ours`. Blocks 3 s at most.
    /// @param who  for the error text: "queue_pair 17"
    /// @throws weftio::error errc::timed_out, errc::closed
    std::array<std::uint8_t, 6> mac_of(std::string_view who, const gid& ours, const net::roce_gid& peer) const;
    /// @throws weftio::error errc::invalid_argument the two addresses are of different IP versions
    static void require_same_kind(std::string_view who, const gid& ours, const net::roce_gid& peer);

    const std::shared_ptr<nic::backend> nic;
    const std::vector<gid> gids;
};

} // namespace rdma

struct rdma_device::state : rdma::local_addresses {
    state(std::shared_ptr<nic::backend> of, const std::vector<nic::rdma_own_address>& addresses,
          const rdma_device_options& options)
        : local_addresses(std::move(of), addresses, options.repeated_gids), windows{options.strict_windows,
                                                                                    options.windows_of_type_2a}
    {}

    const nic::window_options windows;
};

} // namespace weftio
