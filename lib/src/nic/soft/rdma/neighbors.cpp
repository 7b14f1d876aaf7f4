#include "nic/soft/rdma/neighbors.hpp"

#include <fmt/format.h>

#include "weftio/error.hpp"

namespace weftio::nic::soft {

namespace {

net::neighbor_frame frame_of(const rdma_own_address& own) noexcept
{
    net::neighbor_frame frame;
    frame.source_mac = own.mac;
    if (own.vlan_tci != no_vlan)
        frame.tags[frame.tag_count++] = {.tci = own.vlan_tci};
    return frame;
}

bool may_be_neighbor_message(const net::packet_headers& headers) noexcept
{
    constexpr std::uint16_t arp_type = 0x0806;
    constexpr std::uint8_t icmpv6 = 58;
    return headers.ether_type == arp_type || (headers.l3 == net::l3_kind::ipv6 && headers.protocol == icmpv6);
}

} // namespace

void neighbors::add(const rdma_own_address& own)
{
    if (has(own.address))
        throw error(errc::in_use, fmt::format("weftio: rdma_device: another rdma_device of the port already has "
                                              "address {}; copy that one, or use another address",
                                              net::text_of(own.address)));
    own_.push_back(own);
}

void neighbors::remove(const net::roce_gid& address) noexcept
{
    std::erase_if(own_, [&](const rdma_own_address& own) { return own.address == address; });
}

const rdma_own_address* neighbors::find(const net::roce_gid& address) const noexcept
{
    const auto found =
        std::find_if(own_.begin(), own_.end(), [&](const rdma_own_address& own) { return own.address == address; });
    return found == own_.end() ? nullptr : &*found;
}

bool neighbors::is_answered(const question& each, const net::neighbor_message& by) noexcept
{
    return each.target == by.target && (by.addressee == each.from || by.addressee == net::roce_gid{});
}

/// Reads a message for an address of this port, in the VLAN of that address.
bool neighbors::understands(std::span<const std::uint8_t> frame, const net::packet_headers& headers,
                            net::neighbor_message& message) const noexcept
{
    if (own_.empty() || !may_be_neighbor_message(headers) || !net::parse_neighbor(frame, headers, message))
        return false;
    const auto is_for = [&](const rdma_own_address& own) {
        const bool named = message.asks ? own.address == message.target
                                        : message.addressee == own.address || message.addressee == net::roce_gid{};
        return named && vlan_of(headers.vlan_id()) == vlan_of(own.vlan_tci);
    };
    return std::any_of(own_.begin(), own_.end(), is_for) &&
           (message.asks || std::any_of(questions_.begin(), questions_.end(),
                                        [&](const question& each) { return is_answered(each, message); }));
}

bool neighbors::claims(std::span<const std::uint8_t> frame, const net::packet_headers& headers) const noexcept
{
    net::neighbor_message message;
    return understands(frame, headers, message);
}

std::size_t neighbors::take(std::span<const std::uint8_t> frame, const net::packet_headers& headers,
                            std::span<std::uint8_t> answer)
{
    net::neighbor_message message;
    if (!understands(frame, headers, message))
        return 0;
    if (message.asks)
        return net::build_answer(answer, frame_of(*find(message.target)), message);
    for (question& each : questions_)
        if (is_answered(each, message))
            each.mac = message.mac;
    return 0;
}

void neighbors::open(const net::roce_gid& from, const net::roce_gid& target)
{
    const auto found = std::find_if(questions_.begin(), questions_.end(),
                                    [&](const question& each) { return each.from == from && each.target == target; });
    if (found == questions_.end())
        questions_.push_back({.from = from, .target = target, .mac = std::nullopt, .opened = 1});
    else
        ++found->opened;
}

void neighbors::close(const net::roce_gid& from, const net::roce_gid& target) noexcept
{
    for (question& each : questions_)
        each.opened -= each.from == from && each.target == target;
    std::erase_if(questions_, [](const question& each) { return each.opened == 0; });
}

std::size_t neighbors::ask(const net::roce_gid& from, const net::roce_gid& target,
                           std::span<std::uint8_t> to) const noexcept
{
    return net::build_question(to, frame_of(*find(from)), from, target);
}

std::optional<net::mac_address> neighbors::answer_to(const net::roce_gid& from,
                                                     const net::roce_gid& target) const noexcept
{
    for (const question& each : questions_)
        if (each.from == from && each.target == target)
            return each.mac;
    return std::nullopt;
}

} // namespace weftio::nic::soft
