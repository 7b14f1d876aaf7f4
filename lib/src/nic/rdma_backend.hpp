// The interface between the RDMA objects and a NIC: what a NIC with queue pairs must be able to do.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/roce_connection.hpp"
#include "net/roce_headers.hpp"
#include "nic/backend.hpp"
#include "weftio/rdma_dump.hpp"
#include "weftio/rdma_state.hpp"

namespace weftio::nic {

/// The memory of a shared receive queue. Its entries form a linked list: docs/formats.md, "Shared receives".
struct shared_receive_ring {
    ring_memory entries{};      ///< depth x segments x 16 bytes, written by the program
    std::uint32_t depth = 0;    ///< power of two, at most 32768
    std::uint32_t segments = 2; ///< length of an entry, with its link; a power of two, at most 64
    ring_memory dbrec{};        ///< written by the program: entries posted in all, low 16 bits, big-endian
    protection_domain domain{}; ///< entries may name regions of this domain only
};

/// Queue pairs that take entries from it keep it alive. Any thread may call.
class shared_receives {
 public:
    virtual ~shared_receives() = default;
    virtual std::uint32_t number() const noexcept = 0;
    /// See weftio::shared_receives.
    virtual void set_limit(std::uint32_t limit) = 0;
    virtual shared_receives_standing standing() const = 0;
};

/// The receive ring of a queue pair.
struct rdma_receive_ring {
    ring_memory entries{};      ///< depth x segments x 16 bytes, written by the kernel: pointer segments
    std::uint32_t depth = 0;    ///< power of two, at most 32768; 0: the queue receives nothing
    std::uint32_t segments = 1; ///< length of an entry in segments; a power of two, at most 64
    ring_memory dbrec{};        ///< written by the kernel: entries posted in all, low 16 bits, big-endian
    /// depth x 64 bytes. Entry k completes in completion k; the kernel posts entry k + depth after it has read that
    /// completion. Empty: `target` has a queue.
    ring_memory completions{};
    completion_target target{};
    std::shared_ptr<shared_receives> shared{}; ///< has the entries, in place of `entries`; nullptr: there is none
};

struct rdma_rings {
    send_ring send;
    rdma_receive_ring receive;
    window_options windows{};
};

inline constexpr std::uint16_t no_vlan = 0xffff;

/// The VLAN of a packet with this tag. no_vlan: no tag, or a tag with identifier 0, which only has a priority (IEEE
/// 802.1Q, 9.6).
constexpr std::uint16_t vlan_of(std::uint16_t tci) noexcept
{
    const auto id = static_cast<std::uint16_t>(tci & 0x0fff);
    return tci == no_vlan || id == 0 ? no_vlan : id;
}

/// An address that only the port has, in addition to those of the system.
struct rdma_own_address {
    std::array<std::uint8_t, 16> address{}; ///< IPv6, or ::ffff:a.b.c.d
    std::array<std::uint8_t, 6> mac{};
    std::uint16_t vlan_tci = no_vlan; ///< priority and identifier of the tag; no_vlan: packets have none
    bool trace = false;               ///< from now on, the port keeps the last packets of its queue pairs
};

/// As long as this exists, the port answers ARP and IPv6 neighbor discovery for its address, and takes the RoCEv2
/// packets to that address.
class held_rdma_address {
 public:
    virtual ~held_rdma_address() = default;
    /// The MAC of a peer's address, if it is known without a question. Any thread; blocks for up to one iteration of
    /// the engine.
    virtual std::optional<std::array<std::uint8_t, 6>> known(const std::array<std::uint8_t, 16>&)
    {
        return std::nullopt;
    }
    /// Asks for the MAC of a peer's address of the same IP version, once a second. Blocks at most as long as it is to
    /// wait. Any thread. In inline mode, it runs the turns of the port.
    /// @return nothing: there was no answer, or the device of the port has gone
    virtual std::optional<std::array<std::uint8_t, 6>> resolve(const std::array<std::uint8_t, 16>& peer,
                                                               std::chrono::milliseconds patience) = 0;
    /// Whether the host with this MAC has left the wire, or was killed, and nothing that it has sent is unread. Any
    /// thread; a few system calls.  @return nothing: the port does not learn of it
    virtual std::optional<bool> has_left(const std::array<std::uint8_t, 6>&) const { return std::nullopt; }
};

/// What both ends agreed on. The caller has checked all values.
struct rdma_connection : net::roce_connection {
    net::roce_path path; ///< the NIC sets `l3` and `source_port`
    /// Of a queue pair without a connection: the addresses that the entries name by their index.
    std::vector<rdma_own_address> sources{};
};

using weftio::rdma_counters;

/// A queue pair with completion queues begins in RESET, any other in INIT.
///
/// When a queue pair fails, it flushes the posted receive entries; entries posted later are flushed in a later turn,
/// even when nothing is committed to its send ring. Its send completion then is an error even if there was no send
/// entry: a kernel that waits for a receive must therefore also check the send completion.
class rdma_queue : public send_queue {
 public:
    /// Moves the queue to another state. The caller has checked that verbs allow this transition from state(), and
    /// `how` has everything that was set since RESET. After a move to RESET, the NIC no longer uses any memory of the
    /// queue, and the queue begins at index 0 of the same rings.
    /// @throws weftio::error errc::not_supported the NIC cannot do this
    virtual void modify(rdma_state to, const rdma_connection& how) = 0;
    /// The present state, and whether SQD is still draining.
    struct standing {
        rdma_state state = rdma_state::init;
        bool draining = false;
    };
    virtual standing state() const = 0;
    using send_queue::restart;
    /// Gives the queue new rings of the same depths; it is then in INIT. Use it instead of restart().
    virtual void restart(const rdma_rings& rings) = 0;
    /// From now on, or no longer, datagrams to this multicast group are for this queue pair, too. Attaching twice is
    /// once.  @return detach(): whether it was attached
    /// @throws weftio::error errc::not_supported the NIC cannot do this; errc::out_of_memory
    virtual void attach(const net::roce_gid& group);
    virtual bool detach(const net::roce_gid& group);
    /// From now on, management datagrams (to queue pair 1) are for this queue pair, too, and its own are from queue
    /// pair 1. @pre its service is datagram
    /// @throws weftio::error errc::not_supported the NIC cannot do this; errc::in_use another queue pair has them
    virtual void take_management();
    virtual rdma_counters counters() const = 0;
    /// Windows of type 2A that it has bound. As long as there are any, it must not be closed.
    virtual std::uint32_t windows() const { return 0; }
    /// Describes what the queue pair waits for. The default reports number and state only.
    virtual rdma_dump dump() const
    {
        rdma_dump known;
        known.number = number();
        known.state = state().state;
        return known;
    }
    /// The last packets of its port's queue pairs as a pcapng file; empty: the NIC keeps none. @param comment  the
    /// comment in the file
    virtual std::vector<std::uint8_t> trace(const std::string& comment) const
    {
        static_cast<void>(comment);
        return {};
    }
};

} // namespace weftio::nic
