#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "core/cancellation.hpp"
#include "core/log.hpp"
#include "core/signals.hpp"
#include "devices/backend.hpp"
#include "devices/watchdog.hpp"
#include "weftio/device.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

constexpr std::chrono::seconds patience{5};

/// Logs from a destructor, which must not throw.
void report(std::string_view text) noexcept
{
    try {
        core::log(log_level::error, text);
    } catch (...) { // an exception of the sink
    }
}

} // namespace

running_kernel::running_kernel(std::shared_ptr<devices::running_backend> backend,
                               const devices::launch_request& request)
    : name_(request.name), backend_(std::move(backend)), controls_(request.controls), lines_(request.lines),
      beats_at_launch_(devices::beats_of(lines_))
{}

running_kernel& running_kernel::operator=(running_kernel&& other) noexcept
{
    if (this == &other)
        return *this;
    end();
    name_ = std::move(other.name_);
    backend_ = std::move(other.backend_);
    controls_ = std::move(other.controls_);
    lines_ = std::move(other.lines_);
    beats_at_launch_ = other.beats_at_launch_;
    watchdog_ = std::move(other.watchdog_);
    fault_thrown_ = other.fault_thrown_;
    return *this;
}

running_kernel::~running_kernel()
{
    end();
}

void running_kernel::stop() noexcept
{
    if (watchdog_)
        watchdog_->dismiss();
    if (!alive()) // once it has ended, its queues may be gone
        return;
    for (weftio_dev_control* control : controls_)
        weftio_store_release_sys_u32(&control->abort, 1);
}

bool running_kernel::wait_for(std::chrono::nanoseconds bound)
{
    if (!backend_)
        return true;
    try {
        return backend_->wait_for(std::max(bound, std::chrono::nanoseconds(0)));
    } catch (...) {
        fault_thrown_ = true;
        throw;
    }
}

bool running_kernel::alive() const noexcept
{
    const core::not_cancelled here;
    try {
        return backend_ && !backend_->wait_for({});
    } catch (...) { // it ended with a fault
        return false;
    }
}

void running_kernel::watch(watch_options options)
{
    if (options.period < std::chrono::milliseconds(1))
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: kernel {}: the watch period is {} ms; set 1 ms or more, 500 ms suits most kernels",
                        name_, options.period.count()));
    if (lines_.empty())
        throw error(errc::invalid_argument, fmt::format("weftio: kernel {}: no argument is a queue or a semaphore, so "
                                                        "no heartbeat can be watched; pass the object itself",
                                                        name_));
    const core::signals_blocked for_its_thread;
    watchdog_ =
        core::make_shared_here<devices::watchdog>(name_, backend_, lines_, beats_at_launch_, std::move(options));
    try {
        watchdog_->start();
    } catch (...) {
        watchdog_.reset();
        throw;
    }
}

std::vector<queue_trace> running_kernel::traces() const
{
    return devices::traces_of(lines_);
}

std::string running_kernel::dump() const
{
    return devices::text_of(traces());
}

void running_kernel::end() noexcept
{
    if (!backend_ || !backend_->may_end())
        return;
    stop();
    watchdog_.reset();
    try {
        if (!backend_->wait_for(patience))
            report(fmt::format("weftio: a kernel still runs {} s after it was asked to stop; it is abandoned, and "
                               "memory of its device is no longer freed; make all of its waits check the abort flag",
                               patience.count()));
    } catch (const std::exception& fault) {
        if (!fault_thrown_)
            report(fault.what());
    }
    backend_.reset();
}

} // namespace weftio
