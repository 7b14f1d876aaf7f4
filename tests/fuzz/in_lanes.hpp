// A block of lanes, as fibers of the fuzzer's own thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "devices/cpu/scheduler.hpp"
#include "expect.hpp"

namespace weftio::fuzz {

/// Runs `body`, which must not throw, once in each of `lanes` lanes.
/// @param shuffle  seed of the order in which lanes run; none: round-robin
inline void in_lanes(std::uint32_t lanes, std::optional<std::uint64_t> shuffle, const std::function<void()>& body)
{
    static devices::cpu::stack_pool stacks;
    static const std::atomic<bool> never{false};
    const weftio_cpu_lane before = weftio_cpu_this_lane;
    if (lanes == 1) {
        body();
    } else {
        weftio_cpu_lane first;
        first.block_lanes = lanes;
        devices::cpu::block_scheduler block(first, stacks, devices::cpu::lane_order(shuffle, 0), never);
        expect(block.run(body).empty(), "no lane is left waiting for another");
    }
    weftio_cpu_this_lane = before;
}

} // namespace weftio::fuzz
