// One end of a connection, as described to the peer: the content of an rdma_address.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weftio/rdma.hpp"

namespace weftio::rdma {

inline constexpr std::uint32_t most_reads_in_flight = 16; ///< limit of READs and atomics

/// @throws weftio::error errc::invalid_argument. @param who  for the error text
[[noreturn]] void refuse_rights(std::string_view who, access rights);
/// @throws weftio::error errc::invalid_argument rdma_service does not have this value. @param who  for the error text
void require_service(std::string_view who, rdma_service service);
/// @throws weftio::error errc::invalid_argument a program may not set this Q_Key. @param who  for the error text
void require_queue_key(std::string_view who, std::uint32_t key);
/// The address of a queue pair, without checks.
rdma_address to_address(const rdma_peer& peer);

/// Parses an IPv4 or IPv6 address as inet_pton() does. Empty: it is not an address, or not one that a host can have.
std::optional<std::array<std::uint8_t, 16>> address_of_host(const std::string& text);
/// The same for an address of a multicast group.
std::optional<std::array<std::uint8_t, 16>> address_of_group(const std::string& text);

} // namespace weftio::rdma
