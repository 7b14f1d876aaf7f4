#include "devices/watchdog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include "core/log.hpp"
#include "weftio/error.hpp"

namespace weftio::devices {

namespace {

const char* function_name(std::uint32_t function)
{
    switch (function) {
        case WEFTIO_DEV_FUNCTION_NONE: return "none";
        case WEFTIO_DEV_FUNCTION_RECEIVE: return "receive";
        case WEFTIO_DEV_FUNCTION_COMMIT: return "commit";
        case WEFTIO_DEV_FUNCTION_PUSH: return "push";
        case WEFTIO_DEV_FUNCTION_POLL: return "poll";
        case WEFTIO_DEV_FUNCTION_SEMAPHORE: return "semaphore";
        default: return "unknown";
    }
}

queue_trace trace_of(const lifeline& line)
{
    const weftio_dev_control& control = *line.control();
    return {.queue = line.describe(),
            .beats = weftio_load_relaxed_u32(&control.beats),
            .block = weftio_load_relaxed_u32(&control.block),
            .function = function_name(weftio_load_relaxed_u32(&control.function)),
            .index = weftio_load_relaxed_u32(&control.index),
            .status = static_cast<std::int32_t>(
                weftio_load_relaxed_u32(reinterpret_cast<const std::uint32_t*>(&control.status)))};
}

} // namespace

std::vector<queue_trace> traces_of(const std::vector<std::shared_ptr<lifeline>>& lines)
{
    std::vector<queue_trace> traces;
    for (const auto& line : lines)
        traces.push_back(trace_of(*line));
    return traces;
}

std::string text_of(const std::vector<queue_trace>& traces)
{
    std::string text;
    for (const queue_trace& trace : traces) {
        text += trace.queue;
        if (trace.beats == 0)
            text += "; the kernel never touched it\n";
        else
            text += fmt::format("; block {} was last in {} at index {}, status {}, {} beats\n", trace.block,
                                trace.function, trace.index, trace.status, trace.beats);
    }
    return text;
}

std::uint64_t beats_of(const std::vector<std::shared_ptr<lifeline>>& lines) noexcept
{
    std::uint64_t sum = 0;
    for (const auto& line : lines)
        sum += weftio_load_relaxed_u32(&line->control()->beats);
    return sum;
}

watchdog::watchdog(std::string name, std::shared_ptr<running_backend> kernel,
                   std::vector<std::shared_ptr<lifeline>> lines, std::uint64_t beats_at_launch, watch_options options)
    : name_(std::move(name)), kernel_(std::move(kernel)), lines_(std::move(lines)), options_(std::move(options)),
      beats_(beats_at_launch), started_(!kernel_->starts_late())
{
    constexpr std::chrono::milliseconds longest =
        std::chrono::hours(24 * 365); // so that now + period does not overflow
    options_.period = std::min(options_.period, longest);
}

void watchdog::start()
{
    std::scoped_lock lock(mutex_); // holds back the first report, whose callback may destroy thread_
    try {
        thread_ = std::thread([this] { run(); });
    } catch (const std::system_error& refusal) {
        throw error(errc::device_error, fmt::format("weftio: kernel {}: cannot start the watchdog thread ({}); raise "
                                                    "the limit (ulimit -u, or the pids limit of the container)",
                                                    name_, refusal.what()));
    }
}

watchdog::~watchdog()
{
    dismiss();
    if (thread_.get_id() == std::this_thread::get_id()) // called by the callback of report()
        thread_.detach();
    else if (thread_.joinable())
        thread_.join();
}

void watchdog::dismiss() noexcept
{
    std::scoped_lock lock(mutex_);
    dismissed_ = true;
    dismissed_changed_.notify_all();
}

/// Sleeps for `bound`. Returns false if the watchdog was dismissed.
bool watchdog::sleep(std::chrono::milliseconds bound)
{
    std::unique_lock lock(mutex_);
    return !dismissed_changed_.wait_for(lock, bound, [this] { return dismissed_; });
}

bool watchdog::kernel_ended() const
{
    try {
        return kernel_->wait_for({});
    } catch (...) { // a fault is an end too; wait_for() reports it to the host
        return true;
    }
}

std::chrono::milliseconds watchdog::bound() const
{
    return started_ ? options_.period : std::max(options_.period, options_.start);
}

/// Describes the failure for the report.
std::string watchdog::finding(bool ended) const
{
    if (ended)
        return "ended without being asked to stop";
    if (!started_)
        return fmt::format("did not start within {} ms of being watched", bound().count());
    return fmt::format("has sent no heartbeat for {} ms", bound().count());
}

void watchdog::run()
{
    auto step = std::max(options_.period / 8, std::chrono::milliseconds(1));
    auto changed = std::chrono::steady_clock::now();
    while (sleep(step)) {
        if (kernel_ended())
            return report(true);
        auto now = std::chrono::steady_clock::now();
        if (std::uint64_t seen = beats_of(lines_); seen != beats_) {
            beats_ = seen;
            changed = now;
            started_ = true;
        } else if (now - changed >= bound()) {
            return report(false);
        }
    }
}

void watchdog::describe(kernel_report& report) const
{
    report.queues = traces_of(lines_);
    report.text = fmt::format("weftio: kernel {} {}; its queues are stopped, restart them with reset()\n{}", name_,
                              finding(report.ended), text_of(report.queues));
}

void watchdog::report(bool ended)
{
    for (const auto& line : lines_) {
        weftio_store_release_sys_u32(&line->control()->abort, 1);
        line->quiesce();
    }
    kernel_report report{.ended = ended, .text = {}, .queues = {}};
    try {
        describe(report);
    } catch (const std::bad_alloc&) { // reported without a text
    }
    core::log_or_lose(log_level::error, [&] { return std::string_view(report.text); });
    try {
        if (const auto on_report = std::move(options_.on_report)) // the callback may destroy this object
            on_report(report);
    } catch (const std::exception& thrown) {
        core::log_or_lose(log_level::error, [&] {
            return fmt::format("weftio: the callback of a watch threw an exception ({}); catch it in the callback",
                               thrown.what());
        });
    } catch (...) { // an unknown exception cannot be described
    }
}

} // namespace weftio::devices
