// A DMA engine. It copies with the CPU, and with the copy engines of devices whose memory the CPU cannot access. Its
// only unit is a list of copy queues.
#pragma once

#include <memory>
#include <mutex>

#include "core/process.hpp"
#include "keys/key_table.hpp"
#include "nic/dma_backend.hpp"
#include "nic/soft/dma/copy_work.hpp"
#include "nic/soft/engine/engine.hpp"
#include "nic/soft/engine/unit.hpp"
#include "nic/soft/work/work_list.hpp"

namespace weftio::nic::soft {

/// The one unit of a DMA engine: it gives the copy queues their turns (send step 2).
class copier final : public unit {
 public:
    /// For each queue.
    static constexpr std::uint32_t entries_of_a_turn = 64;

    unsigned turn(const turn_budget& budget) override;
    /// @pre the engine is between two turns
    work_list& queues() noexcept { return queues_; }
    copy_streams& streams() noexcept { return streams_; }

 private:
    copy_streams streams_;
    work_list queues_;
};

class soft_dma final : public dma_backend, public std::enable_shared_from_this<soft_dma>, core::moving {
 public:
    explicit soft_dma(const dma_engine_options& options);
    ~soft_dma() { leave(); }

    std::unique_ptr<region> register_memory(const region_request& wanted) override;
    bool is_inline() const noexcept override { return !engine_.has_thread(); }
    unsigned turn() override { return engine_.turn(); }
    std::shared_ptr<dma_send_queue> make_queue(const send_ring& ring) override;
    bool stand_still() noexcept override { return engine_.stop_turns(); }

    bool may_end() const noexcept { return maker_.may_end(); }
    keys::nic_keys& keys() noexcept { return keys_; }
    work_list& queues() noexcept { return copier_.queues(); }            ///< between two turns only
    const copy_streams& streams() noexcept { return copier_.streams(); } ///< between two turns only
    /// Makes the copy engine of a device whose memory the CPU cannot access available. Throws what make_copy_queue()
    /// throws.
    void reach(const std::shared_ptr<devices::device_backend>& device);
    /// Blocks until all copies that copy engines have started are complete and visible.
    void wait_for_streams() noexcept;
    /// Adds these copies instead. Returns false if there is no memory.
    bool leave_streams(devices::unfinished_copies& to) noexcept;
    nic::soft::engine& engine() noexcept { return engine_; }
    doorbell_pages& doorbells() noexcept { return doorbells_; }

 private:
    const core::maker maker_{};
    std::mutex reaching_;
    keys::nic_keys keys_{"dma_engine"};
    doorbell_pages doorbells_;
    copier copier_;
    nic::soft::engine engine_; ///< declared last, so that it stops before the other members are destroyed
};

} // namespace weftio::nic::soft
