#include "check.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "gpudirect.hpp"
#include "settings.hpp"
#include "storage/direct_route.hpp"
#include "storage/requirements.hpp"
#include "storage/routing.hpp"
#include "storage/vendor_library.hpp"
#include "storage/way.hpp"
#include "weftio/error.hpp"

namespace weftio::files {

namespace {

namespace fs = std::filesystem;
using storage::place_facts;
using storage::requirement;
using storage::system_facts;
using storage::topology;

/// Everything that sections are written from.
struct facts {
    system_facts system{};
    storage::configuration configuration{};
    topology trees{};
    std::vector<place_facts> places{};
    bool live = true; ///< this machine, not a recorded one
    std::string uring_refused{};
    std::string vendor_asked{};   ///< path of NVIDIA's library that is asked for
    bool vendor = false;          ///< an engine would go by NVIDIA's library
    std::string vendor_refused{}; ///< why the library that was asked for is not open
    std::string no_nvlinks{};     ///< why NVLinks are unknown
};

std::string text_of(const std::string& path)
{
    if (fs::exists(path) && !fs::is_regular_file(path))
        throw error(errc::invalid_argument, fmt::format("weftio-files: {}: not a regular file", path));
    std::ifstream in(path, std::ios::binary);
    if (!in)
        throw error(errc::not_found, fmt::format("weftio-files: {}: cannot read: {}", path, std::strerror(errno)));
    return {std::istreambuf_iterator<char>(in), {}};
}

/// Whether a mount without a name on the command line is of interest.
bool is_storage(const storage::mount_entry& mount)
{
    constexpr std::array network{"nfs", "nfs4", "lustre", "wekafs", "beegfs", "gpfs", "ceph", "cifs", "smb3", "9p"};
    return storage::is_local(mount.file_system) ||
           std::find(network.begin(), network.end(), mount.file_system) != network.end();
}

void add_place(facts& to, const fs::path& root, const storage::mount_entry& mount, const std::string& path)
{
    place_facts place = storage::recognize(root, mount);
    if (const auto tried = to.live ? storage::try_o_direct(path) : std::nullopt) {
        place.o_direct = tried;
        place.o_direct_why = "tried";
    }
    to.places.push_back(std::move(place));
}

/// The mounts of the paths, or all of interest.
void find_places(facts& to, const check_options& options)
{
    const auto mounts = storage::read_mounts(options.root);
    for (const std::string& path : options.paths) {
        std::error_code failed;
        const fs::path real = to.live ? fs::canonical(path, failed) : fs::path(path);
        if (failed)
            throw error(errc::not_found, fmt::format("weftio-files: {}: {}", path, failed.message()));
        const storage::mount_entry* mount = storage::mount_of(mounts, real.string());
        if (!mount)
            throw error(errc::not_found,
                        fmt::format("weftio-files: {}: no mount contains it; check that /proc is mounted", path));
        add_place(to, options.root, *mount, real);
    }
    std::vector<std::string> seen; // one mount of a drive is enough: containers have many
    for (const storage::mount_entry& mount : mounts)
        if (options.paths.empty() && is_storage(mount) &&
            std::find(seen.begin(), seen.end(), mount.device) == seen.end()) {
            seen.push_back(mount.device);
            add_place(to, options.root, mount, mount.point);
        }
}

/// Opens NVIDIA's library as an engine would: if it is asked for.
void check_vendor_library(facts& to)
try {
    to.vendor_asked = to.live ? storage::vendor_library_asked_for(to.configuration) : to.configuration.cufile_library;
    to.vendor = to.live && !to.vendor_asked.empty() && !to.configuration.force_compat_mode;
    if (to.vendor)
        (void)storage::vendor_library::open(to.vendor_asked);
} catch (const error& refused) {
    to.vendor = false;
    to.vendor_refused = refused.what();
}

facts gather_facts(const check_options& options)
{
    if (!fs::is_directory(options.root))
        throw error(errc::not_found, fmt::format("weftio-files: --root {}: not a folder", options.root));
    facts made;
    made.live = fs::path(options.root).lexically_normal() == "/";
    made.system = storage::read_system(options.root);
    made.configuration = storage::read_configuration(storage::configuration_path(options.configuration));
    made.trees = !options.topology.empty()
                     ? storage::parse_topology(text_of(options.topology), options.topology)
                     : storage::read_topology(options.root, made.live ? storage::addresses_of_interfaces()
                                                                      : storage::interface_addresses{});
    if (made.live && options.topology.empty())
        made.no_nvlinks = storage::add_nvlinks(made.trees);
    find_places(made, options);
    check_vendor_library(made);
    try {
        if (made.live)
            storage::make_uring(1);
    } catch (const error& refused) {
        made.uring_refused = refused.what();
    }
    return made;
}

finding present_or(std::string_view name, bool there, std::string_view found, std::string_view remedy)
{
    return {std::string(name), there ? "present" : "missing", std::string(found), there ? "" : std::string(remedy)};
}

bool opens(const char* library)
{
    void* handle = ::dlopen(library, RTLD_LAZY | RTLD_LOCAL);
    if (handle)
        ::dlclose(handle);
    return handle != nullptr;
}

/// The library that an engine would open, or would find if it were asked.
finding vendor_library(const facts& from, const fs::path& root)
{
    std::string path = from.vendor_asked.empty() ? storage::find_vendor_library(root) : from.vendor_asked;
    const bool there = !path.empty() && from.vendor_refused.empty();
    if (!from.vendor_refused.empty())
        path = from.vendor_refused;
    return present_or("NVIDIA's libcufile.so.0", there, path.empty() ? "none" : path,
                      from.vendor_refused.empty() ? "install the CUDA toolkit, or do not use the way cufile" : "");
}

section environment(const facts& from, const check_options& options)
{
    const system_facts& system = from.system;
    const bool uring = from.live ? from.uring_refused.empty() : system.uring_denied.value_or(0) != 2;
    group all;
    all.findings.push_back({"kernel", "", fmt::format("{} {}", system.kernel, system.machine), ""});
    all.findings.push_back(present_or("io_uring", uring, uring ? "allowed" : from.uring_refused,
                                      "allow io_uring_setup in the container's seccomp profile and set the sysctl "
                                      "kernel.io_uring_disabled=0"));
    all.findings.push_back(present_or("/run/udev", system.udev, system.udev ? "there" : "absent",
                                      "in a container: start it with -v /run/udev:/run/udev:ro"));
    if (from.live) {
        const bool cuda = opens("libcuda.so.1");
        all.findings.push_back(present_or("libcuda.so.1", cuda, cuda ? "opens" : "cannot be loaded",
                                          "install NVIDIA's driver, or use host memory"));
        rlimit files{};
        ::getrlimit(RLIMIT_NOFILE, &files);
        all.findings.push_back(present_or("open files", files.rlim_cur >= 1024, fmt::format("{}", files.rlim_cur),
                                          "raise the limit: ulimit -n 1024"));
    }
    all.findings.push_back(vendor_library(from, options.root));
    return {"ENVIRONMENT", {all}};
}

finding to_finding(const requirement& it)
{
    return {it.name, std::string(storage::to_string(it.is)), it.found, it.remedy};
}

bool has(const group& in, const std::string& name)
{
    return std::any_of(in.findings.begin(), in.findings.end(), [&](const finding& it) { return it.name == name; });
}

/// The requirements of the machine, once each; without a mount, from an empty one.
group of_machine(const facts& from)
{
    group made;
    const place_facts nowhere;
    for (const auto& option : storage::direct_options(from.system, from.places.empty() ? nowhere : from.places.front()))
        for (const requirement& it : option.needs)
            if (!it.of_mount && !has(made, it.name))
                made.findings.push_back(to_finding(it));
    return made;
}

group of_mount(const facts& from, const place_facts& place)
{
    group made{.title = fmt::format("{} : {} on {}", place.mount.point, place.mount.file_system,
                                    place.drives.empty() ? place.mount.source
                                                         : fmt::format("{}", fmt::join(place.drives, " ")))};
    for (const auto& option : storage::direct_options(from.system, place)) {
        const requirement* missing = option.missing();
        made.findings.push_back({"direct by " + option.name, missing ? "missing" : "present",
                                 missing ? fmt::format("Unsupported: {}", missing->name) : "Supported", ""});
        for (const requirement& it : option.needs)
            if (it.of_mount && !has(made, it.name))
                made.findings.push_back(to_finding(it));
    }
    for (const bool gpu : {false, true}) {
        const storage::rules rules(from.system, place, from.configuration,
                                   {.device_memory = gpu,
                                    .uring = from.uring_refused.empty(),
                                    .uring_why = from.uring_refused,
                                    .vendor_library = from.vendor,
                                    .vendor_why = from.vendor_refused});
        const storage::rule* chosen = rules.chosen();
        made.findings.push_back({gpu ? "way for GPU memory" : "way for host memory", "",
                                 chosen ? fmt::format("{}: {}", to_string(chosen->way), chosen->why)
                                        : "none: properties.allow_compat_mode is false",
                                 ""});
    }
    return made;
}

section driver_configuration(const facts& from)
{
    section made{"DRIVER CONFIGURATION", {of_machine(from)}};
    for (const place_facts& place : from.places)
        made.groups.push_back(of_mount(from, place));
    return made;
}

std::uint64_t bar1_of(const check_options& options, const storage::topology_node& gpu)
{
    return devices::cuda::bar1_bytes(fs::path(options.root) / "sys/bus/pci/devices" / gpu.address);
}

/// All of it, and how much is used.
std::string bar1_words(const facts& from, const check_options& options, const storage::topology_node& gpu)
{
    const std::uint64_t all = bar1_of(options, gpu);
    const auto use = options.bar1_use ? options.bar1_use(gpu.address)
                     : from.live      ? devices::cuda::bar1_use_of(gpu.address)
                                      : std::nullopt;
    if (use)
        return fmt::format("{} MiB ({} used, {} free)", use->total >> 20, (use->total - use->free) >> 20,
                           use->free >> 20);
    return all == 0 ? "unknown" : fmt::format("{} MiB (used and free: unknown)", all >> 20);
}

section gpu_info(const facts& from, const check_options& options)
{
    group made;
    for (std::size_t gpu : from.trees.all(storage::topology_node::kind::gpu)) {
        const auto& node = from.trees.nodes()[gpu];
        made.findings.push_back({node.name, "",
                                 fmt::format("{} BAR1 {}, NUMA node {}", node.address, bar1_words(from, options, node),
                                             from.trees.numa_of(gpu)),
                                 ""});
    }
    if (made.findings.empty())
        made.findings.push_back({"GPU", "missing", "none on PCIe", "host memory needs none"});
    return {"GPU INFO", {made}};
}

section platform(const facts& from)
{
    group made;
    const std::string text = storage::to_text(from.trees);
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = text.find('\n', at) + 1;
        made.text += "  " + text.substr(at, end - at);
        at = end;
    }
    if (!from.no_nvlinks.empty())
        made.findings.push_back(
            {"NVLinks", "unknown", from.no_nvlinks, "install NVIDIA's driver, or give --topology FILE"});
    if (text.empty())
        made.findings.push_back(
            {"PCIe", "unknown", "/sys has no devices", "make /sys readable, or give --topology FILE"});
    return {"PLATFORM", {made}};
}

/// What the way `direct` would do between a mount and a GPU.
std::string direct_words(const facts& from, const storage::route& route, std::size_t gpu, std::uint64_t bar1)
{
    const storage::direct_judgment judged = storage::judge_direct(from.trees, route, gpu, 0, bar1);
    if (!route.device)
        return "unknown: " + judged.why;
    if (judged.fall != file_fall::none)
        return fmt::format("staged ({}): {}", to_string(judged.fall), judged.why);
    return fmt::format("straight: {}{}", judged.why,
                       bar1 == 0 ? ""
                                 : fmt::format("; staged (above_bar1) if more than {} MiB are registered", bar1 >> 20));
}

section routing(const facts& from, const check_options& options)
{
    section made{"ROUTING", {}};
    for (const place_facts& place : from.places) {
        group of{.title = place.mount.point};
        for (std::size_t gpu : from.trees.all(storage::topology_node::kind::gpu)) {
            const auto route = storage::decide_route(from.trees, from.configuration,
                                                     {place.mount.file_system, place.mount.point, place.drives}, gpu);
            const storage::topology_node& node = from.trees.nodes()[gpu];
            of.findings.push_back({node.name, "", route.reason, ""});
            of.findings.push_back({node.name + " by direct, not in this build", "",
                                   direct_words(from, route, gpu, bar1_of(options, node)), ""});
        }
        if (of.findings.empty())
            of.findings.push_back({"-", "", "no GPU, no routing", ""});
        made.groups.push_back(std::move(of));
    }
    return made;
}

} // namespace

std::vector<section> check(const check_options& options)
{
    const facts from = gather_facts(options);
    return {environment(from, options),
            driver_configuration(from),
            settings(from.configuration, from.places),
            gpu_info(from, options),
            platform(from),
            routing(from, options),
            gpudirect(from.trees, options.root)};
}

} // namespace weftio::files
