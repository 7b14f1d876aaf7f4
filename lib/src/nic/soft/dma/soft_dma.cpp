#include "nic/soft/dma/soft_dma.hpp"

#include <fmt/format.h>

#include <utility>

#include "nic/soft/dma/soft_dma_queue.hpp"
#include "weftio/error.hpp"

namespace weftio::nic {

namespace {

/// Memory that a DMA engine copies from and to.
class dma_region final : public region {
 public:
    dma_region(std::shared_ptr<soft_dma> dma, const region_request& wanted)
        : dma_(std::move(dma)), block_(wanted.block), key_(wanted.key)
    {
        if (!block_->at.cpu)
            throw error(errc::not_reachable,
                        fmt::format("weftio: memory_region: a DMA engine cannot see memory of kind \"{}\", which the "
                                    "CPU cannot; allocate memory_kind::cpu_device",
                                    to_string(block_->kind)));
        dma_->keys().grant(key_, false);
    }
    dma_region(const dma_region&) = delete;
    dma_region& operator=(const dma_region&) = delete;
    ~dma_region() override { revoke(); }

    void revoke() noexcept override
    {
        if (const std::uint32_t key = std::exchange(key_, 0); key != 0 && dma_->may_end())
            dma_->engine().between_turns([&] { dma_->keys().forget(key); });
    }

 private:
    const std::shared_ptr<soft_dma> dma_;
    const std::shared_ptr<const detail::memory_block> block_;
    std::uint32_t key_;
};

/// What an engine of a port is made with.
port_options of_engine(const dma_engine_options& options)
{
    return {.mode = options.mode, .idle = options.idle, .core = options.core, .realtime = options.realtime};
}

} // namespace

unsigned copier::turn(const turn_budget& budget)
{
    queues_.look_at_doorbells(budget.busy);
    return queues_.turn(budget.entries).moved;
}

soft_dma::soft_dma(const dma_engine_options& options) : engine_({&copier_}, of_engine(options), "weftio/dma")
{
    enter();
}

std::unique_ptr<region> soft_dma::register_memory(const region_request& wanted)
{
    return std::make_unique<dma_region>(shared_from_this(), wanted);
}

std::shared_ptr<dma_send_queue> soft_dma::make_queue(const tx_ring& ring)
{
    return std::make_shared<soft_dma_queue>(shared_from_this(), ring);
}

std::shared_ptr<dma_backend> make_soft_dma(const dma_engine_options& options)
{
    return detail::make_shared_here<soft_dma>(options);
}

} // namespace weftio::nic
