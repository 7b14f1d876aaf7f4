#include "rdma/rdma_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "net/neighbor_messages.hpp"
#include "net/roce_headers.hpp"
#include "net/roce_rules.hpp"
#include "rdma/pair_attributes.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

std::array<std::uint8_t, 16> parse_address(const port& port, const std::string& text)
{
    if (text.empty())
        throw error(errc::invalid_argument,
                    fmt::format("weftio: rdma_device: port {} has no address, which peers need to find it; set "
                                ".address = \"10.0.0.1\", or another one that belongs to this host only",
                                port.spec()));
    const auto address = rdma::address_of_host(text);
    if (!address)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: rdma_device: \"{}\" is not a host address; write an IPv4 or IPv6 address, as "
                                "in .address = \"10.0.0.1\", without a prefix length",
                                text));
    return *address;
}

/// The TCI of the VLAN tag; nic::no_vlan: no tag.
std::uint16_t tag_of(const rdma_device_options& options)
{
    constexpr unsigned most_vlan = 4094, most_priority = 7;
    if (options.vlan > most_vlan)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: rdma_device: vlan is {}; set 1 to {}, or 0 for packets without a tag",
                                options.vlan, most_vlan));
    if (options.vlan_priority > most_priority)
        throw error(errc::invalid_argument, fmt::format("weftio: rdma_device: vlan_priority is {}; set 0 to {}",
                                                        options.vlan_priority, most_priority));
    const unsigned tag = static_cast<unsigned>(options.vlan_priority) << 13 | options.vlan;
    return tag == 0 ? nic::no_vlan : static_cast<std::uint16_t>(tag);
}

/// The port's MAC, or a locally administered one if its driver has none, such as net_ring.
std::array<std::uint8_t, 6> mac_for(const port& port, const std::array<std::uint8_t, 16>& address)
{
    constexpr std::uint8_t local = 2;
    if (port.mac() != std::array<std::uint8_t, 6>{})
        return port.mac();
    return {local, 0, address[12], address[13], address[14], address[15]};
}

/// The link-local IPv6 address made from a MAC (RFC 4291, appendix A).
std::array<std::uint8_t, 16> link_local_of(const std::array<std::uint8_t, 6>& mac)
{
    constexpr std::uint8_t universal = 2; // this bit is inverted
    return {0xfe,   0x80,   0,    0,    0,      0,      0,     0, static_cast<std::uint8_t>(mac[0] ^ universal),
            mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
}

void require_turns(const nic::backend& nic, bool application_turns)
{
    if (nic.is_inline() && !application_turns)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: rdma_device: port {} is in inline mode, but the turns of its engine must "
                                "answer a peer's requests at all times; open it with engine_mode::thread, or promise "
                                "such turns with .application_turns = true",
                                nic.spec()));
    if (!nic.is_inline() && application_turns)
        throw error(
            errc::invalid_argument,
            fmt::format(
                "weftio: rdma_device: application_turns is set, but the engine of port {} has a thread; leave it false",
                nic.spec()));
}

void require_repeated(const rdma_device_options& options, std::size_t addresses)
{
    for (const unsigned index : options.repeated_gids)
        if (index >= addresses++)
            throw error(errc::invalid_argument,
                        fmt::format("weftio: rdma_device: repeated_gids has {}, but there are {} addresses before it; "
                                    "name one of these, counted from 0",
                                    index, addresses - 1));
}

} // namespace

rdma_device::rdma_device(const port& port, const rdma_device_options& options)
{
    require_turns(detail::internals::backend(port), options.application_turns);
    const std::uint16_t tag = tag_of(options);
    const std::array<std::uint8_t, 16> first = parse_address(port, options.address);
    const std::array<std::uint8_t, 6> mac = mac_for(port, first);
    std::vector<nic::rdma_own_address> all{{.address = first, .mac = mac, .vlan_tci = tag, .trace = options.trace}};
    for (const std::string& more : options.more_addresses)
        all.push_back({.address = parse_address(port, more), .mac = mac, .vlan_tci = tag});
    if (options.link_local)
        all.push_back({.address = link_local_of(mac), .mac = mac, .vlan_tci = tag});
    require_repeated(options, all.size());
    if (net::path_mtu_of(port.mtu()) == 0)
        throw error(errc::not_supported,
                    fmt::format("weftio: rdma_device: port {} has an MTU of {}, too small for packets with {} bytes of "
                                "payload; open it with a larger port_options::mtu",
                                port.spec(), port.mtu(), net::smallest_path_mtu));
    state_ = core::make_shared_here<state>(detail::internals::share(port), all, options);
}

const std::string& rdma_device::address() const noexcept
{
    return state_->gids.front().text;
}

bool rdma_device::is_ipv6() const noexcept
{
    return !net::is_ipv4(state_->own().address);
}

std::uint32_t rdma_device::most_path_mtu() const
{
    return net::path_mtu_of(state_->nic->mtu());
}

rdma_port_counters rdma_device::counters() const
{
    return state_->nic->rdma_counts();
}

std::vector<std::string> rdma_device::gids() const
{
    std::vector<std::string> all;
    for (const state::gid& each : state_->gids)
        all.push_back(each.text);
    return all;
}

