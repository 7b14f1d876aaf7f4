// Who receives the RoCE packets of a port, and at which engine.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "net/roce_headers.hpp"
#include "nic/soft/rdma/heard_macs.hpp"
#include "nic/soft/rdma/neighbors.hpp"

namespace weftio::nic::soft {

class rdma_unit;
class roce_arrivals;

/// An address, in a VLAN or in none.
struct claimed_address {
    net::header_address address{};
    std::uint16_t vlan = no_vlan;
    bool operator==(const claimed_address&) const = default;
};

/// A RoCE packet. Its checksums are right when a roce_receiver gets it.
struct roce_arrival {
    const net::roce_packet& packet;
    const net::packet_headers& headers;
    std::span<const std::uint8_t> frame;
    bool own; ///< sent by a queue pair of this port
};

enum class roce_verdict : std::uint8_t { delivered, not_from_peer, other_mac };

/// Receives the packets to one queue number: a queue pair, for example. Called by its engine only, in a turn or in a
/// change between two turns of all engines.
class roce_receiver {
 public:
    /// Processes a packet, or returns why it is not for this receiver.
    virtual roce_verdict receive(const roce_arrival& arrival) = 0;
    /// The address that the port claims packets to for this receiver; nullopt: none now.
    virtual std::optional<claimed_address> claims() const noexcept = 0;

 protected:
    ~roce_receiver() = default;
};

/// One for a port. Engines read it in their turns; it changes only while every engine of the port is between two turns.
class roce_directory {
 public:
    /// Numbers below have a meaning of their own in packets (IBTA, 3.5.3): 1 is the one for connection management.
    static constexpr std::uint32_t least_number = 16;
    static constexpr std::uint32_t number_of_management = 1;
    /// A port has this many numbers.
    static constexpr std::uint32_t numbers = 16384;
    /// The number in datagrams to a multicast group. Those of its members that the engine of neighbors_home() has
    /// receive them.
    static constexpr std::uint32_t number_of_groups = 0xffffff;

    struct entry {
        roce_receiver* receiver = nullptr; ///< nullptr: no one receives packets to the number
        roce_arrivals* home = nullptr;     ///< of the engine that calls the receiver
        std::uint32_t number = 0;          ///< of the receiver in the list of that engine
    };

    /// @param slot  of the port on its wire, or 0: ports of one wire have different numbers
    explicit roce_directory(unsigned slot) : first_(least_number + slot * numbers), next_(first_) {}

    /// The first of this port's numbers.
    std::uint32_t first() const noexcept { return first_; }
    entry find(std::uint32_t number) const noexcept
    {
        const std::uint32_t at = index_of(number);
        return at < entries_.size() ? entries_[at] : absent(number);
    }
    /// Returns a free number. Numbers are given in a circle and reused as late as possible, so that late packets for a
    /// removed queue pair do not reach another one. @throws weftio::error errc::out_of_memory
    std::uint32_t free_number();
    /// Makes `to` receive the packets to `number`: one from free_number(), or one below least_number.
    /// @pre no one receives them  @throws std::bad_alloc nothing has changed
    void put(std::uint32_t number, const entry& to);
    /// Makes the receiver of `number` receive the packets to number_of_management, too, until it is erased.
    /// @throws weftio::error errc::in_use another one does
    void take_management(std::uint32_t number);
    /// Also ends take_management().
    void erase(std::uint32_t number) noexcept;

    /// The units of the port's engines, by number of the engine. Each adds itself.
    void add_unit(rdma_unit& unit) { units_.push_back(&unit); }
    /// The engine with the fewest queue pairs; among equals, the one with the lowest number.
    unsigned emptiest() const noexcept;

    /// The port's own addresses. Only the engine of neighbors_home() calls neighbors::take().
    const neighbors& addresses() const noexcept { return neighbors_; }
    neighbors& addresses() noexcept { return neighbors_; }
    roce_arrivals& neighbors_home() const noexcept;
    /// Any thread.
    heard_macs& heard() noexcept { return heard_; }
    /// @throws weftio::error errc::in_use the port has the address already
    void add_address(const rdma_own_address& own);
    void remove_address(const net::roce_gid& address);
    /// Call it after the claims() of a receiver have changed. Allocates nothing.
    void note_addresses();
    /// From now on, datagrams to the multicast group are for the receiver of `number`, too. Joining twice is once.
    /// @pre someone receives packets to `number`  @throws std::bad_alloc nothing has changed
    void join(const net::header_address& group, std::uint32_t number);
    /// Ends join(). @return whether it had joined
    bool leave(const net::header_address& group, std::uint32_t number) noexcept;
    bool has_members(const net::header_address& group) const noexcept;
    /// Calls each(number, receiver) for all that have joined the group.
    template <class Each>
    void for_each_member(const net::header_address& group, Each&& each) const
    {
        for (const membership& one : members_)
            if (one.group == group)
                each(one.number, *find(one.number).receiver);
    }

    /// Whether packets to this address are claimed.
    bool is_ours(const claimed_address& at) const noexcept;
    bool is_to_us(const net::packet_headers& headers) const noexcept;

 private:
    std::uint32_t index_of(std::uint32_t number) const noexcept
    {
        return number < least_number ? number : number < first_ ? UINT32_MAX : number - first_ + least_number;
    }
    entry absent(std::uint32_t number) const noexcept
    {
        return {
            .receiver = nullptr, .home = number == number_of_groups ? &neighbors_home() : nullptr, .number = number};
    }
    void reserve_claimed();

    struct membership {
        net::header_address group;
        std::uint32_t number;
        bool operator==(const membership&) const = default;
    };

    const std::uint32_t first_;
    std::uint32_t next_;         ///< tried next by free_number()
    std::vector<entry> entries_; ///< see index_of()
    std::vector<rdma_unit*> units_;
    neighbors neighbors_;
    heard_macs heard_;
    std::vector<claimed_address> claimed_; ///< of the port and of all receivers, without duplicates
    std::vector<membership> members_;      ///< of multicast groups
};

} // namespace weftio::nic::soft
