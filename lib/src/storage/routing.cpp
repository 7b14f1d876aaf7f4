#include "storage/routing.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weftio::storage {

namespace {

using kind = topology_node::kind;

/// One decision: a device and a GPU in different PCIe trees.
class decision {
 public:
    decision(const topology& in, std::size_t device, std::size_t gpu)
        : in_(in), device_(device), gpu_(gpu), made_{.device = device}
    {}

    /// Sets the route if the policy applies; else keeps why it does not.
    bool apply(routing_policy policy)
    {
        made_.policy = policy;
        switch (policy) {
            case routing_policy::gpu_mem_nvlinks: return through_gpu(true);
            case routing_policy::gpu_mem: return through_gpu(false);
            case routing_policy::sys_mem: return through_host();
            case routing_policy::p2p: return across();
        }
        return false;
    }

    route take() { return std::move(made_); }

    route default_way(std::string_view why)
    {
        made_.policy = routing_policy::p2p;
        made_.reason =
            fmt::format("{}{}: P2P or staging as without routing, {} to {}", passed_, why, name(device_), name(gpu_));
        return std::move(made_);
    }

 private:
    const std::string& name(std::size_t node) const { return in_.nodes()[node].name; }

    bool applies(std::string_view how)
    {
        made_.dynamic = true;
        made_.reason = fmt::format("{}{}: {}", passed_, to_string(made_.policy), how);
        return true;
    }
    bool passes(std::string_view why)
    {
        passed_ += fmt::format("{} does not apply, {}; ", to_string(made_.policy), why);
        return false;
    }

    /// The GPU in the device's PCIe tree that is nearest to the device.
    bool through_gpu(bool nvlink)
    {
        bool near = false;
        std::optional<std::size_t> best;
        for (std::size_t other : in_.all(kind::gpu)) {
            if (!in_.share_tree(other, device_))
                continue;
            near = true;
            if ((!nvlink || in_.has_nvlink(other, gpu_)) &&
                (!best || in_.common(other, device_) > in_.common(*best, device_)))
                best = other;
        }
        if (!near)
            return passes(fmt::format("no GPU shares the PCIe tree of {}", name(device_)));
        if (!best)
            return passes(fmt::format("no GPU in the PCIe tree of {} has an NVLink to {}", name(device_), name(gpu_)));
        made_.staging_gpu = best;
        return applies(fmt::format("memory of {} in the PCIe tree of {}, then {} to {}", name(*best), name(device_),
                                   nvlink ? "NVLink" : "PCIe", name(gpu_)));
    }

    bool through_host()
    {
        made_.numa = in_.numa_of(device_);
        return applies(fmt::format("pinned host memory{} near {}, then PCIe to {}",
                                   made_.numa < 0 ? "" : fmt::format(" of NUMA node {}", made_.numa), name(device_),
                                   name(gpu_)));
    }

    bool across() { return applies(fmt::format("PCIe across root ports, {} to {}", name(device_), name(gpu_))); }

    const topology& in_;
    std::size_t device_, gpu_;
    route made_;
    std::string passed_; ///< why earlier policies do not apply
};

/// Rank of a route: lower is better.
std::size_t rank_of(const route& made, const configuration& by, bool shared)
{
    const auto at = std::find(by.routing_order.begin(), by.routing_order.end(), made.policy);
    return shared ? 0 : made.dynamic ? 1 + static_cast<std::size_t>(at - by.routing_order.begin()) : 100;
}

} // namespace

route decide_route(const topology& in, const configuration& by, std::size_t device, std::size_t gpu)
{
    decision made(in, device, gpu);
    if (in.share_tree(device, gpu))
        return made.default_way(fmt::format("both are in the PCIe tree of {}", in.nodes()[in.tree_of(gpu)].name));
    if (!by.rdma_dynamic_routing)
        return made.default_way("properties.rdma_dynamic_routing is off");
    for (routing_policy policy : by.routing_order)
        if (made.apply(policy))
            return made.take();
    return made.default_way("no policy of properties.rdma_dynamic_routing_order applies");
}

route decide_route(const topology& in, const configuration& by, const storage_devices& of, std::size_t gpu)
{
    std::optional<route> best;
    std::size_t best_rank = 0;
    std::string absent;
    std::vector<std::string> names = of.drives;
    const std::vector<std::string>& addresses = by.addresses_of(of.file_system, of.mount);
    names.insert(names.end(), addresses.begin(), addresses.end());
    for (const std::string& name : names) {
        const auto device = in.find(name);
        if (!device) {
            absent += fmt::format("{}{}", absent.empty() ? "" : ", ", name);
            continue;
        }
        route made = decide_route(in, by, *device, gpu);
        const std::size_t rank = rank_of(made, by, in.share_tree(*device, gpu));
        if (!best || rank < best_rank) {
            best = std::move(made);
            best_rank = rank;
        }
    }
    if (!best)
        best = route{.reason = names.empty()
                                   ? "no storage device is known; name the NICs of the mount in rdma_dev_addr_list"
                                   : ""};
    if (!absent.empty())
        best->reason += fmt::format("{}not on PCIe here: {}", best->reason.empty() ? "" : "; ", absent);
    return *best;
}

} // namespace weftio::storage