weftio_dev_datagram_peer rdma_device::datagram_peer(const rdma_peer& peer, datagram_path path) const
{
    const auto group = rdma::address_of_group(peer.address), host = rdma::address_of_host(peer.address);
    if (peer.service != rdma_service::datagram)
        throw error(errc::invalid_argument,
                    "weftio: rdma_device: a peer of datagrams has rdma_peer::service datagram, this one has another");
    rdma::require_queue_key("rdma_peer", peer.queue_key);
    rdma::require_range("rdma_peer", "queue", peer.queue, group ? rdma_peer::group_queue : 1, net::psn_mask);
    rdma::require_range("datagram_path", "hop_limit", path.hop_limit, 1, 255);
    const auto mac = peer.mac && host ? *peer.mac : mac_of(peer.address, path.gid_index);
    state::require_same_kind("rdma_device", state_->at("rdma_device", path.gid_index), group ? *group : *host);
    weftio_wqe_datagram_segment segment{};
    segment.queue_key_be = weftio_swap32(peer.queue_key);
    segment.queue_be = weftio_swap32(WEFTIO_DATAGRAM_EXTENDED | peer.queue);
    segment.traffic_class = path.traffic_class;
    segment.hop_limit = path.hop_limit;
    segment.gid_flow_be = weftio_swap32(std::uint32_t{path.gid_index} << 20);
    std::copy(mac.begin(), mac.end(), segment.mac);
    std::copy_n((group ? *group : *host).begin(), sizeof segment.gid, segment.gid);
    return std::bit_cast<weftio_dev_datagram_peer>(segment);
}

std::array<std::uint8_t, 6> rdma_device::mac_of(const std::string& peer, unsigned gid_index) const
{
    const state::gid& ours = state_->at("rdma_device", gid_index);
    const auto group = rdma::address_of_group(peer), host = rdma::address_of_host(peer);
    if (!group && !host)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: rdma_device: \"{}\" is the address of no host and no multicast group; write "
                                "an IPv4 or IPv6 address without a prefix length",
                                peer));
    state::require_same_kind("rdma_device", ours, group ? *group : *host);
    return group ? net::mac_of_group(*group) : state_->mac_of("rdma_device", ours, *host);
}

rdma::local_addresses::local_addresses(std::shared_ptr<nic::backend> of,
                                       const std::vector<nic::rdma_own_address>& addresses,
                                       const std::vector<std::uint8_t>& repeated)
    : nic(std::move(of)), gids([&] {
          std::vector<gid> made;
          for (const nic::rdma_own_address& own : addresses)
              made.push_back({own, net::text_of(own.address), nic->add_rdma_address(own)});
          for (const std::uint8_t index : repeated)
              made.push_back(gid(made[index]));
          return made;
      }())
{}

const rdma::local_addresses::gid& rdma::local_addresses::at(std::string_view who, unsigned index) const
{
    if (index >= gids.size())
        throw error(errc::invalid_argument, fmt::format("weftio: {}: gid_index is {}, but its rdma_device has {} "
                                                        "addresses, counted from 0 (rdma_device::gids)",
                                                        who, index, gids.size()));
    return gids[index];
}

void rdma::local_addresses::require_same_kind(std::string_view who, const gid& ours, const net::roce_gid& peer)
{
    const bool ipv4 = net::is_ipv4(ours.own.address);
    if (ipv4 != net::is_ipv4(peer))
        throw error(errc::invalid_argument, fmt::format("weftio: {}: our address {} is IPv{}, the peer's {} is not; "
                                                        "create both rdma_devices with addresses of one IP version",
                                                        who, ours.text, ipv4 ? 4 : 6, net::text_of(peer)));
}

void rdma::local_addresses::require_port(std::string_view who) const
{
    if (nic->gone())
        throw error(errc::closed, fmt::format("weftio: {}: port {} is gone: its device or its interface was removed; "
                                              "open another port, and make the queue there",
                                              who, nic->spec()));
}

std::array<std::uint8_t, 6> rdma::local_addresses::mac_of(std::string_view who, const gid& ours,
                                                          const net::roce_gid& peer) const
{
    constexpr std::chrono::seconds patience{3}; // three requests (RFC 4861: MAX_MULTICAST_SOLICIT)
    if (const auto mac = ours.held->resolve(peer, patience))
        return *mac;
    require_port(who);
    throw error(errc::timed_out,
                fmt::format("weftio: {}: no answer for {} after 3 requests from port {} as {}; check that the "
                            "peer is up, on this link{}, and has that address, or set its MAC in {}",
                            who, net::text_of(peer), nic->spec(), ours.text,
                            ours.own.vlan_tci == nic::no_vlan ? "" : " and in this VLAN",
                            who.starts_with("queue_pair") ? "queue_pair_attributes::peer_mac"
                            : who == "rdma_device"        ? "the entry"
                                                          : "rdma_peer::mac"));
}

nic::backend& detail::internals::backend(const rdma_device& device) noexcept
{
    return *device.state_->nic;
}

std::shared_ptr<const rdma::local_addresses> detail::internals::share(const rdma_device& device) noexcept
{
    return device.state_;
}

} // namespace weftio
