// Addresses as programs give them to the connection manager: struct sockaddr of several families.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "net/roce_headers.hpp"

namespace weftio::verbs::rdma_cm {

/// IPv4 and IPv6 have ports of their own, as sockets with IPV6_V6ONLY.
enum class family : std::uint8_t { ipv4, ipv6 };
inline constexpr family families[] = {family::ipv4, family::ipv6};

inline family family_of(const net::roce_gid& address) noexcept
{
    return net::is_ipv4(address) ? family::ipv4 : family::ipv6;
}

inline constexpr net::roce_gid ipv6_loopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

/// IPv4 addresses are ::ffff:a.b.c.d, as in GIDs.
struct socket_address {
    enum class kind : std::uint8_t { none, ipv4, ipv6, infiniband };

    kind is = kind::none;
    std::uint16_t port = 0; ///< host byte order
    net::roce_gid gid{};
    std::uint32_t scope = 0; ///< IPv6: index of an interface

    family of() const noexcept { return is == kind::ipv4 ? family::ipv4 : family_of(gid); }
    bool is_any() const noexcept;
    bool is_loopback() const noexcept;
    /// "10.0.0.1:7174", "[fd00::1]:7174".
    std::string text() const;
};

/// Bytes of the longest form that is read and written, struct sockaddr_ib.
inline constexpr std::size_t most_address_bytes = 48;

/// Reads a struct sockaddr. @return nothing: the family is not known, or the struct is cut
std::optional<socket_address> read_address(std::span<const std::byte> from);
/// Writes a struct sockaddr of the address's family; `none` as IPv4 without an address. @return its size
std::size_t write_address(const socket_address& from, std::span<std::byte, most_address_bytes> to);
/// The same as a struct sockaddr_ib, whatever the family. @param service  service ID
std::size_t write_infiniband(const net::roce_gid& gid, std::uint64_t service,
                             std::span<std::byte, most_address_bytes> to);

/// An address of IPv4 or IPv6 with a port; the family is that of the address.
socket_address address_of(const net::roce_gid& gid, std::uint16_t port) noexcept;

/// Whether an interface of this host has the address.
bool is_of_this_host(const net::roce_gid& gid);

} // namespace weftio::verbs::rdma_cm
