#include "dpdk/port_refusals.hpp"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <unistd.h>

#include <cerrno>

#include "core/program.hpp"
#include "dpdk/environment.hpp"
#include "weftio/error.hpp"

namespace weftio::dpdk {

namespace {

errc code_of(int negative_errno)
{
    switch (-negative_errno) {
        case ENOENT:
        case ENODEV: return errc::not_found;
        case EPERM:
        case EACCES: return errc::permission_denied;
        case EBUSY:
        case EEXIST: return errc::in_use;
        case ENOMEM: return errc::out_of_memory;
        case EINVAL: return errc::invalid_argument;
        case ENOTSUP: return errc::not_supported;
        default: return errc::device_error;
    }
}

} // namespace

void fail_to_open(std::string_view spec, std::string_view what, int result)
{
    throw error(
        code_of(result),
        fmt::format(
            "weftio: port {}: {} failed ({}; DPDK said: {}); check the driver's arguments and what the driver needs",
            spec, what, rte_strerror(-result), driver_log()));
}

void refuse_without_driver(std::string_view spec, const std::string& device)
{
    throw error(errc::not_found,
                fmt::format("weftio: port {}: no driver that DPDK has loaded takes the device {}; check its name, or "
                            "install the drivers that belong to {} (of a bundle: unpack it whole, with lib/dpdk-pmds)",
                            spec, device, core::eal_path()));
}

void refuse_mtu(std::string_view spec, std::string_view driver, unsigned mtu, int result)
{
    if (result != -ENOTSUP)
        fail_to_open(spec, fmt::format("setting the MTU to {}", mtu), result);
    throw error(errc::not_supported, fmt::format("weftio: port {}: mtu is {}, but the MTU of a port of {} that is "
                                                 "opened this way cannot be set; set mtu to 0",
                                                 spec, mtu, driver));
}

void refuse_for_want_of_memory(std::string_view spec, unsigned queues)
{
    throw error(errc::out_of_memory,
                fmt::format("weftio: port {}: DPDK has no memory for the packets of {} queues, about {} MB; close "
                            "other ports, or give it more: hugepages, or without them {{\"-m\", \"4096\"}} (MB, for "
                            "all ports) in eal_arguments of the first port",
                            spec, queues, 48 * queues));
}

void require_queues(std::string_view spec, const rte_eth_dev_info& info, unsigned queues)
{
    if (queues > info.max_rx_queues || queues > info.max_tx_queues)
        throw error(
            errc::not_supported,
            fmt::format(
                "weftio: port {}: engines is {}, but {} has {} receive and {} send queues here, and each engine needs "
                "one of each; use fewer engines or more queues (net_af_packet: qpairs={}, net_af_xdp: queue_count={})",
                spec, queues, info.driver_name, info.max_rx_queues, info.max_tx_queues, queues, queues));
}

void require_physical_addresses(std::string_view spec, const std::string& device)
{
    const std::string behind_iommu = fmt::format("/sys/bus/pci/devices/{}/iommu_group", device);
    if (rte_eal_iova_mode() != RTE_IOVA_VA || ::access(behind_iommu.c_str(), F_OK) == 0)
        return;
    throw error(errc::not_supported,
                fmt::format("weftio: port {}: this NIC has no IOMMU, and DPDK's memory, {}, has no known physical "
                            "addresses; {}, or bind the NIC to vfio-pci behind an IOMMU",
                            spec, rte_eal_has_hugepages() ? "set up for other ports" : "ordinary pages",
                            rte_eal_has_hugepages() ? "open this port first"
                                                    : "reserve hugepages (echo 512 >/proc/sys/vm/nr_hugepages)"));
}

int meaning_of(int attach_result)
{
    if (attach_result == -EFAULT)
        return -ENODEV;
    return attach_result == -1 ? -EINVAL : attach_result;
}

std::string_view cause(std::string_view spec, std::string_view text)
{
    const std::string named = fmt::format("weftio: port {}: ", spec);
    return text.starts_with(named) ? text.substr(named.size()) : text;
}

} // namespace weftio::dpdk
