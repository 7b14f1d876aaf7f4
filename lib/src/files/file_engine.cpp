#include "core/process.hpp"
#include "nic/engine_options.hpp"
#include "storage/context.hpp"
#include "weftio/file.hpp"

namespace weftio {

namespace {

/// Refuses what no thread of kernels' queues can have.
file_engine_options checked(file_engine_options options)
{
    nic::require_engine_options("file_engine", options.core, options.mode, options.idle);
    if (options.realtime < 0 || options.realtime > 99)
        nic::refuse_option("file_engine", "realtime", options.realtime, "set a priority from 1 to 99, or 0 for none");
    return options;
}

} // namespace

file_engine::file_engine(file_engine_options options)
    : context_(core::make_shared_here<storage::context>(checked(std::move(options))))
{}

bool file_engine::has(file_way way) const noexcept
{
    return context_->has(way);
}

const file_engine_options& file_engine::options() const noexcept
{
    return context_->options();
}

file_counters file_engine::counters() const noexcept
{
    return context_->counts.read();
}

const std::shared_ptr<storage::context>& detail::internals::share(const file_engine& engine) noexcept
{
    return engine.context_;
}

} // namespace weftio
