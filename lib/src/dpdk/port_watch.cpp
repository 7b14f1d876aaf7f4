#include "dpdk/port_watch.hpp"

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>

#include "core/clock.hpp"

namespace weftio::dpdk {

namespace {

constexpr std::uint64_t between_polls_ns = 20'000'000;

} // namespace

port_watch::port_watch(std::uint16_t port, const std::string& interface, xdp_hook* hook) noexcept
    : port_(port), interface_(interface), hook_(hook)
{
    removal_.begin(port);
    rte_eth_dev_info info{};
    if (rte_eth_dev_info_get(port, &info) == 0 && info.device &&
        rte_bus_name(rte_dev_bus(info.device)) == std::string_view("pci"))
        std::snprintf(path_.data(), path_.size(), "/sys/bus/pci/devices/%s", rte_dev_name(info.device));
}

bool port_watch::has_just_gone(bool busy) noexcept
{
    constexpr unsigned turns_between_polls =
        64; // for a busy engine; an idle one may wait for a core before each iteration
    if (has_just_been_removed())
        return true;
    if (gone() || (++turns_ % turns_between_polls != 0 && busy) || !is_time() || is_there())
        return false;
    gone_.store(true, std::memory_order_release);
    return true;
}

bool port_watch::is_time() noexcept
{
    std::uint64_t now_ns = core::utc_now_ns();
    if (now_ns < polled_ns_ + between_polls_ns)
        return false;
    polled_ns_ = now_ns;
    return true;
}

bool port_watch::is_there() noexcept
{
    if (removal_.unplugged() || rte_eth_dev_is_removed(port_) == 1)
        return false;
    if (path_[0] != 0 && ::access(path_.data(), F_OK) != 0 && errno == ENOENT)
        return false;
    if (!interface_.known())
        return true;
    const kernel_interface::state seen = interface_.read_state();
    if (up_ && !seen.up)
        down_since_ns_ = polled_ns_;
    up_ = seen.up;
    mtu_ = seen.mtu != 0 ? seen.mtu : mtu_;
    const char* const trouble = seen.there && hook_ ? hook_->trouble() : nullptr;
    why_ = trouble ? trouble : why_;
    return seen.there && !trouble;
}

} // namespace weftio::dpdk
