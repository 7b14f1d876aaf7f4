#include "devices/opencl/occupancy.hpp"

#include <chrono>
#include <ctime>

#include <sys/prctl.h>

#include <fmt/format.h>

#include "weftio/error.hpp"

namespace weftio::devices::opencl {

namespace {

/// The clock's step. A shorter step costs more CPU time than it improves waits of tens of microseconds.
constexpr std::timespec tick_interval{.tv_sec = 0, .tv_nsec = 20'000};

std::string counted(std::uint32_t count, std::string_view noun)
{
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

} // namespace

occupancy::occupancy(const device_facts& facts, weftio_dev_clock* clock)
    : device_(facts.name), units_(facts.compute_units), pocl_(facts.pocl), clock_(clock)
{}

void occupancy::enter(std::uint32_t blocks, std::string_view kernel)
{
    std::lock_guard lock(mutex_);
    if (blocks > units_ || running_ > units_ - blocks)
        refuse(blocks, kernel);
    if (!ticker_.joinable())
        ticker_ = std::jthread([this](std::stop_token stop) { tick(std::move(stop)); });
    advance(); // so that a kernel never reads a time before its launch
    running_ += blocks;
    changed_.notify_all();
}

void occupancy::leave(std::uint32_t blocks) noexcept
{
    std::lock_guard lock(mutex_);
    running_ -= blocks;
}

void occupancy::refuse(std::uint32_t blocks, std::string_view kernel) const
{
    std::string advice = "launch fewer blocks or stop a running kernel first";
    if (pocl_)
        advice +=
            fmt::format(", or set POCL_MAX_PTHREAD_COUNT={} (or more) before the program starts", running_ + blocks);
    throw error(errc::invalid_argument,
                fmt::format("weftio: opencl: kernel {} needs {}, {} run{} already and device \"{}\" has {} (one block "
                            "each), so they cannot all run at once; {}",
                            kernel, counted(blocks, "block"), running_, running_ == 1 ? "s" : "", device_,
                            counted(units_, "compute unit"), advice));
}

void occupancy::tick(std::stop_token stop)
{
    prctl(PR_SET_NAME, "weftio-clock");
    prctl(PR_SET_TIMERSLACK, 1UL); // the default slack of 50 us would more than triple the interval
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return running_ != 0; }) && !stop.stop_requested()) {
        advance();
        lock.unlock();
        nanosleep(&tick_interval, nullptr);
        lock.lock();
    }
}

void occupancy::advance() noexcept
{
    auto since = std::chrono::steady_clock::now().time_since_epoch(); // steady_clock is CLOCK_MONOTONIC
    auto now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
    weftio_store_release_sys_u64(&clock_->now_ns, static_cast<weftio_u64>(now_ns));
}

} // namespace weftio::devices::opencl
