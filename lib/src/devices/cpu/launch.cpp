#include "devices/cpu/launch.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <pthread.h>

#include "devices/cpu/scheduler.hpp"
#include "weftio/error.hpp"

namespace weftio::devices::cpu {

launch_state::launch_state(const launch_request& request, std::shared_ptr<device_backend> device, stack_pool& stacks,
                           std::optional<std::uint64_t> shuffle_seed)
    : device_(std::move(device)), stacks_(stacks), shuffle_seed_(shuffle_seed), name_(request.name),
      call_(request.call), shape_(request.shape), controls_(request.controls), lines_(request.lines),
      live_blocks_(request.shape.blocks)
{}

void launch_state::run_block(std::uint32_t block) noexcept
{
    pthread_setname_np(pthread_self(), fmt::format("weftio/b{}", block).c_str());

    gate_.wait(closed);
    if (gate_.load() == open) {
        try {
            std::string what =
                run_lanes({.lane = 0, .block_lanes = shape_.lanes, .block = block, .blocks = shape_.blocks});
            if (!what.empty())
                fail(block, what);
        } catch (const std::bad_alloc&) {
            fail(block, "out of memory for its lanes");
        }
    }
    std::scoped_lock lock(mutex_);
    if (--live_blocks_ == 0)
        ended_.notify_all();
}

/// Runs all lanes of a block. Returns the fault, or an empty text.
std::string launch_state::run_lanes(const weftio_cpu_lane& first)
{
    if (first.block_lanes > 1) {
        block_scheduler lanes(first, stacks_, lane_order(shuffle_seed_, first.block), failed_);
        return lanes.run(call_);
    }
    weftio_cpu_this_lane = first;
    try {
        call_();
    } catch (...) {
        return fmt::format("lane 0 threw {}", describe(std::current_exception()));
    }
    return {};
}

/// Keeps the first fault and ends the other blocks: directly if they have several lanes, and all of them by the abort
/// flags of their queues.
void launch_state::fail(std::uint32_t block, std::string_view what) noexcept
{
    std::scoped_lock lock(mutex_);

    if (!failed_)
        try {
            fault_ = fmt::format("weftio: kernel {} on the CPU, block {}: {}", name_, block, what);
            if (shuffle_seed_ && shape_.lanes > 1)
                fault_ += fmt::format(" (lanes shuffled: WEFTIO_SHUFFLE_SEED={} repeats it)", *shuffle_seed_);
        } catch (const std::bad_alloc&) { // a fault without a text
        }
    failed_ = true;
    for (weftio_dev_control* control : controls_)
        weftio_store_release_sys_u32(&control->abort, 1);
}

void launch_state::open_gate(bool run) noexcept
{
    gate_ = run ? open : canceled;
    gate_.notify_all();
}

bool launch_state::wait_for(std::chrono::nanoseconds bound)
{
    constexpr std::chrono::nanoseconds longest = std::chrono::hours(24 * 365); // the sum with now must not overflow
    std::unique_lock lock(mutex_);

    return ended_.wait_for(lock, std::min(bound, longest), [this] { return live_blocks_ == 0; });
}

cpu_running::cpu_running(std::shared_ptr<launch_state> state, std::uint32_t blocks, std::function<void()> left_behind)
    : state_(std::move(state)), left_behind_(std::move(left_behind))
{
    threads_.reserve(blocks);
    try {
        for (std::uint32_t block = 0; block < blocks; ++block)
            threads_.emplace_back([state = state_, block] { state->run_block(block); });
    } catch (const std::exception& failure) {
        state_->open_gate(false);
        join();
        throw error(errc::device_error,
                    fmt::format("weftio: CPU device: cannot start {} blocks: thread {} failed: {}; launch fewer blocks "
                                "or raise the limit (ulimit -u, or the pids limit of the container)",
                                blocks, threads_.size(), failure.what()));
    }
    state_->open_gate(true);
}

cpu_running::~cpu_running()
{
    if (state_->wait_for({})) {
        join();
        return;
    }
    left_behind_();
    for (std::thread& thread : threads_)
        thread.detach();
}

bool cpu_running::wait_for(std::chrono::nanoseconds bound)
{
    if (!state_->wait_for(bound))
        return false;
    join();
    if (const std::string* fault = state_->fault())
        throw error(errc::device_error, fault->empty() ? "weftio: CPU device: a kernel failed, and memory ran out for "
                                                         "the error text; free memory and launch it again"
                                                       : *fault);
    return true;
}

void cpu_running::join()
{
    for (std::thread& thread : threads_) {
        if (thread.joinable())
            thread.join();
    }
}

} // namespace weftio::devices::cpu
