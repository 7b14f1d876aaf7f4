// A port's own RDMA addresses, and the MACs of peers' addresses, found by ARP and ND.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "net/neighbor_messages.hpp"
#include "nic/rdma_backend.hpp"

namespace weftio::nic::soft {

/// One for a port. All engines call claims() in their turns, and one engine take() and answer_to(). It changes in any
/// other way only while every engine is between two turns. Learns only from answers to open questions, so other hosts
/// cannot fill it.
class neighbors {
 public:
    /// @throws weftio::error errc::in_use the port has the address already
    void add(const rdma_own_address& own);
    void remove(const net::roce_gid& address) noexcept;
    std::size_t count() const noexcept { return own_.size(); }
    bool has(const net::roce_gid& address) const noexcept { return find(address) != nullptr; }
    std::optional<net::mac_address> own_mac(const net::roce_gid& address) const noexcept
    {
        const rdma_own_address* const own = find(address);
        return own ? std::optional(own->mac) : std::nullopt;
    }
    template <class Each>
    void for_each(Each&& each) const
    {
        for (const rdma_own_address& own : own_)
            each(own);
    }

    /// Whether the frame asks for the MAC of one of this port's addresses, or answers an open question of this port.
    bool claims(std::span<const std::uint8_t> frame, const net::packet_headers& headers) const noexcept;
    /// Learns the MAC from an answer, or writes the answer to a question. @pre claims()
    /// @param answer  at least most_neighbor_bytes long
    /// @return bytes written; 0: none
    std::size_t take(std::span<const std::uint8_t> frame, const net::packet_headers& headers,
                     std::span<std::uint8_t> answer);

    /// Opens a question. It stays open until close() has been called as often as open().
    void open(const net::roce_gid& from, const net::roce_gid& target);
    void close(const net::roce_gid& from, const net::roce_gid& target) noexcept;
    /// Writes the message that asks. @pre has(from)
    /// @param to  at least most_neighbor_bytes long
    /// @return bytes written
    std::size_t ask(const net::roce_gid& from, const net::roce_gid& target, std::span<std::uint8_t> to) const noexcept;
    /// The newest answer to an open question.
    std::optional<net::mac_address> answer_to(const net::roce_gid& from, const net::roce_gid& target) const noexcept;

 private:
    struct question {
        net::roce_gid from{}, target{};
        std::optional<net::mac_address> mac{};
        unsigned opened = 0; ///< calls of open() without close()
    };

    static bool is_answered(const question& each, const net::neighbor_message& by) noexcept;
    const rdma_own_address* find(const net::roce_gid& address) const noexcept;
    bool understands(std::span<const std::uint8_t> frame, const net::packet_headers& headers,
                     net::neighbor_message& message) const noexcept;

    std::vector<rdma_own_address> own_;
    std::vector<question> questions_;
};

} // namespace weftio::nic::soft
