#include "opening.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <rte_eal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <exception>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/signals.hpp"

namespace weftio::verbs {

namespace {

/// The drivers that a port needs, as options for EAL: the names of their libraries, of the same version as EAL.
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
        return {}; // EAL finds all drivers itself
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

/// Options that keep EAL from files and threads that are not used here: no telemetry, which a process without a folder
/// of its own cannot have, and a runtime folder with a unique name, so that it can be removed.
std::vector<std::string> without_traces()
{
    return {"--no-telemetry", "--file-prefix", fmt::format("weftio-run-{}", getpid())};
}

/// EAL raises the process's limit of descriptors; the program keeps its own.
class same_limit {
 public:
    same_limit() noexcept : known_(getrlimit(RLIMIT_NOFILE, &before_) == 0) {}
    same_limit(const same_limit&) = delete;
    same_limit& operator=(const same_limit&) = delete;
    ~same_limit()
    {
        if (known_)
            setrlimit(RLIMIT_NOFILE, &before_);
    }

 private:
    rlimit before_{};
    const bool known_;
};

/// Calls `work` in a thread that blocks all signals but those of its own faults. Threads that it starts inherit this;
/// other signals go to the program's threads.
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

/// An address from the range for tests (RFC 2544), from the last two bytes of the MAC.
std::string address_for(const std::array<std::uint8_t, 6>& mac)
{
    return fmt::format("198.18.{}.{}", mac[4], mac[5] % 254 + 1);
}

std::string wire_of(std::string_view spec)
{
    constexpr std::string_view kind = "wire:";
    return std::string(spec.starts_with(kind) ? spec.substr(kind.size(), spec.find(',') - kind.size()) : "");
}

void open_all(const settings& wanted, const weftio_verbs_host& host, watcher& events, std::deque<node>& nodes)
{
    port_options options{.idle = idle_policy::adaptive};
    options.dump = wanted.dump;
    options.eal_arguments = drivers_for(wanted.port);
    const bool hides = !options.eal_arguments.empty() && host.hide_drivers;
    const std::vector<std::string> quiet = without_traces();
    options.eal_arguments.insert(options.eal_arguments.end(), quiet.begin(), quiet.end());
    for (unsigned each = 0; each != wanted.devices; ++each) {
        if (hides)
            host.hide_drivers(true);
        port opened = port::open(wanted.port, options);
        if (hides)
            host.hide_drivers(false);
        rdma_device_options addresses;
        addresses.strict_windows = false; // as the device that programs take it for
        addresses.address = each == 0 && !wanted.address.empty() ? wanted.address : address_for(opened.mac());
        addresses.link_local = true;
        addresses.repeated_gids = {0, 0}; // a ConnectX has IPv4 at index 3, which guides for programs name
        rdma_device rdma(opened, addresses);
        nodes.push_back({opened, rdma, device::open("cpu"), events, wanted.doorbell_bytes, wire_of(wanted.port)});
    }
    rmdir(rte_eal_get_runtime_dir()); // fails if EAL could not create it
}

} // namespace

void open_nodes(const settings& wanted, const weftio_verbs_host& host, watcher& events, std::deque<node>& nodes)
{
    const same_limit keep;
    in_quiet_thread([&] { open_all(wanted, host, events, nodes); });
}

} // namespace weftio::verbs
