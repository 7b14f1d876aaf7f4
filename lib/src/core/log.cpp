#include "core/log.hpp"

#include <mutex>

namespace weftio {

namespace {

std::mutex mutex;
log_sink sink_;

} // namespace

void set_log_sink(log_sink sink)
{
    std::scoped_lock lock(mutex);
    sink_ = std::move(sink);
}

void detail::log(log_level level, std::string_view line)
{
    std::scoped_lock lock(mutex);
    if (sink_)
        sink_(level, line);
}

} // namespace weftio
