#include "storage/configuration_keys.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <netinet/in.h>

#include "core/printable.hpp"
#include "weftio/error.hpp"

namespace weftio::storage {

namespace {

// Why engines of files do not act on a key.
constexpr std::string_view no_marks = "Weftio emits no profiler marks",
                           parts_in_parallel = "file_engine_options::part_bytes divides transfers",
                           part_size = "file_engine_options::part_bytes limits a part",
                           no_cache = "GPU memory is neither used as a cache nor pinned",
                           no_polling = "no kernel driver polls",
                           no_slabs = "queues allocate staging buffers as they need them, 16 of up to 1 MiB each",
                           no_routing = "only weftio-files --check uses it; engines stage in host memory",
                           no_direct_way = "this build has no way direct",
                           no_user_space_rdma = "RDMA in user space is not supported",
                           all_writes = "writes of any alignment, to any file system, are supported";

/// The same for keys of a file system; empty: they act on it, or it is unknown.
std::string_view why_without_effect(std::string_view key)
{
    if (key == "rdma_dev_addr_list" || key == "mount_table")
        return no_routing;
    if (key == "rdma_write_support")
        return no_user_space_rdma;
    return key == "posix_unaligned_writes" || key == "gds_write_support" || key == "gds_async_support"
               ? all_writes
               : std::string_view();
}

} // namespace

/// The keys outside `fs`, one row each.
struct key_rules {
    using setter = std::function<void(configuration_keys&, const std::string&, const json_value&)>;
    struct row {
        std::string_view path;
        setter set;             ///< empty: the value is not looked at
        std::string_view why{}; ///< why engines of files do not act on it; empty: they do
    };

    static setter flag(bool configuration::*member)
    {
        return [member](configuration_keys& keys, const std::string& path, const json_value& value) {
            if (keys.is(path, value, json_value::kind::boolean))
                keys.to_.*member = value.boolean;
        };
    }

    /// A whole number from `least` to `most`, and a multiple of `step`; kept `scale` times as large.
    template <class Number>
    static setter number(Number configuration::*member, std::int64_t least, std::int64_t most, std::int64_t step = 1,
                         Number scale = 1)
    {
        return [=](configuration_keys& keys, const std::string& path, const json_value& value) {
            if (!keys.is(path, value, json_value::kind::integer))
                return;
            if (value.integer < least || value.integer > most || value.integer % step != 0)
                keys.wrong(path, value.line,
                           fmt::format("{} is not a {} from {} to {}", value.integer,
                                       step == 1 ? "number" : fmt::format("multiple of {}", step), least, most));
            else
                keys.to_.*member = static_cast<Number>(value.integer) * scale;
        };
    }

    static setter numbers(std::vector<std::uint64_t> configuration::*member, std::int64_t step, std::uint64_t scale)
    {
        return [=](configuration_keys& keys, const std::string& path, const json_value& value) {
            keys.slabs_line_ = std::max(keys.slabs_line_, value.line);
            if (!keys.is(path, value, json_value::kind::list))
                return;
            (keys.to_.*member).clear();
            for (const json_value& item : value.items)
                if (item.what != json_value::kind::integer || item.integer < step || item.integer % step != 0 ||
                    item.integer > (1 << 22))
                    return keys.wrong(
                        path, value.line,
                        fmt::format("every item must be a multiple of {} from {} to {}", step, step, 1 << 22));
                else
                    (keys.to_.*member).push_back(static_cast<std::uint64_t>(item.integer) * scale);
        };
    }

    /// Texts, each of which `accept` takes or refuses with a reason.
    static void texts(configuration_keys& keys, const std::string& path, const json_value& value,
                      const std::function<std::string(const std::string&)>& accept)
    {
        if (!keys.is(path, value, json_value::kind::list))
            return;
        for (const json_value& item : value.items)
            if (keys.is(path, item, json_value::kind::text))
                if (const std::string why = accept(item.text); !why.empty())
                    keys.wrong(path, item.line, why);
    }

    static setter names(std::vector<std::string> configuration::*member)
    {
        return [member](configuration_keys& keys, const std::string& path, const json_value& value) {
            texts(keys, path, value, [&](const std::string& text) {
                (keys.to_.*member).push_back(text);
                return std::string();
            });
        };
    }

