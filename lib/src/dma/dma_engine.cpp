#include <fmt/format.h>

#include "core/process.hpp"
#include "core/signals.hpp"
#include "nic/dma_backend.hpp"
#include "weftio/dma.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

[[noreturn]] void refuse(const char* option, long long value, const char* hint)
{
    throw error(errc::invalid_argument, fmt::format("weftio: dma_engine: {} is {}; {}", option, value, hint));
}

std::shared_ptr<nic::dma_backend> open(const dma_engine_options& options)
{
    if (options.core < -1)
        refuse("core", options.core, "name a core, counted from 0, or -1 for any");
    if (const auto mode = static_cast<int>(options.mode);
        mode < 0 || mode > static_cast<int>(engine_mode::inline_worker))
        refuse("mode", mode, "name one of engine_mode::thread, engine_mode::inline_worker");
    if (const auto idle = static_cast<int>(options.idle); idle < 0 || idle > static_cast<int>(idle_policy::busy))
        refuse("idle", idle, "name one of idle_policy::sleep, idle_policy::yield, idle_policy::busy");
    const detail::undertaking undertaking;
    const detail::signals_blocked for_its_thread;
    return nic::make_soft_dma(options);
}

} // namespace

dma_engine::dma_engine(dma_engine_options options) : backend_(open(options)) {}

unsigned dma_engine::turn() const
{
    if (!backend_->is_inline())
        throw error(errc::invalid_argument,
                    "weftio: dma_engine: turn() is for inline mode, and this engine has a thread; "
                    "make it with .mode = engine_mode::inline_worker");
    return backend_->turn();
}

} // namespace weftio
