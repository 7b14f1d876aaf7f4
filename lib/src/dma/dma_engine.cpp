#include "core/process.hpp"
#include "core/signals.hpp"
#include "nic/dma_backend.hpp"
#include "nic/engine_options.hpp"
#include "weftio/dma.hpp"
#include "weftio/error.hpp"

namespace weftio {

namespace {

std::shared_ptr<nic::dma_backend> open(const dma_engine_options& options)
{
    nic::require_engine_options("dma_engine", options.core, options.mode, options.idle);
    const core::undertaking undertaking;
    const core::signals_blocked for_its_thread;
    return nic::make_soft_dma(options);
}

} // namespace

dma_engine::dma_engine(dma_engine_options options) : backend_(open(options)) {}

unsigned dma_engine::turn() const
{
    if (!backend_->is_inline())
        throw error(errc::invalid_argument, "weftio: dma_engine: turn() is for inline mode, but this engine has a "
                                            "thread; create it with .mode = engine_mode::inline_worker");
    return backend_->turn();
}

nic::dma_backend& detail::internals::backend(const dma_engine& engine) noexcept
{
    return *engine.backend_;
}

} // namespace weftio
