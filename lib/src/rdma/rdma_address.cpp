#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "net/neighbor_messages.hpp"
#include "net/roce_headers.hpp"
#include "net/roce_rules.hpp"
#include "rdma/blob.hpp"
#include "rdma/pair_attributes.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

constexpr rdma::blob_kind address_blob{"WFQP", "rdma_address", "rdma_queue::address()", rdma_address::size_bytes};
constexpr std::size_t service_at = rdma::blob_body, reads_at = 7, gid_at = 8, mac_at = 24, queue_at = 32, psn_at = 36,
                      mtu_at = 40, key_at = 44;

/// Checks fields of an address whose checksum is right: wrong values mean that another library version wrote it.
void require_known(const rdma_peer& peer)
{
    if (net::opcodes_of(peer.service) == net::roce_service::none || !net::is_path_mtu(peer.path_mtu) ||
        peer.most_reads == 0 || (peer.queue_key & WEFTIO_QUEUE_KEY_OWN) != 0 || peer.queue > net::psn_mask ||
        peer.first_psn > net::psn_mask)
        throw error(
            errc::invalid_argument,
            fmt::format(
                "weftio: rdma_address: service {}, path MTU {}, {} reads, queue {:#x}, sequence number {:#x}: no queue "
                "pair of this library has these values; use libraries of the same version at both ends",
                static_cast<unsigned>(peer.service), peer.path_mtu, peer.most_reads, peer.queue, peer.first_psn));
}

void require_peer(const rdma_peer& peer)
{
    constexpr std::uint32_t first_of_connections = 2; // queue pairs 0 and 1 are for management
    rdma::require_range("rdma_peer", "queue", peer.queue, first_of_connections, net::psn_mask);
    rdma::require_range("rdma_peer", "first_psn", peer.first_psn, 0, net::psn_mask);
    rdma::require_range("rdma_peer", "most_reads", peer.most_reads, 1, 255);
    rdma::require_service("rdma_peer", peer.service);
    rdma::require_queue_key("rdma_peer", peer.queue_key);
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
    if (!rdma::address_of_host(peer.address))
        throw error(errc::invalid_argument, fmt::format("weftio: rdma_peer: \"{}\" is not a host address; write an "
                                                        "IPv4 or IPv6 address, as in .address = \"10.0.0.1\"",
                                                        peer.address));
    require_peer(peer);
    return rdma::to_address(peer);
}

rdma_peer rdma_address::peer() const
{
    rdma::require_sealed(address_blob, bytes);
    const auto word = [&](std::size_t at) { return static_cast<std::uint32_t>(rdma::get_be(&bytes[at], 4)); };
    net::roce_gid gid{};
    std::array<std::uint8_t, 6> mac{};
    std::copy_n(&bytes[gid_at], gid.size(), gid.begin());
    std::copy_n(&bytes[mac_at], mac.size(), mac.begin());
    rdma_peer peer{.address = net::text_of(gid),
                   .queue = word(queue_at),
                   .first_psn = word(psn_at),
                   .service = static_cast<rdma_service>(bytes[service_at]),
                   .path_mtu = word(mtu_at),
                   .most_reads = bytes[reads_at],
                   .queue_key = word(key_at)};
    if (mac != decltype(mac){})
        peer.mac = mac;
    require_known(peer);
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
    if (net::opcodes_of(service) == net::roce_service::none)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: service is {}; set rdma_service::reliable, unreliable or datagram", who,
                                static_cast<unsigned>(service)));
}

void require_queue_key(std::string_view who, std::uint32_t key)
{
    if ((key & WEFTIO_QUEUE_KEY_OWN) != 0)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: queue_key is {:#x}, whose highest bit is set; leave that to privileged "
                                "queue pairs, and set 0 to 0x7fffffff",
                                who, key));
}

void refuse_rights(std::string_view who, access rights)
{
    throw error(errc::invalid_argument,
                fmt::format("weftio: {}: rights are {:#x}; set access::remote_write, remote_read and remote_atomic "
                            "only",
                            who, static_cast<unsigned>(rights)));
}

rdma_address to_address(const rdma_peer& peer)
{
    rdma_address address;
    std::uint8_t* const to = address.bytes.data();
    const net::roce_gid gid = address_of_host(peer.address).value_or(net::roce_gid{});
    const auto mac = peer.mac.value_or(std::array<std::uint8_t, 6>{});
    to[service_at] = static_cast<std::uint8_t>(peer.service);
    to[reads_at] = peer.most_reads;
    std::copy(gid.begin(), gid.end(), to + gid_at);
    std::copy(mac.begin(), mac.end(), to + mac_at);
    put_be(to + queue_at, peer.queue, 4);
    put_be(to + psn_at, peer.first_psn, 4);
    put_be(to + mtu_at, peer.path_mtu, 4);
    put_be(to + key_at, peer.queue_key, 4);
    seal(address_blob, address.bytes);
    return address;
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

std::optional<net::roce_gid> address_of(const std::string& text)
{
    net::roce_gid address{};
    std::array<std::uint8_t, 4> v4{};
    if (inet_pton(AF_INET, text.c_str(), v4.data()) == 1)
        return net::gid_of_ipv4(v4);
    return inet_pton(AF_INET6, text.c_str(), address.data()) == 1 ? std::optional(address) : std::nullopt;
}

} // namespace

std::optional<net::roce_gid> address_of_host(const std::string& text)
{
    const auto address = address_of(text);
    return address && is_host_address(*address) ? address : std::nullopt;
}

std::optional<net::roce_gid> address_of_group(const std::string& text)
{
    const auto address = address_of(text);
    return address && net::is_group(*address) ? address : std::nullopt;
}

} // namespace rdma

} // namespace weftio
