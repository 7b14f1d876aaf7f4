#include "session.hpp"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <endian.h>
#include <fmt/format.h>
#include <poll.h>
#include <rte_eal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <thread>
#include <vector>

#include "core/log.hpp"
#include "core/signals.hpp"

namespace weftio::verbs {

namespace {

std::string value_of(const char* variable)
{
    const char* const value = std::getenv(variable);
    return value ? value : "";
}

unsigned devices_of(const std::string& text)
{
    unsigned count = 1;
    const char* const end = text.data() + text.size();
    if (text.empty())
        return count;
    if (const auto [behind, why] = std::from_chars(text.data(), end, count);
        why != std::errc() || behind != end || count == 0 || count > settings::most_devices)
        throw error(errc::invalid_argument,
                    fmt::format("weftio-run: --devices is {}; it is 1 to {}", text, settings::most_devices));
    return count;
}

/// The drivers that a port needs, as EAL takes them: by the names of their libraries, of the same version as EAL.
std::vector<std::string> drivers_for(std::string_view port)
{
    std::vector<std::string_view> names{"mempool_ring"};
    if (port.starts_with("wire:") || port == "loopback")
        names.push_back("net_ring");
    else if (port.starts_with("iface:"))
        names.insert(names.end(), {"net_af_packet", "net_af_xdp"});
    else if (port.starts_with("tap:"))
        names.push_back("net_tap");
    else
        return {}; // EAL finds all of them by itself
    Dl_info eal{};
    if (dladdr(reinterpret_cast<void*>(&rte_eal_init), &eal) == 0 || !eal.dli_fname)
        return {};
    const std::string_view library(eal.dli_fname);
    const std::size_t version = library.find(".so");
    if (version == std::string_view::npos)
        return {};
    std::vector<std::string> words;
    for (const std::string_view name : names) {
        words.emplace_back("-d");
        words.push_back(fmt::format("librte_{}{}", name, library.substr(version)));
    }
    return words;
}

/// What keeps EAL from files and threads that nobody uses here: no telemetry, which a process without a folder of its own
/// could not have, and a runtime folder of a name that no other process has, so that it can be removed.
std::vector<std::string> without_traces()
{
    return {"--no-telemetry", "--file-prefix", fmt::format("weftio-run-{}", getpid())};
}

/// Calls `work` in a thread that has all signals blocked but those of its own faults, as all threads that it starts: the
/// others are for the program's.
template <class Work>
void in_quiet_thread(Work&& work)
{
    std::exception_ptr problem;
    std::thread thread;
    {
        const core::signals_blocked blocked;
        thread = std::thread([&] {
            try {
                work();
            } catch (...) {
                problem = std::current_exception();
            }
        });
    }
    thread.join();
    if (problem)
        std::rethrow_exception(problem);
}

/// An address for tests (RFC 2544), from the last two bytes of the MAC.
std::string address_for(const std::array<std::uint8_t, 6>& mac)
{
    return fmt::format("198.18.{}.{}", mac[4], mac[5] % 254 + 1);
}

std::string wire_of(std::string_view spec)
{
    constexpr std::string_view kind = "wire:";
    return std::string(spec.starts_with(kind) ? spec.substr(kind.size(), spec.find(',') - kind.size()) : "");
}

/// Of the spec of a wire, for "SHARE" or "SHARE,SEED".
std::string loss_words(const std::string& loss)
{
    if (loss.empty())
        return {};
    const std::size_t comma = loss.find(',');
    return ",loss=" + loss.substr(0, comma) + (comma == loss.npos ? "" : ",seed=" + loss.substr(comma + 1));
}

/// As sysfs writes it, from what inet_pton() reads; IPv4 as ::ffff:a.b.c.d.
std::string long_form(const std::string& address)
{
    std::array<std::uint8_t, 16> gid{};
    if (inet_pton(AF_INET, address.c_str(), &gid[12]) == 1)
        gid[10] = gid[11] = 0xff;
    else
        inet_pton(AF_INET6, address.c_str(), gid.data());
    std::string text;
    for (std::size_t at = 0; at != gid.size(); at += 2)
        text += fmt::format("{}{:02x}{:02x}", at == 0 ? "" : ":", gid[at], gid[at + 1]);
    return text;
}

/// Of the system, behind a port that has one; programs ask the system for such interfaces by their names.
std::string interface_of(const std::string& spec)
{
    constexpr std::string_view kinds[] = {"iface:", "tap:"};
    for (const std::string_view kind : kinds)
        if (spec.starts_with(kind))
            return spec.substr(kind.size());
    return {};
}

device_description describe(const node& of, unsigned number)
{
    device_description says;
    says.name = fmt::format("mlx5_{}", number);
    says.guid = be64toh(guid_of(of));
    says.firmware = fmt::format("{}.{}.{:04}", firmware[0], firmware[1], firmware[2]);
    says.mtu_bytes = of.port.mtu();
    says.mac = of.port.mac();
    for (const std::string& address : of.rdma.gids())
        says.gids.push_back({.gid = long_form(address), .interface = interface_of(of.port.spec())});
    return says;
}

} // namespace

settings settings::from_environment()
{
    settings wanted;
    wanted.port = value_of(port_variable);
    const std::string wire = value_of(wire_variable);
    if (wanted.port.empty())
        wanted.port = "wire:" + (wire.empty() ? "default" : wire) + loss_words(value_of(loss_variable));
    wanted.address = value_of(address_variable);
    wanted.devices = devices_of(value_of(devices_variable));
    wanted.dump = value_of(dump_variable);
    return wanted;
}

session::session(const settings& wanted, const weftio_verbs_host& host) : process_(getpid())
{
    constexpr std::chrono::milliseconds period{10};
    events_.set_look(period, [this] { look(); });
    in_quiet_thread([&] { open_ports(wanted, host); });
    std::vector<device_description> all;
    for (unsigned each = 0; each != devices(); ++each)
        all.push_back(describe(nodes_[each], each));
    tree_.emplace(all);
    show_.emplace(events_, tree_->path(), [this] { return describe_all(); });
}

/// For weftio-run --show.
std::string session::describe_all()
{
    std::vector<std::shared_ptr<context>> open;
    {
        const std::scoped_lock lock(mutex_);
        for (const auto& [identity, each] : contexts_)
            open.push_back(each);
    }
    std::string text;
    for (unsigned device = 0; device != devices(); ++device) {
        const node& each = nodes_[device];
        text += fmt::format("mlx5_{}: port {}, MTU {}, {}, addresses {}\n", device, each.port.spec(), each.port.mtu(),
                            each.port.link_up() ? "up" : "down", fmt::join(each.rdma.gids(), ", "));
        for (const auto& one : open)
            if (&one->of == &each)
                text += show(*one);
    }
    return text;
}

void session::open_ports(const settings& wanted, const weftio_verbs_host& host)
{
    port_options options{.idle = idle_policy::adaptive};
    options.eal_arguments = drivers_for(wanted.port);
    const bool hides = !options.eal_arguments.empty() && host.hide_drivers;
    const std::vector<std::string> quiet = without_traces();
    options.eal_arguments.insert(options.eal_arguments.end(), quiet.begin(), quiet.end());
    for (unsigned each = 0; each != wanted.devices; ++each) {
        options.dump = wanted.dump.empty() || each == 0 ? wanted.dump : fmt::format("{}.{}", wanted.dump, each);
        if (hides)
            host.hide_drivers(true);
        port opened = port::open(wanted.port, options);
        if (hides)
            host.hide_drivers(false);
        rdma_device_options addresses;
        addresses.address = each == 0 && !wanted.address.empty() ? wanted.address : address_for(opened.mac());
        addresses.link_local = true;
        rdma_device rdma(opened, addresses);
        nodes_.push_back({opened, rdma, device::open("cpu"), events_, wire_of(wanted.port)});
    }
    rmdir(rte_eal_get_runtime_dir()); // fails where EAL could not make it
}

void session::end() noexcept
{
    const std::scoped_lock no_look(sweeping_);
    std::map<std::uint64_t, std::shared_ptr<context>> all;
    {
        const std::scoped_lock lock(mutex_);
        all.swap(contexts_);
    }
    show_.reset();
    for (const auto& [identity, each] : all)
        events_.forget(each->ours());
    all.clear();
    nodes_.clear();
    tree_.reset();
}

bool session::is_here() const noexcept
{
    return getpid() == process_;
}

int session::open(unsigned device, int flags) noexcept
try {
    if (device >= nodes_.size())
        return -ENXIO;
    auto made = std::make_shared<context>(nodes_[device], flags);
    const int number = made->program();
    {
        const std::scoped_lock lock(mutex_);
        contexts_[made->identity()] = made;
    }
    events_.watch(made->ours(), [this] { sweep_if_nobody_does(); });
    return number;
} catch (const failure& why) {
    return -why.number;
} catch (...) {
    return -ENOMEM;
}

std::shared_ptr<context> session::find(int number) noexcept
{
    const std::uint64_t identity = identity_of(number);
    const std::scoped_lock lock(mutex_);
    const auto found = contexts_.find(identity);
    return identity == 0 || found == contexts_.end() ? nullptr : found->second;
}

int session::device_of(int number) noexcept
{
    const std::shared_ptr<context> found = find(number);
    if (!found)
        return -ENOTTY;
    int at = 0;
    for (const node& each : nodes_) {
        if (&each == &found->of)
            break;
        ++at;
    }
    return at;
}

std::shared_ptr<context> session::take_closed()
{
    const std::scoped_lock lock(mutex_);
    for (auto each = contexts_.begin(); each != contexts_.end(); ++each) {
        pollfd look{.fd = each->second->ours(), .events = 0, .revents = 0};
        if (poll(&look, 1, 0) == 1 && (look.revents & POLLHUP) != 0) {
            std::shared_ptr<context> taken = std::move(each->second);
            contexts_.erase(each);
            return taken;
        }
    }
    return nullptr;
}

void session::sweep() noexcept
{
    const std::scoped_lock one_at_a_time(sweeping_);
    sweep_all();
}

/// In the thread of events_, for whose functions a thread that sweeps may wait. The event comes again until that has
/// swept.
void session::sweep_if_nobody_does() noexcept
{
    if (const std::unique_lock only_one(sweeping_, std::try_to_lock); only_one)
        sweep_all();
}

/// In the thread of events_. Nothing ends meanwhile; while something ends there is no look.
void session::look() noexcept
try {
    const std::unique_lock only_one(sweeping_, std::try_to_lock);
    if (!only_one)
        return;
    std::vector<std::shared_ptr<context>> all;
    {
        const std::scoped_lock lock(mutex_);
        for (const auto& [identity, each] : contexts_)
            all.push_back(each);
    }
    for (const auto& each : all)
        each->look();
} catch (const std::bad_alloc&) { // the next look may have memory
}

void session::sweep_all() noexcept
{
    while (const std::shared_ptr<context> closed = take_closed())
        events_.forget(closed->ours());
}

} // namespace weftio::verbs
