#include "core/process.hpp"
#include "storage/context.hpp"
#include "weftio/file.hpp"

namespace weftio {

file_engine::file_engine(file_engine_options options)
    : context_(core::make_shared_here<storage::context>(std::move(options)))
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
