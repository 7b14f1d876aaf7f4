// What a program names by a struct rdma_cm_id: a listener, a connection, or one of them in the making.
#pragma once

#include <rdma/rdma_user_cm.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cm/agreement.hpp"
#include "cm/connection.hpp"
#include "rdma_cm/service_ports.hpp"
#include "rdma_cm/socket_address.hpp"

namespace weftio::verbs::rdma_cm {

class file;

/// What stands between a program and its connection. "bound" has an address; "resolved" knows how to reach the peer.
enum class phase : std::uint8_t { idle, bound, resolving, resolved, routed, listening, connecting, connected, ended };

const char* name_of(phase of) noexcept;

/// A multicast group that an identifier has joined.
struct membership {
    std::uint64_t user_handle = 0;
    std::uint32_t of = 0; ///< number of the identifier
    net::roce_gid group{};
    std::uint32_t events_reported = 0;
};

/// Guarded by the mutex of the service.
struct identifier {
    std::uint32_t number = 0;
    std::uint64_t user_handle = 0;
    file* in = nullptr; ///< where its events go
    cm::port_space space = cm::port_space::tcp;
    bool datagrams = false; ///< its queue pair is of UD
    phase now = phase::idle;
    bool passive = false, accepted = false; ///< made by a request of a peer; the program has accepted it

    socket_address local{}, remote{};
    std::optional<bool> family_only{};                       ///< AFONLY, if the program has set it
    std::array<std::optional<claimed_port>, 2> claimed_of{}; ///< by family
    std::optional<unsigned> device{};                        ///< index of its node
    unsigned gid_index = 0;
    cm::path route{};
    std::chrono::steady_clock::time_point resolve_until{};

    std::vector<std::pair<unsigned, std::uint32_t>> listeners{}; ///< node, and number at its manager
    std::size_t backlog = 0, undelivered = 0;                    ///< of requests that the program has not read

    std::optional<std::uint32_t> connection{}; ///< communication ID at the manager of `device`
    std::optional<cm::req> request{};
    std::optional<cm::rep> reply{};
    std::optional<rdma_ucm_conn_param> asked{}; ///< by CONNECT, while the owner of the peer's port is looked for
    std::uint32_t first_psn = 0;                ///< of what its queue pair receives

    std::uint8_t traffic_class = 0;
    std::optional<std::uint8_t> ack_timeout{};
    bool reuses_address = false;
    std::uint32_t queue_key = 0x01234567; ///< of datagrams (RDMA_UDP_QKEY)
    std::set<std::uint32_t> groups{};     ///< numbers of its memberships
    std::uint32_t events_reported = 0;

    /// Whether it takes addresses of its own family only. Of IPv4 it does, unless the program says otherwise, as Linux.
    bool is_family_only() const noexcept { return family_only.value_or(local.of() == family::ipv4); }
    /// Whether it listens to requests of this family.
    bool takes(family of) const noexcept
    {
        if (local.is == socket_address::kind::infiniband)
            return true;
        return local.of() == of || (local.of() == family::ipv6 && local.is_any() && !is_family_only());
    }
};

} // namespace weftio::verbs::rdma_cm
