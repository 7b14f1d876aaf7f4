#include "rdma/pair_attributes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <random>
#include <type_traits>

#include "net/roce_rules.hpp"
#include "rdma/transitions.hpp"
#include "weftio/error.hpp"

namespace weftio::rdma {

namespace {

const char* name_of_service(rdma_service service) noexcept
{
    switch (service) {
        case rdma_service::reliable: return "reliable (RC)";
        case rdma_service::unreliable: return "unreliable (UC)";
        case rdma_service::datagram: return "datagram (UD)";
    }
    return "unknown";
}

} // namespace

void require_power(const char* who, const char* name, std::uint32_t value, std::uint32_t least, std::uint32_t most)
{
    if (!std::has_single_bit(value) || value < least || value > most)
        throw error(errc::invalid_argument, fmt::format("weftio: {}: {} is {}; it must be a power of two from {} to {}",
                                                        who, name, value, least, most));
}

std::uint32_t random_psn()
{
    return std::random_device()() & net::psn_mask;
}

void require_range(std::string_view who, const char* name, std::uint32_t value, std::uint32_t least, std::uint32_t most)
{
    if (value < least || value > most)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: {} is {}; set {} to {}", who, name, value, least, most));
}

pair_attributes::pair_attributes(const char* kind, const local_addresses& at, rdma_service service)
    : kind_(kind), at_(at), service_(service)
{
    require_service(kind, service);
    first_.path_mtu = net::path_mtu_of(at.nic->mtu());
    if (service == rdma_service::datagram)
        for (const local_addresses::gid& each : at.gids)
            first_.sources.push_back(each.own);
    begin_again(random_psn());
}

std::string pair_attributes::name_of(const nic::rdma_queue& queue) const
{
    return fmt::format("{} {}", kind_, queue.number());
}

/// The attributes set so far, updated with `given`.
nic::rdma_connection pair_attributes::with(const std::string& who, const queue_pair_attributes& given) const
{
    nic::rdma_connection to = present_;
    if (given.peer_address)
        at_.require_port(who);
    // Verbs programs set local_write, too. It has no effect here.
    constexpr access customary = net::remote_rights | access::local_write;
    if (given.rights && (*given.rights & customary) != *given.rights)
        refuse_rights(who, *given.rights);
    to.rights = given.rights.value_or(to.rights) & net::remote_rights;
    if (given.path_mtu)
        require_path_mtu(who, *given.path_mtu);
    to.path_mtu = given.path_mtu.value_or(to.path_mtu);
    for_each_attribute([&]<class Kind>(attribute, const char* name, auto member, Kind kind) {
        if constexpr (!std::is_same_v<Kind, special>) {
            if (const auto& value = given.*member) {
                require_range(who, name, *value, 0, kind.most);
                to.*kind.to = *value;
            }
        }
    });
    if (given.peer_address)
        set_path(who, given, to.path);
    else if (given.peer_mac || given.gid_index != 0 || given.traffic_class != 0 ||
             given.hop_limit != queue_pair_attributes{}.hop_limit)
        throw error(errc::invalid_argument, fmt::format("weftio: {}: peer_mac, gid_index, traffic_class and hop_limit "
                                                        "need peer_address; set that, too",
                                                        who));
    return to;
}

void pair_attributes::require_path_mtu(const std::string& who, std::uint32_t path_mtu) const
{
    const std::uint32_t most = net::path_mtu_of(at_.nic->mtu());
    if (!net::is_path_mtu(path_mtu))
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: path_mtu is {}; set 256, 512, 1024, 2048 or 4096", who, path_mtu));
    if (path_mtu > most)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: path_mtu is {}, but port {} with its MTU of {} allows {}; set that or "
                                "less, or open the port with a larger port_options::mtu",
                                who, path_mtu, at_.nic->spec(), at_.nic->mtu(), most));
}

void pair_attributes::set_path(const std::string& who, const queue_pair_attributes& given, net::roce_path& path) const
{
    const auto address = address_of_host(*given.peer_address);
    if (!address)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: peer_address \"{}\" is not a host address; write an IPv4 or IPv6 address "
                                "without a prefix length",
                                who, *given.peer_address));
    const local_addresses::gid& ours = at_.at(who, given.gid_index);
    local_addresses::require_same_kind(who, ours, *address);
    path.source_mac = ours.own.mac;
    path.source = ours.own.address;
    path.destination = *address;
    path.destination_mac = given.peer_mac ? *given.peer_mac : at_.mac_of(who, ours, *address);
    path.traffic_class = given.traffic_class;
    path.hop_limit = given.hop_limit;
    path.tag_count = ours.own.vlan_tci == nic::no_vlan ? 0 : 1;
    path.tags[0].tci = ours.own.vlan_tci;
}

