#include "core/log.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "weftio/error.hpp"

namespace weftio {

namespace {

constexpr std::array<std::string_view, 4> names{"debug", "info", "warning", "error"}; // as log_level numbers them

std::mutex mutex;
log_sink sink_;                   ///< guarded by mutex
bool environment_is_read = false; ///< likewise

log_sink standard_error(log_level least)
{
    return [least](log_level level, std::string_view line) {
        if (level >= least)
            std::fprintf(stderr, "%s: %.*s\n", names[static_cast<std::size_t>(level)].data(), static_cast<int>(line.size()),
                         line.data());
    };
}

/// The sink of a program that has set none. A name that is no level is said once, and the warnings are shown.
log_sink sink_of_environment()
{
    const char* wish = std::getenv("WEFTIO_LOG");
    if (!wish || !*wish)
        return {};
    try {
        return standard_error(log_level_named(wish));
    } catch (const error& refused) {
        std::fprintf(stderr, "%s (environment variable WEFTIO_LOG)\n", refused.what());
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
    std::scoped_lock lock(mutex);
    environment_is_read = true;
    sink_ = std::move(sink);
}

void log_to_stderr(log_level least)
{
    set_log_sink(standard_error(least));
}

void detail::log(log_level level, std::string_view line)
{
    std::scoped_lock lock(mutex);
    if (!environment_is_read) {
        environment_is_read = true;
        sink_ = sink_of_environment();
    }
    if (sink_)
        sink_(level, line);
}

} // namespace weftio