    static void order(configuration_keys& keys, const std::string& path, const json_value& value)
    {
        std::vector<routing_policy> made;
        texts(keys, path, value, [&](const std::string& text) -> std::string {
            for (routing_policy policy : {routing_policy::gpu_mem_nvlinks, routing_policy::gpu_mem,
                                          routing_policy::sys_mem, routing_policy::p2p}) {
                if (to_string(policy) != text)
                    continue;
                if (std::find(made.begin(), made.end(), policy) != made.end())
                    return fmt::format("{} is listed twice", text);
                made.push_back(policy);
                return {};
            }
            return fmt::format("\"{}\" is not a policy; use GPU_MEM_NVLINKS, GPU_MEM, SYS_MEM and P2P", text);
        });
        if (value.what == json_value::kind::list && value.items.empty())
            keys.wrong(path, value.line, "the list is empty; name a policy, or leave the key out");
        keys.to_.routing_order = made;
    }

    static void level(configuration_keys& keys, const std::string& path, const json_value& value)
    {
        if (!keys.is(path, value, json_value::kind::text))
            return;
        for (logging_level each : {logging_level::error, logging_level::warn, logging_level::info, logging_level::debug,
                                   logging_level::trace})
            if (to_string(each) == value.text) {
                keys.to_.log = each;
                return;
            }
        keys.wrong(path, value.line,
                   fmt::format("\"{}\" is not a level; use ERROR, WARN, INFO, DEBUG or TRACE", value.text));
    }

    static void library(configuration_keys& keys, const std::string& path, const json_value& value)
    {
        if (!keys.is(path, value, json_value::kind::text))
            return;
        if (!value.text.empty() && value.text[0] != '/')
            keys.wrong(
                path, value.line,
                fmt::format("\"{}\" is not an absolute path; write that of NVIDIA's libcufile.so.0", value.text));
        keys.to_.cufile_library = value.text;
    }

    static void global_addresses(configuration_keys& keys, const std::string& path, const json_value& value)
    {
        keys.to_.rdma_addresses = keys.addresses(path, value);
    }

