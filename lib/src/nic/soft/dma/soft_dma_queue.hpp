// A queue of a DMA engine, as the objects of dma/ use it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "nic/soft/dma/soft_dma.hpp"
#include "nic/soft/work/soft_queue.hpp"

namespace weftio::nic::soft {

/// The DMA engine, which the queue keeps alive. @see soft_queue
class at_dma {
 protected:
    explicit at_dma(std::shared_ptr<soft_dma> dma) noexcept : dma_(std::move(dma)) {}

    bool may_end() const noexcept { return dma_->may_end(); }
    bool is_inline() const noexcept { return dma_->is_inline(); }
    std::string where() const { return {}; }
    doorbell_pages& doorbells() const noexcept { return dma_->doorbells(); }
    template <class Change>
    void between_turns(Change&& change) const
    {
        dma_->engine().between_turns(change);
    }
    template <class Change>
    void between_all_turns(Change&& change) const
    {
        between_turns(change);
    }

    const std::shared_ptr<soft_dma> dma_;
};

class soft_dma_queue final : public soft_executed_queue<dma_send_queue, at_dma, copy_work> {
 public:
    soft_dma_queue(std::shared_ptr<soft_dma> dma, const send_ring& ring);

    inline_turn turn() noexcept override { return turn_of(this); }
    void run_turn() const;
    dma_counters counters() const override;
    bool stopped() const noexcept override { return queue_->failed(); }
    void restart(const send_ring& ring) override;

 private:
    std::string progress() const override;
    bool drain() override;
    void remove() noexcept override { dma_->queues().take(number_); }
};

} // namespace weftio::nic::soft
