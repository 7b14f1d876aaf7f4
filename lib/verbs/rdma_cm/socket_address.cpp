#include "rdma_cm/socket_address.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace weftio::verbs::rdma_cm {

namespace {

constexpr sa_family_t infiniband_family = 27; // AF_IB

/// struct sockaddr_ib of the kernel.
struct infiniband_address {
    std::uint16_t family = infiniband_family;
    std::uint16_t partition_be = 0xffff;
    std::uint32_t flow_be = 0;
    std::uint8_t address[16]{};
    std::uint64_t service_be = 0;
    std::uint64_t service_mask_be = 0;
    std::uint64_t scope = 0;
};
static_assert(sizeof(infiniband_address) == most_address_bytes);

template <class Address>
bool read_as(std::span<const std::byte> from, Address& to) noexcept
{
    if (from.size() < sizeof to)
        return false;
    std::memcpy(&to, from.data(), sizeof to);
    return true;
}

net::roce_gid gid_of(const in_addr& address) noexcept
{
    std::array<std::uint8_t, 4> bytes{};
    std::memcpy(bytes.data(), &address, sizeof address);
    return net::gid_of_ipv4(bytes);
}

} // namespace

std::optional<socket_address> read_address(std::span<const std::byte> from)
{
    sa_family_t family = 0;
    if (!read_as(from, family))
        return std::nullopt;
    socket_address found;
    if (sockaddr_in ipv4; family == AF_INET && read_as(from, ipv4)) {
        found = {.is = socket_address::kind::ipv4, .port = ntohs(ipv4.sin_port), .gid = gid_of(ipv4.sin_addr)};
    } else if (sockaddr_in6 ipv6; family == AF_INET6 && read_as(from, ipv6)) {
        found = {.is = socket_address::kind::ipv6, .port = ntohs(ipv6.sin6_port), .scope = ipv6.sin6_scope_id};
        std::memcpy(found.gid.data(), &ipv6.sin6_addr, found.gid.size());
    } else if (infiniband_address gid; family == infiniband_family && read_as(from, gid)) {
        found.is = socket_address::kind::infiniband;
        found.port = static_cast<std::uint16_t>(be64toh(gid.service_be));
        std::copy_n(gid.address, found.gid.size(), found.gid.begin());
    } else {
        return std::nullopt;
    }
    return found;
}

std::size_t write_address(const socket_address& from, std::span<std::byte, most_address_bytes> to)
{
    if (from.is == socket_address::kind::infiniband)
        return write_infiniband(from.gid, from.port, to);
    if (from.is == socket_address::kind::ipv6) {
        sockaddr_in6 made{};
        made.sin6_family = AF_INET6;
        made.sin6_port = htons(from.port);
        made.sin6_scope_id = from.scope;
        std::memcpy(&made.sin6_addr, from.gid.data(), from.gid.size());
        std::memcpy(to.data(), &made, sizeof made);
        return sizeof made;
    }
    sockaddr_in made{};
    made.sin_family = from.is == socket_address::kind::none ? sa_family_t{AF_UNSPEC} : sa_family_t{AF_INET};
    made.sin_port = htons(from.port);
    std::memcpy(&made.sin_addr, &from.gid[12], sizeof made.sin_addr);
    std::memcpy(to.data(), &made, sizeof made);
    return from.is == socket_address::kind::none ? 0 : sizeof made;
}

std::size_t write_infiniband(const net::roce_gid& gid, std::uint64_t service,
                             std::span<std::byte, most_address_bytes> to)
{
    infiniband_address made;
    std::copy(gid.begin(), gid.end(), made.address);
    made.service_be = htobe64(service);
    made.service_mask_be = ~std::uint64_t{0};
    std::memcpy(to.data(), &made, sizeof made);
    return sizeof made;
}

bool socket_address::is_any() const noexcept
{
    return gid == net::roce_gid{} || gid == net::gid_of_ipv4(std::array<std::uint8_t, 4>{});
}

bool socket_address::is_loopback() const noexcept
{
    return gid == ipv6_loopback || (net::is_ipv4(gid) && gid[12] == 127);
}

std::string socket_address::text() const
{
    if (net::is_ipv4(gid))
        return fmt::format("{}:{}", net::text_of(gid), port);
    return fmt::format("[{}]:{}", net::text_of(gid), port);
}

socket_address address_of(const net::roce_gid& gid, std::uint16_t port) noexcept
{
    return {
        .is = net::is_ipv4(gid) ? socket_address::kind::ipv4 : socket_address::kind::ipv6, .port = port, .gid = gid};
}

bool is_of_this_host(const net::roce_gid& gid)
{
    ifaddrs* list = nullptr;
    if (getifaddrs(&list) != 0)
        return false;
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(list, freeifaddrs);
    for (const ifaddrs* each = all.get(); each; each = each->ifa_next) {
        if (!each->ifa_addr)
            continue;
        const std::size_t bytes = each->ifa_addr->sa_family == AF_INET    ? sizeof(sockaddr_in)
                                  : each->ifa_addr->sa_family == AF_INET6 ? sizeof(sockaddr_in6)
                                                                          : 0;
        const auto address =
            read_address(std::as_bytes(std::span(reinterpret_cast<const char*>(each->ifa_addr), bytes)));
        if (address && address->gid == gid)
            return true;
    }
    return false;
}

} // namespace weftio::verbs::rdma_cm
