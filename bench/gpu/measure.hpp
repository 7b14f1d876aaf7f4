// Shared by the parts of gpu_bench. Each part measures once; gpu.cpp repeats and takes medians.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "weftio/weftio.hpp"

namespace weftio::bench {

using clock_type = std::chrono::steady_clock;

struct settings {
    std::string device = "cpu";
    double seconds = 0.3; ///< for each rate
    std::uint32_t engines = 4;
    std::string only{}; ///< the part to measure; empty: all
    std::string peer{}; ///< a second device, as `device`; empty: none
};

/// One number of one round.
struct sample {
    std::string what, unit;
    double value;
    std::string peer{}; ///< `what` of the row to compare with, measured alternately; empty: none
};

/// Round trips of a flag, a frame and a burst of 32.
std::vector<sample> hand_over(const device& device, const settings& settings);
/// Receive rates by packet length, lanes and engines; from an engine, and from a thread that only publishes.
std::vector<sample> receive_rates(const device& device, const settings& settings);
/// Posting rates with a thread at the ring that only completes; and send rates with an engine.
std::vector<sample> send_rates(const device& device, const settings& settings);
/// Posting rates on a ring in the memory of the device, in each way and by grids of all sizes.
std::vector<sample> posting_rates(const device& device, const settings& settings);
/// Rates without kernel-owned queues: copy, launch, copy back, wait, a burst of 32 at a time. Empty if `device` is no
/// GPU.
std::vector<sample> without_queues(const device& device, const settings& settings);

/// Hits of a registration cache, and the buffer ID that each asks for. Empty if `device` is no GPU.
std::vector<sample> registration_hits(const device& device, const settings& settings);

/// Round trips between kernels of the device and of settings::peer. Empty if there is none.
std::vector<sample> between_devices(const device& device, const settings& settings);

struct part {
    std::string_view name;
    std::vector<sample> (*measure)(const device&, const settings&);
};
/// All of gpu_bench, in the order of its table.
constexpr std::array<part, 7> parts{{{"hand-over", hand_over},
                                     {"baseline", without_queues},
                                     {"receive", receive_rates},
                                     {"send", send_rates},
                                     {"posting", posting_rates},
                                     {"registrations", registration_hits},
                                     {"peer", between_devices}}};

/// Packets of a burst, and bytes of a frame: the same with and without kernel-owned queues.
constexpr std::uint32_t burst = 32, frame_bytes = 64;
using frame_type = std::array<std::byte, frame_bytes>;
inline frame_type some_frame()
{
    frame_type frame{};
    for (std::size_t at = 0; at < frame.size(); ++at)
        frame[at] = static_cast<std::byte>(at + 1);
    return frame;
}
/// The frame with its addresses swapped.
inline frame_type answered(frame_type frame)
{
    std::swap_ranges(frame.begin(), frame.begin() + 6, frame.begin() + 6);
    return frame;
}

inline port_options busy_port()
{
    return {.idle = idle_policy::busy};
}

inline double quantile(std::vector<std::uint64_t> values, double share)
{
    auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), at, values.end());
    return static_cast<double>(*at);
}

/// Growth of `count()`, in millions per second.
template <class Count>
double millions_a_second(const settings& settings, Count&& count)
{
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    auto before = count();
    auto begin = clock_type::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(settings.seconds));
    auto after = count();
    return static_cast<double>(after - before) / std::chrono::duration<double>(clock_type::now() - begin).count() / 1e6;
}

/// A number that a kernel writes and the host reads.
class shared_count {
 public:
    explicit shared_count(const device& device) : memory_(device.allocate(64, memory_kind::cpu_device)) {}
    weftio_u64* on_device() const { return static_cast<weftio_u64*>(memory_.device_address()); }
    std::uint64_t value() const
    {
        return weftio_load_acquire_sys_u64(static_cast<const weftio_u64*>(memory_.cpu_address()));
    }

 private:
    memory memory_;
};

} // namespace weftio::bench
