#include "storage/direct_route.hpp"

#include <fmt/format.h>

namespace weftio::storage {

direct_judgment judge_direct(const topology& in, const route& made, std::size_t gpu, std::uint64_t bytes,
                             std::uint64_t bar1)
{
    const std::string& name = in.nodes()[gpu].name;
    if (!made.device)
        return {file_fall::none, "no known storage device on PCIe"};
    if (bar1 != 0 && bytes > bar1)
        return {file_fall::above_bar1,
                fmt::format("{} bytes exceed the {} bytes of {} visible on PCIe (BAR1)", bytes, bar1, name)};
    const std::string& device = in.nodes()[*made.device].name;
    if (in.share_tree(*made.device, gpu))
        return {file_fall::none, fmt::format("{} and {} share a PCIe tree", device, name)};
    if (made.dynamic && made.policy == routing_policy::p2p)
        return {file_fall::none, "the configuration selects P2P"};
    if (made.dynamic)
        return {file_fall::better_staged, fmt::format("the route stages by {}", to_string(made.policy))};
    return {file_fall::better_staged,
            in.common(*made.device, gpu) == 0
                ? fmt::format("{} and {} are below different root complexes", device, name)
                : fmt::format("{} and {} are below different ports of one root complex", device, name)};
}

} // namespace weftio::storage