    static const std::vector<row>& all();
};

const std::vector<key_rules::row>& key_rules::all()
{
    using c = configuration;
    constexpr std::int64_t many_kib = 1ll << 40;
    static const std::vector<row> rows{
        {"logging.level", level},
        {"logging.dir", {}, "lines go to the program's log or WEFTIO_LOG"},
        {"profile.cufile_stats", number(&c::statistics_level, 0, 3)},
        {"profile.nvtx", {}, no_marks},
        {"execution.max_io_threads", number(&c::io_threads, 0, 256)},
        {"execution.max_io_queue_depth", number(&c::io_depth, 1, 4096)},
        {"execution.parallel_io", {}, parts_in_parallel},
        {"execution.min_io_threshold_size_kb", {}, parts_in_parallel},
        {"execution.max_request_parallelism", {}, parts_in_parallel},
        {"properties.allow_compat_mode", flag(&c::allow_compat_mode)},
        {"properties.force_compat_mode", flag(&c::force_compat_mode)},
        {"properties.max_direct_io_size_kb", number(&c::max_direct_io_bytes, 4, 1 << 20, 4, 1024ul), part_size},
        {"properties.max_device_cache_size_kb", number(&c::max_device_cache_bytes, 0, many_kib, 4, 1024ul), no_cache},
        {"properties.max_device_pinned_mem_size_kb", number(&c::max_device_pinned_bytes, 0, many_kib, 4, 1024ul),
         no_cache},
        {"properties.use_poll_mode", flag(&c::use_poll_mode), no_polling},
        {"properties.poll_mode_max_size_kb", number(&c::poll_mode_max_bytes, 0, 1 << 20, 4, 1024ul), no_polling},
        {"properties.posix_pool_slab_size_kb", numbers(&c::slab_bytes, 4, 1024), no_slabs},
        {"properties.posix_pool_slab_count", numbers(&c::slab_counts, 1, 1), no_slabs},
        {"properties.rdma_dynamic_routing", flag(&c::rdma_dynamic_routing), no_routing},
        {"properties.rdma_dynamic_routing_order", order, no_routing},
        {"properties.rdma_dev_addr_list", global_addresses, no_routing},
        {"properties.per_buffer_cache_size_kb", {}, no_cache},
        {"properties.gds_rdma_write_support", {}, no_user_space_rdma},
        {"properties.io_batchsize", {}, "the capacity of a file_batch limits it"},
        {"properties.io_priority", {}, "use ioprio_set(2) or ionice"},
        {"properties.rdma_load_balancing_policy", {}, no_user_space_rdma},
        {"properties.rdma_peer_affinity_policy", {}, no_user_space_rdma},
        {"properties.rdma_peer_type", {}, no_user_space_rdma},
        {"properties.use_pci_p2pdma", {}, no_direct_way},
        {"denylist.mounts", names(&c::denied_mounts)},
        {"denylist.filesystems", names(&c::denied_file_systems)},
        {"denylist.drivers", {}, no_direct_way},
        {"denylist.devices", {}, no_direct_way},
        {"miscellaneous.api_check_aggressive", {}, "all calls are checked"},
        {"weftio.cufile_library", library},
    };
    return rows;
}

void configuration_keys::apply(const json_value& root)
{
    if (root.what != json_value::kind::object)
        mistakes_.push_back(
            fmt::format("weftio: {}:1: {} instead of an object with sections", name_, name_of(root.what)));
    for (const auto& [name, value] : root.members)
        section(name, value);
    compare_slabs();
    if (mistakes_.empty())
        return;
    std::string rest;
    for (std::size_t i = 1; i < mistakes_.size(); ++i)
        rest += (i > 1 ? "\n" : "") + mistakes_[i];
    throw error(errc::invalid_argument, mistakes_[0], rest);
}

void configuration_keys::section(const std::string& name, const json_value& value)
{
    const auto& rows = key_rules::all();
    const bool known = name == "fs" || std::any_of(rows.begin(), rows.end(), [&](const key_rules::row& row) {
                           return row.path.substr(0, row.path.find('.')) == name;
                       });
    if (!known)
        return unknown(name, value.line,
                       "fs, logging, profile, execution, properties, denylist, miscellaneous, weftio");
    if (!is(name, value, json_value::kind::object))
        return;
    for (const auto& [key_name, below] : value.members)
        if (const std::string path = name + '.' + key_name; name == "fs")
            file_system(path, key_name, below);
        else
            key(path, below);
}

void configuration_keys::key(const std::string& path, const json_value& value)
{
    const auto& rows = key_rules::all();
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const key_rules::row& r) { return r.path == path; });
    if (row == rows.end())
        unknown(path, value.line, "");
    else {
        if (row->set)
            row->set(*this, path, value);
        if (!row->why.empty())
            no_effect(path, value.line, row->why);
    }
}

void configuration_keys::file_system(const std::string& path, const std::string& name, const json_value& value)
{
    if (!is(path, value, json_value::kind::object))
        return;
    file_system_settings& made = to_.file_systems[name];
    for (const auto& [key_name, below] : value.members) {
        const std::string key_path = path + '.' + key_name;
        if (key_name == "posix_gds_min_kb")
            posix_minimum(key_path, made, below);
        else if (key_name == "rdma_dev_addr_list")
            made.rdma_addresses = addresses(key_path, below);
        else if (key_name == "mount_table")
            mount_table(key_path, made, below);
        else if (key_name == "rdma_write_support" && is(key_path, below, json_value::kind::boolean))
            made.rdma_write = below.boolean;
        else if (why_without_effect(key_name).empty())
            unknown(key_path, below.line, "posix_gds_min_kb, rdma_dev_addr_list, mount_table, rdma_write_support");
        if (const std::string_view why = why_without_effect(key_name); !why.empty())
            no_effect(key_path, below.line, why);
    }
    if (!made.rdma_addresses.empty() && !made.mounts.empty())
        wrong(path, value.line, "rdma_dev_addr_list and mount_table both name storage NICs; leave one of them out");
}

