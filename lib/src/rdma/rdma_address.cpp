#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "net/roce_rules.hpp"
#include "rdma/blob.hpp"
#include "rdma/rdma_end.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

constexpr detail::blob_kind address_blob{"WFQP", "rdma_address", "rdma_queue::address()", rdma_address::size_bytes};
constexpr std::size_t service_at = detail::blob_body, reads_at = 7, gid_at = 8, mac_at = 24, queue_at = 32, psn_at = 36,
                      mtu_at = 40;

/// Of what has the right sum, so only another library wrote it.
void require_known(const detail::rdma_end_info& info)
{
    if (info.service > rdma_service::unreliable || !nic::is_path_mtu(info.path_mtu) || info.most_reads == 0 ||
        info.end.queue > nic::psn_mask || info.end.first_psn > nic::psn_mask)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: rdma_address: service {}, path MTU {}, {} reads, queue {:#x}, sequence number "
                                "{:#x}: this library makes no such queue pair; use libraries of the same version at "
                                "both ends",
                                static_cast<unsigned>(info.service), info.path_mtu, info.most_reads, info.end.queue,
                                info.end.first_psn));
}

} // namespace

std::string rdma_address::text() const
{
    return detail::to_hex(bytes);
}

rdma_address rdma_address::of_text(std::string_view text)
{
    rdma_address address;
    detail::from_hex(address_blob, text, address.bytes);
    return of_bytes(address.bytes);
}

rdma_address rdma_address::of_bytes(std::span<const std::uint8_t> bytes)
{
    detail::require_sealed(address_blob, bytes);
    rdma_address address;
    std::copy(bytes.begin(), bytes.end(), address.bytes.begin());
    return address;
}

namespace detail {

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

bool is_ipv4(const std::array<std::uint8_t, 16>& address) noexcept
{
    constexpr std::array<std::uint8_t, 12> prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::equal(prefix.begin(), prefix.end(), address.begin());
}

std::string to_text(const std::array<std::uint8_t, 16>& address)
{
    std::array<char, INET6_ADDRSTRLEN> text{};
    const bool ipv4 = is_ipv4(address);
    inet_ntop(ipv4 ? AF_INET : AF_INET6, address.data() + (ipv4 ? 12 : 0), text.data(), text.size());
    return text.data();
}

} // namespace detail

} // namespace weftio
