// Tells when all engines of a port have begun another turn, without anybody waiting.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace weftio::nic::soft {

/// Who has changed what several engines read in their turns begins a round. Once it has passed, no engine is in a turn
/// that began before the change. One for a port; any engine may call it, in its turn.
class turn_rounds {
 public:
    std::uint64_t begin() noexcept { return begun_.fetch_add(1, std::memory_order_acq_rel) + 1; }
    /// Whether every engine other than the caller's has begun a turn since, or runs none.
    bool has_passed(std::uint64_t round) const
    {
        return std::ranges::all_of(engines_, [&](const auto& has_passed) { return has_passed(round); });
    }
    /// The last round that has begun: acquire, so that the caller sees the changes before it.
    std::uint64_t begun() const noexcept { return begun_.load(std::memory_order_acquire); }
    /// Adds an engine. @param has_passed  whether it has begun a turn since that round, or runs none
    void add(std::function<bool(std::uint64_t)> has_passed) { engines_.push_back(std::move(has_passed)); }
    bool has_one_engine() const noexcept { return engines_.size() < 2; }

 private:
    std::atomic<std::uint64_t> begun_{0};
    std::vector<std::function<bool(std::uint64_t)>> engines_;
};

} // namespace weftio::nic::soft
