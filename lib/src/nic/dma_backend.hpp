// The interface between dma/ and a DMA engine: what a DMA engine must be able to do. dma/ knows an engine by this
// header only.
#pragma once

#include <memory>
#include <string>

#include "nic/backend.hpp"
#include "weftio/options.hpp"

namespace weftio::nic {

class dma_send_queue : public send_queue {
 public:
    virtual dma_counters counters() const = 0;
    /// As failed(), but does not wait for the current turn, whose result may be visible only later.
    virtual bool stopped() const noexcept = 0;
};

/// The engine of one weftio::dma_engine. Any thread may call it. Queues and regions that it makes keep it alive.
class dma_backend : public memory_user {
 public:
    virtual bool is_inline() const noexcept = 0;
    /// Inline mode: runs one turn. Returns how much the turn moved.
    virtual unsigned turn() = 0;
    /// @throws weftio::error errc::out_of_memory
    virtual std::shared_ptr<dma_send_queue> make_queue(const send_ring& ring) = 0;
};

/// Makes the DMA engine that copies with the CPU. @throws weftio::error see the constructor of weftio::dma_engine
std::shared_ptr<dma_backend> make_soft_dma(const dma_engine_options& options);

} // namespace weftio::nic
