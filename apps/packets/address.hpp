// Addresses of the port.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace weftio::packets {

/// An IPv4 or IPv6 address with the length of its network's prefix.
struct address {
    unsigned version = 4;                 ///< 4 or 6
    std::array<std::uint8_t, 16> bytes{}; ///< those of IPv4 are the first four
    unsigned prefix = 0;

    bool operator==(const address&) const = default;
};

/// Parses "10.9.0.1/24" or "fd00::1/64"; without a prefix length it is 24 or 64.
/// @throws std::invalid_argument a text that is no address of one host: the text says why and how to write it
address parse_address(std::string_view text);

/// The link-local address of a MAC address (RFC 4291, appendix A).
address link_local(const std::array<std::uint8_t, 6>& mac) noexcept;

/// Another host of the address's network: the address after it, or the one before it where that is the last.
address neighbor_of(const address& own) noexcept;

/// Whether `other` is in the network of `own`.
bool has_in_network(const address& own, const address& other) noexcept;

std::string to_string(const address& address);   ///< "10.9.0.1"
std::string with_prefix(const address& address); ///< "10.9.0.1/24"
/// As it stands in a URL: IPv6 ones in brackets.
std::string in_url(const address& address);

} // namespace weftio::packets