void configuration_keys::posix_minimum(const std::string& path, file_system_settings& to, const json_value& value)
{
    if (!is(path, value, json_value::kind::integer))
        return;
    if (value.integer < 0 || value.integer > (1 << 20) || value.integer % 4 != 0)
        wrong(path, value.line, fmt::format("{} is not a multiple of 4 from 0 to {}", value.integer, 1 << 20));
    else
        to.posix_gds_min_bytes = static_cast<std::uint64_t>(value.integer) << 10;
}

void configuration_keys::mount_table(const std::string& path, file_system_settings& to, const json_value& value)
{
    if (!is(path, value, json_value::kind::object))
        return;
    for (const auto& [name, below] : value.members) {
        const std::string at = path + '.' + name;
        std::string mount = name;
        while (mount.size() > 1 && mount.back() == '/')
            mount.pop_back();
        if (mount.empty() || mount[0] != '/')
            wrong(at, below.line, "not a mount point; write its absolute path");
        if (!is(at, below, json_value::kind::object))
            continue;
        if (to.mounts.count(mount))
            wrong(at, below.line, "the mount point is listed twice");
        std::vector<std::string>& list = to.mounts[mount];
        for (const auto& [key_name, inner] : below.members)
            if (key_name == "rdma_dev_addr_list")
                list = addresses(at + '.' + key_name, inner);
            else
                unknown(at + '.' + key_name, inner.line, "rdma_dev_addr_list");
    }
}

std::vector<std::string> configuration_keys::addresses(const std::string& path, const json_value& value)
{
    std::vector<std::string> made;
    key_rules::texts(*this, path, value, [&](const std::string& text) -> std::string {
        std::array<char, INET6_ADDRSTRLEN> plain{};
        in6_addr bits{};
        const int family = text.find(':') == std::string::npos ? AF_INET : AF_INET6;
        if (text.find('\0') != std::string::npos || ::inet_pton(family, text.c_str(), &bits) != 1)
            return fmt::format(
                "\"{}\" is not an IP address; write the storage NIC's as \"192.168.0.12\" or \"fd00::12\"", text);
        ::inet_ntop(family, &bits, plain.data(), plain.size());
        if (std::find(made.begin(), made.end(), plain.data()) != made.end())
            return fmt::format("{} is listed twice", text);
        made.emplace_back(plain.data());
        return {};
    });
    return made;
}

void configuration_keys::compare_slabs()
{
    const std::string path = "properties.posix_pool_slab_size_kb";
    if (!mistakes_.empty())
        return;
    if (to_.slab_bytes.size() != to_.slab_counts.size())
        wrong(path, slabs_line_,
              fmt::format("{} sizes, but posix_pool_slab_count has {} numbers; give each size one number",
                          to_.slab_bytes.size(), to_.slab_counts.size()));
    if (std::adjacent_find(to_.slab_bytes.begin(), to_.slab_bytes.end(), std::greater_equal<>()) !=
        to_.slab_bytes.end())
        wrong(path, slabs_line_, "the sizes must ascend");
}

bool configuration_keys::is(const std::string& path, const json_value& value, json_value::kind wanted)
{
    if (value.what == json_value::kind::huge && wanted == json_value::kind::integer)
        wrong(path, value.line, fmt::format("{} is out of range", value.text));
    else if (value.what != wanted)
        wrong(path, value.line, fmt::format("{} instead of {}", name_of(value.what), name_of(wanted)));
    return value.what == wanted;
}

void configuration_keys::wrong(const std::string& path, unsigned line, std::string_view why)
{
    mistakes_.push_back(core::printable(fmt::format("weftio: {}:{}: {}: {}", name_, line, path, why)));
}

void configuration_keys::remark(const std::string& path, unsigned line, std::string_view why, bool unknown)
{
    to_.remarks.push_back({core::printable(fmt::format("weftio: {}:{}: {}: {}", name_, line, path, why)), unknown});
}

void configuration_keys::no_effect(const std::string& path, unsigned line, std::string_view why)
{
    remark(path, line, fmt::format("has no effect on file engines: {}", why), false);
}

void configuration_keys::unknown(const std::string& path, unsigned line, std::string_view known)
{
    remark(path, line,
           known.empty() ? "unknown key; it has no effect"
                         : fmt::format("unknown key; it has no effect (known: {})", known),
           true);
}

} // namespace weftio::storage