void pair_attributes::modify(nic::rdma_queue& queue, rdma_state to, const queue_pair_attributes& given)
{
    const nic::rdma_queue::standing now = queue.state();
    require_transition(queue.number(), service_, now.state, to, given);
    if (now.draining && attributes_of(given) != 0)
        throw error(errc::invalid_argument, fmt::format("weftio: {}: in SQD, attributes cannot change while entries "
                                                        "drain; wait until draining() is false",
                                                        name_of(queue)));
    const nic::rdma_connection next = to == rdma_state::reset ? first_ : with(name_of(queue), given);
    queue.modify(to, next);
    present_ = next;
}

net::roce_gid pair_attributes::group_of(const nic::rdma_queue& queue, const std::string& text) const
{
    const auto group = address_of_group(text);
    if (!group)
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: {}: \"{}\" is not the address of a multicast group; write an IPv4 address from "
                        "224.0.0.0 on, or an IPv6 address that begins with ff",
                        name_of(queue), text));
    if (service_ != rdma_service::datagram)
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: {}: its service has no multicast groups; set rdma_service::datagram", name_of(queue)));
    return *group;
}

void pair_attributes::detach(nic::rdma_queue& queue, const std::string& group) const
{
    if (!queue.detach(group_of(queue, group)))
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: it is not attached to the group {}", name_of(queue), group));
}

void pair_attributes::begin_datagrams(nic::rdma_queue& queue)
{
    for (const rdma_state next : {rdma_state::ready_to_receive, rdma_state::ready_to_send})
        queue.modify(next, present_);
}

rdma_state pair_attributes::require_unconnected(const nic::rdma_queue& queue) const
{
    if (service_ == rdma_service::datagram)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: it is datagram (UD), which has no connection; entries name their peers "
                                "(rdma_device::datagram_peer)",
                                name_of(queue)));
    const rdma_state now = queue.state().state;
    if (now != rdma_state::reset && now != rdma_state::init)
        throw error(errc::invalid_argument, fmt::format("weftio: {}: connect() needs RESET or INIT, but the state is "
                                                        "{}; reset it first",
                                                        name_of(queue), to_string(now)));
    return now;
}

void pair_attributes::connect(nic::rdma_queue& queue, const rdma_address& peer)
{
    require_unconnected(queue);
    const rdma_peer theirs = peer.peer();
    if (theirs.service != service_)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: it is {}, the peer's is {}; set the same {}_options::service at both ends",
                                name_of(queue), name_of_service(service_), name_of_service(theirs.service), kind_));
    const std::uint8_t most_reads = std::min(present_.most_reads, theirs.most_reads);
    connect(queue, {.peer_address = theirs.address,
                    .peer_mac = theirs.mac,
                    .traffic_class = present_.path.traffic_class,
                    .hop_limit = present_.path.hop_limit,
                    .path_mtu = std::min(present_.path_mtu, theirs.path_mtu),
                    .peer_queue = theirs.queue,
                    .receive_psn = theirs.first_psn,
                    .most_reads_of_peer = most_reads,
                    .most_reads = most_reads});
}

void pair_attributes::connect(nic::rdma_queue& queue, const queue_pair_attributes& agreed)
{
    const rdma_state now = require_unconnected(queue);
    const nic::rdma_connection next = with(name_of(queue), agreed);
    if (now == rdma_state::reset)
        queue.modify(rdma_state::init, next);
    queue.modify(rdma_state::ready_to_receive, next);
    queue.modify(rdma_state::ready_to_send, next);
    present_ = next;
}

rdma_address pair_attributes::address(std::uint32_t number, std::uint32_t send_psn) const
{
    return to_address({.address = at_.gids.front().text,
                       .queue = number,
                       .first_psn = send_psn,
                       .service = service_,
                       .path_mtu = first_.path_mtu,
                       .most_reads = first_.most_reads,
                       .mac = at_.own().mac,
                       .queue_key = present_.queue_key});
}

} // namespace weftio::rdma
