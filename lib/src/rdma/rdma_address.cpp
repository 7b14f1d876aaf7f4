#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "net/roce_headers.hpp"
#include "net/roce_rules.hpp"
#include "rdma/blob.hpp"
#include "rdma/rdma_end.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

constexpr rdma::blob_kind address_blob{"WFQP", "rdma_address", "rdma_queue::address()", rdma_address::size_bytes};
constexpr std::size_t service_at = rdma::blob_body, reads_at = 7, gid_at = 8, mac_at = 24, queue_at = 32, psn_at = 36,
                      mtu_at = 40;

/// Checks fields of an address whose checksum is right: wrong values mean that another library version wrote it.
void require_known(const rdma::rdma_end_info& info)
{
    if (!rdma::is_service(info.service) || !net::is_path_mtu(info.path_mtu) || info.most_reads == 0 ||
        info.end.queue > net::psn_mask || info.end.first_psn > net::psn_mask)
        throw error(
            errc::invalid_argument,
            fmt::format(
                "weftio: rdma_address: service {}, path MTU {}, {} reads, queue {:#x}, sequence number {:#x}: no queue "
                "pair of this library has these values; use libraries of the same version at both ends",
                static_cast<unsigned>(info.service), info.path_mtu, info.most_reads, info.end.queue,
                info.end.first_psn));
}

void require_peer(const rdma_peer& peer)
{
    const auto require = [](const char* name, std::uint32_t value, std::uint32_t least, std::uint32_t most) {
        if (value < least || value > most)
            throw error(errc::invalid_argument,
                        fmt::format("weftio: rdma_peer: {} is {}; set {} to {}", name, value, least, most));
    };
    constexpr std::uint32_t first_of_connections = 2; // queue pairs 0 and 1 are for management
    require("queue", peer.queue, first_of_connections, net::psn_mask);
    require("first_psn", peer.first_psn, 0, net::psn_mask);
    require("most_reads", peer.most_reads, 1, 255);
    rdma::require_service("rdma_peer", peer.service);
    if (!net::is_path_mtu(peer.path_mtu))
        throw error(errc::invalid_argument,
                    fmt::format("weftio: rdma_peer: path_mtu is {}; set 256, 512, 1024, 2048 or 4096", peer.path_mtu));
    if (peer.mac && (*peer.mac == std::array<std::uint8_t, 6>{} || ((*peer.mac)[0] & 1) != 0))
        throw error(errc::invalid_argument, fmt::format("weftio: rdma_peer: mac is {:02x}, which no host can have; set "
                                                        "the peer's MAC, or leave it out to resolve it",
                                                        fmt::join(*peer.mac, ":")));
}

} // namespace

rdma_address rdma_address::of(const rdma_peer& peer)
{
    const auto address = rdma::address_of_host(peer.address);
    if (!address)
        throw error(errc::invalid_argument, fmt::format("weftio: rdma_peer: \"{}\" is not a host address; write an "
                                                        "IPv4 or IPv6 address, as in .address = \"10.0.0.1\"",
                                                        peer.address));
    require_peer(peer);
    return rdma::to_address({.end = {.mac = peer.mac.value_or(std::array<std::uint8_t, 6>{}),
                                     .address = *address,
                                     .queue = peer.queue,
                                     .first_psn = peer.first_psn},
                             .service = peer.service,
                             .path_mtu = peer.path_mtu,
                             .most_reads = peer.most_reads});
}

rdma_peer rdma_address::peer() const
{
    const rdma::rdma_end_info info = rdma::from_address(*this);
    rdma_peer peer{.address = net::text_of(info.end.address),
                   .queue = info.end.queue,
                   .first_psn = info.end.first_psn,
                   .service = info.service,
                   .path_mtu = info.path_mtu,
                   .most_reads = info.most_reads};
    if (info.has_mac())
        peer.mac = info.end.mac;
    return peer;
}

std::string rdma_address::text() const
{
    return rdma::to_hex(bytes);
}

rdma_address rdma_address::of_text(std::string_view text)
{
    rdma_address address;
    rdma::from_hex(address_blob, text, address.bytes);
    return of_bytes(address.bytes);
}

rdma_address rdma_address::of_bytes(std::span<const std::uint8_t> bytes)
{
    rdma::require_sealed(address_blob, bytes);
    rdma_address address;
    std::copy(bytes.begin(), bytes.end(), address.bytes.begin());
    return address;
}

namespace rdma {

void require_service(std::string_view who, rdma_service service)
{
    if (!rdma::is_service(service))
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: service is {}; set rdma_service::reliable or unreliable", who,
                                static_cast<unsigned>(service)));
}

rdma_address to_address(const rdma_end_info& info) noexcept
{
    rdma_address address;
    std::uint8_t* const to = address.bytes.data();
    to[service_at] = static_cast<std::uint8_t>(info.service);
    to[reads_at] = info.most_reads;
    std::copy(info.end.address.begin(), info.end.address.end(), to + gid_at);
    std::copy(info.end.mac.begin(), info.end.mac.end(), to + mac_at);
    put_be(to + queue_at, info.end.queue, 4);
    put_be(to + psn_at, info.end.first_psn, 4);
    put_be(to + mtu_at, info.path_mtu, 4);
    seal(address_blob, address.bytes);
    return address;
}

rdma_end_info from_address(const rdma_address& address)
{
    require_sealed(address_blob, address.bytes);
    const std::uint8_t* const from = address.bytes.data();
    rdma_end_info info;
    info.service = static_cast<rdma_service>(from[service_at]);
    info.most_reads = from[reads_at];
    std::copy_n(from + gid_at, info.end.address.size(), info.end.address.begin());
    std::copy_n(from + mac_at, info.end.mac.size(), info.end.mac.begin());
    info.end.queue = static_cast<std::uint32_t>(get_be(from + queue_at, 4));
    info.end.first_psn = static_cast<std::uint32_t>(get_be(from + psn_at, 4));
    info.path_mtu = static_cast<std::uint32_t>(get_be(from + mtu_at, 4));
    require_known(info);
    return info;
}

namespace {

/// Whether a host on a link can have this address: not the unspecified address, loopback, a group, or IPv4 broadcast.
bool is_host_address(const std::array<std::uint8_t, 16>& address) noexcept
{
    const auto v4 = std::span(address).last<4>();
    if (net::is_ipv4(address))
        return v4[0] != 0 && v4[0] != 127 && v4[0] < 224;
    const bool up_to_one = std::all_of(address.begin(), address.end() - 1, [](std::uint8_t byte) { return byte == 0; });
    return address[0] != 0xff && !(up_to_one && address.back() <= 1);
}

} // namespace

std::optional<std::array<std::uint8_t, 16>> address_of_host(const std::string& text)
{
    std::array<std::uint8_t, 16> address{};
    std::array<std::uint8_t, 4> v4{};
    if (inet_pton(AF_INET, text.c_str(), v4.data()) == 1)
        address = net::gid_of_ipv4(v4);
    else if (inet_pton(AF_INET6, text.c_str(), address.data()) != 1)
        return std::nullopt;
    return is_host_address(address) ? std::optional(address) : std::nullopt;
}

} // namespace rdma

} // namespace weftio
