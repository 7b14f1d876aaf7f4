// A queue of the DMA engine that copies with the CPU, as the objects of dma/ see it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "nic/soft/dma/soft_dma.hpp"

namespace weftio::nic::soft {

class soft_dma_queue final : public dma_send_queue {
 public:
    soft_dma_queue(std::shared_ptr<soft_dma> dma, const tx_ring& ring);

    std::uint32_t number() const noexcept override { return number_; }
    inline_turn turn() noexcept override;
    std::uint32_t ring_number() const noexcept override { return ring_number_; }
    void stop(std::uint32_t ring) override;
    std::string describe(std::uint32_t ring) const override;
    void close() noexcept override;
    dma_counters counters() const override;
    bool failed() const override;
    bool stopped() const noexcept override { return queue_->failed(); }
    void stop_sending() override;
    void restart(const tx_ring& ring) override;
    bool next(send_outcome& outcome) override;

 private:
    void drain();

    const std::shared_ptr<soft_dma> dma_;
    std::uint32_t number_ = 0;
    std::mutex changing_;           ///< held while the queue is restarted
    copy_work* queue_ = nullptr;    ///< constant until close(), which makes it nullptr
    std::uint32_t ring_number_ = 0; ///< changes only between two turns of the engine
};

} // namespace weftio::nic::soft
