// A port's own addresses for RDMA, the questions for them, and the MACs that peers' addresses have.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "net/neighbor_messages.hpp"
#include "nic/rdma_backend.hpp"

namespace weftio::nic::soft {

/// Only the engine calls it, or a change between two turns does. Learns from answers to open questions only, so
/// strangers cannot fill it.
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

    /// Whether the frame asks for the MAC of an address of this port, or answers a question of this port.
    bool claims(std::span<const std::uint8_t> frame, const net::packet_headers& headers) const noexcept;
    /// Learns from an answer; writes the answer to a question. @pre claims()
    /// @param answer  has room for most_neighbor_bytes
    /// @return bytes written; 0: none
    std::size_t take(std::span<const std::uint8_t> frame, const net::packet_headers& headers,
                     std::span<std::uint8_t> answer);

    /// Opens a question, until close() has been called as often.
    void open(const net::roce_gid& from, const net::roce_gid& target);
    void close(const net::roce_gid& from, const net::roce_gid& target) noexcept;
    /// Writes the message that asks. @pre has(from)
    /// @param to  has room for most_neighbor_bytes
    /// @return bytes written
    std::size_t ask(const net::roce_gid& from, const net::roce_gid& target, std::span<std::uint8_t> to) const noexcept;
    /// The answer to an open question, the last one if there were several.
    std::optional<net::mac_address> answer_to(const net::roce_gid& from, const net::roce_gid& target) const noexcept;

 private:
    struct question {
        net::roce_gid from{}, target{};
        std::optional<net::mac_address> mac{};
        unsigned opened = 0; ///< times
    };

    static bool is_answered(const question& each, const net::neighbor_message& by) noexcept;
    const rdma_own_address* find(const net::roce_gid& address) const noexcept;
    bool understands(std::span<const std::uint8_t> frame, const net::packet_headers& headers,
                     net::neighbor_message& message) const noexcept;

    std::vector<rdma_own_address> own_;
    std::vector<question> questions_;
};

} // namespace weftio::nic::soft
