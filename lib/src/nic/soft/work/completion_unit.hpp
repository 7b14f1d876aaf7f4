// The completion queues of an engine.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nic/soft/engine/unit.hpp"
#include "nic/soft/work/completion_ring.hpp"

namespace weftio::nic::soft {

/// Has its turn after the units that write completions: notifies programs that wait for completions.
class completion_unit final : public unit {
 public:
    /// Completion queues whose arming word is polled per turn, round robin, in addition to those with a new completion.
    static constexpr std::size_t polls_when_busy = 1, polls_when_idle = 16;

    unsigned turn(const turn_budget& budget) override;
    /// Returns its number. The ring stays at its address until remove(). @throws std::bad_alloc
    std::uint32_t add(const completion_memory& ring);
    completion_ring& find(std::uint32_t number) const noexcept { return *rings_[number - 1]; }
    void remove(std::uint32_t number) noexcept;

 private:
    std::vector<std::unique_ptr<completion_ring>> rings_; ///< by number - 1
    std::vector<completion_ring*> notifying_;             ///< those with an event
    std::vector<completion_ring*> news_;                  ///< of these, those with a new completion
    std::size_t last_polled_ = 0;
};

} // namespace weftio::nic::soft
