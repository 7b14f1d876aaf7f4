#include "rdma/rdma_device.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "net/roce_headers.hpp"
#include "net/roce_rules.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

/// Of a host: neither the unspecified address, nor that of a group, nor IPv4's broadcast.
bool can_be_a_hosts(const std::array<std::uint8_t, 16>& address) noexcept
{
    const auto v4 = std::span(address).last<4>();
    if (detail::is_ipv4(address))
        return v4[0] != 0 && v4[0] < 224;
    return address[0] != 0xff && std::any_of(address.begin(), address.end(), [](std::uint8_t byte) { return byte; });
}

std::array<std::uint8_t, 16> parse_address(const port& port, const std::string& text)
{
    std::array<std::uint8_t, 16> address{};
    std::array<std::uint8_t, 4> v4{};
    if (text.empty())
        throw error(errc::invalid_argument,
                    fmt::format("weftio: rdma_device: port {} is given no address, and peers find it by one; set "
                                ".address = \"10.0.0.1\", or another one of this host's own",
                                port.spec()));
    if (inet_pton(AF_INET, text.c_str(), v4.data()) == 1)
        address = nic::gid_of_ipv4(v4);
    else if (inet_pton(AF_INET6, text.c_str(), address.data()) != 1)
        address = {};
    if (!can_be_a_hosts(address))
        throw error(errc::invalid_argument,
                    fmt::format("weftio: rdma_device: \"{}\" is no address of a host; give one of IPv4 or IPv6, as in "
                                ".address = \"10.0.0.1\", without a prefix length",
                                text));
    return address;
}

void require_turns(const nic::backend& nic, bool application_turns)
{
    if (nic.is_inline() && !application_turns)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: rdma_device: port {} is in inline mode, and a peer's requests are answered in "
                                "turns of its engine; open it with engine_mode::thread, or promise turns at all times "
                                "by .application_turns = true",
                                nic.spec()));
    if (!nic.is_inline() && application_turns)
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: rdma_device: application_turns is set, and the engine of port {} has a thread; "
                        "leave it false",
                        nic.spec()));
}

} // namespace

rdma_device::rdma_device(const port& port, const rdma_device_options& options)
    : state_(detail::make_shared_here<state>(port.share(), parse_address(port, options.address)))
{
    require_turns(port.backend(), options.application_turns);
    if (most_path_mtu() == 0)
        throw error(errc::not_supported,
                    fmt::format("weftio: rdma_device: port {} has an MTU of {}, too small for packets of {} bytes of "
                                "payload; open it with a larger port_options::mtu",
                                port.spec(), port.mtu(), nic::smallest_path_mtu));
}

const std::string& rdma_device::address() const noexcept
{
    return state_->text;
}

bool rdma_device::is_ipv6() const noexcept
{
    return !detail::is_ipv4(state_->address);
}

std::uint32_t rdma_device::most_path_mtu() const
{
    return nic::path_mtu_of(state_->nic->mtu());
}

nic::backend& rdma_device::backend() const noexcept
{
    return *state_->nic;
}

} // namespace weftio
