#include "core/log.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "core/printable.hpp"
#include "core/undying.hpp"
#include "core/write_signals.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

constexpr std::array<std::string_view, 4> names{"debug", "info", "warning", "error"}; // as log_level numbers them

struct log_state {
    std::mutex mutex;
    log_sink sink;                    ///< guarded by mutex
    bool environment_is_read = false; ///< likewise
    std::atomic<bool> ended{false};
};

/// Whether this thread is inside the sink, from which exit() may call the log again.
thread_local bool in_sink = false;

/// Writes to descriptor 2, not to `stderr`, which leads back to the log while EAL starts.
log_sink standard_error(log_level least)
{
    return [least](log_level level, std::string_view line) {
        if (level < least)
            return;
        const core::no_write_signals only_fails; // a pipe without a reader, or a file at the limit of its size
        if (dprintf(STDERR_FILENO, "%s: %.*s\n", names[static_cast<std::size_t>(level)].data(),
                    static_cast<int>(line.size()), line.data()) < 0)
            only_fails.take();
    };
}

/// The sink that WEFTIO_LOG asks for, if the program has set none. For an unknown level it logs one warning and shows
/// warnings.
log_sink sink_of_environment()
{
    const char* wish = std::getenv("WEFTIO_LOG");
    if (!wish || !*wish)
        return {};
    try {
        return standard_error(log_level_named(wish));
    } catch (const error& refused) {
        dprintf(STDERR_FILENO, "%s (environment variable WEFTIO_LOG)\n", refused.what());
        return standard_error(log_level::warning);
    }
}

} // namespace

log_level log_level_named(std::string_view name)
{
    const auto* found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
        throw error(errc::invalid_argument,
                    fmt::format("weftio: log level {}: no such level; name one of {}", name, fmt::join(names, ", ")));
    return static_cast<log_level>(found - names.begin());
}

void set_log_sink(log_sink sink)
{
    log_state& log = core::undying<log_state>();
    std::scoped_lock lock(log.mutex);
    log.environment_is_read = true;
    std::swap(log.sink, sink);
}

void log_to_stderr(log_level least)
{
    set_log_sink(standard_error(least));
}

void core::log(log_level level, std::string_view line)
{
    log_state& log = core::undying<log_state>();
    if (in_sink || log.ended.load(std::memory_order_relaxed))
        return;
    std::scoped_lock lock(log.mutex);
    if (!log.environment_is_read) {
        log.environment_is_read = true;
        log.sink = sink_of_environment();
    }
    if (!log.sink)
        return;
    struct entered {
        entered() noexcept { in_sink = true; }
        entered(const entered&) = delete;
        entered& operator=(const entered&) = delete;
        ~entered() { in_sink = false; }
    } entered;
    try {
        log.sink(level, printable(line, "\n\t")); // reports have lines
    } catch (...) { // DPDK calls from C, engines from noexcept functions: neither can pass an exception on
        return;
    }
}

void core::end_log() noexcept
{
    undying<log_state>().ended.store(true, std::memory_order_relaxed);
}

} // namespace weftio
