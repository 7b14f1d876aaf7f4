// Round trips between kernels of two devices: a bare flag, and an item of a semaphore.
#include <utility>

#include "devices/backend.hpp"
#include "gpu_bench.kernel.h"
#include "measure.hpp"
#include "weftio/detail/internals.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(flag_echo, "gpu_bench.kernel.h");
WEFTIO_DEFINE_KERNEL(flag_rounds, "gpu_bench.kernel.h");
WEFTIO_DEFINE_KERNEL(item_echo, "gpu_bench.kernel.h");
WEFTIO_DEFINE_KERNEL(item_rounds, "gpu_bench.kernel.h");

namespace weftio::bench {

namespace {

constexpr std::uint32_t rounds = 8000, alternations = 4;
constexpr auto patience = std::chrono::seconds(20);

/// Durations of rounds, which a kernel of `device` writes.
class round_times {
 public:
    explicit round_times(const device& device)
        : memory_(
              device.allocate(std::size_t{rounds} / ROUNDS_AT_ONCE * sizeof(std::uint64_t), memory_kind::cpu_device))
    {}
    std::uint64_t* on_device() const { return static_cast<std::uint64_t*>(memory_.device_address()); }
    void add_to(std::vector<std::uint64_t>& all) const
    {
        const auto* const first = static_cast<const std::uint64_t*>(memory_.cpu_address());
        all.insert(all.end(), first, first + rounds / ROUNDS_AT_ONCE);
    }

 private:
    memory memory_;
};

/// Waits for both kernels, which end together. Returns whether they did.
bool end_of(running_kernel& one, running_kernel& other)
{
    const bool ended = one.wait_for(patience);
    one.stop();
    other.stop();
    return ended && other.wait_for(patience);
}

/// A way to hand over; run() adds the times of its rounds.
struct way {
    std::string what;
    std::string compared_with{}; ///< another way; empty: none
    std::vector<std::uint64_t> times_ns{};
    bool right = true;

    sample row(const std::string& quantile_name, double share) const
    {
        return {.what = what + ", " + quantile_name,
                .unit = "ns",
                .value = right ? quantile(times_ns, share) / ROUNDS_AT_ONCE : 0,
                .peer = compared_with.empty() ? "" : compared_with + ", " + quantile_name};
    }
};

/// Each flag in memory of kind `kind` of the device whose kernel reads it.
void run_flags(way& way, const device& first, const device& second, memory_kind kind)
{
    const memory ping = second.allocate(64, kind), pong = first.allocate(64, kind);
    const auto word = [](const memory& of) { return static_cast<std::uint32_t*>(of.device_address()); };
    const round_times times(first);
    running_kernel echo = second.launch(flag_echo_kernel, {}, word(ping), word(pong), rounds);
    running_kernel measured =
        first.launch(flag_rounds_kernel, {}, word(ping), word(pong), rounds, first.clock(), times.on_device());
    way.right = end_of(measured, echo) && way.right;
    times.add_to(way.times_ns);
}

void run_items(way& way, const device& first, const device& second, memory_kind kind, bool info)
{
    semaphore items(first, {.items = 64, .kind = kind, .check_transitions = false, .peer = second});
    const memory wrong = second.allocate(64, memory_kind::cpu_device);
    const round_times times(first);
    running_kernel echo = second.launch(item_echo_kernel, {}, items.peer(), info, rounds,
                                        static_cast<std::uint32_t*>(wrong.device_address()));
    running_kernel measured = first.launch(item_rounds_kernel, {}, items, info, rounds, times.on_device());
    way.right = end_of(measured, echo) && *static_cast<const std::uint32_t*>(wrong.cpu_address()) == 0 && way.right;
    times.add_to(way.times_ns);
}

} // namespace

std::vector<sample> between_devices(const device& first, const settings& settings)
{
    if (settings.peer.empty())
        return {};
    const device second = device::open(settings.peer);
    for (const auto& [one, other] : {std::pair{&first, &second}, std::pair{&second, &first}})
        detail::internals::backend(*one).reach(detail::internals::backend(*other), memory_kind::device, "gpu_bench");
    const std::string bare = "flag, kernel-peer-kernel", pinned_bare = "flag in pinned memory, kernel-peer-kernel";
    way flag{bare}, item{"item, kernel-peer-kernel", bare}, packets{"packet info, kernel-peer-kernel", bare},
        pinned_flag{pinned_bare}, pinned{"item in pinned memory, kernel-peer-kernel", pinned_bare};
    for (std::uint32_t turn = 0; turn < alternations; ++turn) {
        run_flags(flag, first, second, memory_kind::device);
        run_items(item, first, second, memory_kind::device, false);
        run_items(packets, first, second, memory_kind::device, true);
        run_flags(pinned_flag, first, second, memory_kind::cpu_device);
        run_items(pinned, first, second, memory_kind::cpu_device, false);
    }
    std::vector<sample> rows;
    for (const way* each : {&flag, &item, &packets, &pinned_flag, &pinned}) {
        rows.push_back(each->row("p50", 0.5));
        rows.push_back(each->row("p99", 0.99));
    }
    return rows;
}

} // namespace weftio::bench
