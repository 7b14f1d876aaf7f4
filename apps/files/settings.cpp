#include "settings.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weftio::files {

namespace {

std::string joined(const std::vector<std::string>& words)
{
    return fmt::format("{}", fmt::join(words, " "));
}

std::string kib(const std::vector<std::uint64_t>& bytes)
{
    std::vector<std::string> words;
    for (std::uint64_t each : bytes)
        words.push_back(std::to_string(each >> 10));
    return joined(words);
}

std::string order_of(const storage::configuration& from)
{
    std::vector<std::string> words;
    for (storage::routing_policy each : from.routing_order)
        words.emplace_back(to_string(each));
    return joined(words);
}

/// "/mnt dev_id 0:51", if the mount is there.
std::string mount_of(const std::string& point, const std::vector<storage::place_facts>& places)
{
    const auto found = std::find_if(places.begin(), places.end(), [&](auto& it) { return it.mount.point == point; });
    return point + (found == places.end() ? "" : " dev_id " + found->mount.device);
}

void add(group& to, std::string name, std::string value)
{
    to.findings.push_back({std::move(name), "", ": " + value, ""});
}

group properties(const storage::configuration& from)
{
    group made;
    add(made, "file", from.path.empty() ? "none (defaults)" : from.path);
    add(made, "properties.allow_compat_mode", fmt::format("{}", from.allow_compat_mode));
    add(made, "properties.force_compat_mode", fmt::format("{}", from.force_compat_mode));
    add(made, "properties.max_direct_io_size_kb", fmt::format("{}", from.max_direct_io_bytes >> 10));
    add(made, "properties.max_device_cache_size_kb", fmt::format("{}", from.max_device_cache_bytes >> 10));
    add(made, "properties.max_device_pinned_mem_size_kb", fmt::format("{}", from.max_device_pinned_bytes >> 10));
    add(made, "properties.use_poll_mode", fmt::format("{}", from.use_poll_mode));
    add(made, "properties.poll_mode_max_size_kb", fmt::format("{}", from.poll_mode_max_bytes >> 10));
    add(made, "properties.posix_pool_slab_size_kb", kib(from.slab_bytes));
    add(made, "properties.posix_pool_slab_count", fmt::format("{}", fmt::join(from.slab_counts, " ")));
    add(made, "properties.rdma_dev_addr_list", joined(from.rdma_addresses));
    add(made, "properties.rdma_dynamic_routing", from.rdma_dynamic_routing ? "1" : "0");
    add(made, "properties.rdma_dynamic_routing_order", order_of(from));
    add(made, "execution.max_io_threads", fmt::format("{}", from.io_threads));
    add(made, "execution.max_io_queue_depth", fmt::format("{}", from.io_depth));
    add(made, "profile.cufile_stats", fmt::format("{}", from.statistics_level));
    add(made, "denylist.mounts", joined(from.denied_mounts));
    add(made, "denylist.filesystems", joined(from.denied_file_systems));
    add(made, "weftio.cufile_library", from.cufile_library);
    add(made, "logging.level", std::string(to_string(from.log.value_or(storage::logging_level::error))));
    return made;
}

} // namespace

section settings(const storage::configuration& from, const std::vector<storage::place_facts>& places)
{
    group all = properties(from);
    for (const auto& [name, of] : from.file_systems) {
        add(all, fmt::format("fs.{}.posix_gds_min_kb", name), fmt::format("{}", of.posix_gds_min_bytes >> 10));
        if (name == "weka")
            add(all, "fs.weka.rdma_write_support", of.rdma_write ? "1" : "0");
        if (!of.rdma_addresses.empty())
            add(all, fmt::format("fs.{}.rdma_dev_addr_list", name), joined(of.rdma_addresses));
        if (!of.mounts.empty())
            add(all, fmt::format("fs.{}.mount_table", name), "");
        for (const auto& [point, addresses] : of.mounts)
            add(all, mount_of(point, places), joined(addresses));
    }
    for (const auto& remark : from.remarks)
        all.findings.push_back({remark.unknown ? "unknown key" : "no effect", "", remark.text, ""});
    return {"CUFILE CONFIGURATION", {all}};
}

} // namespace weftio::files
