// Counts the refused requests of a queue pair's peer by reason.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <new>

#include "core/refusal.hpp"

namespace weftio::nic::soft {

/// Most queue pairs refuse nothing, so memory is allocated for the first refusal. A refusal that finds no memory is not
/// counted here. Called by the engine's thread only, in a turn or in a change between two turns.
class refusal_counts {
 public:
    void add(refusal reason, std::uint64_t count) noexcept
    {
        if (!by_reason_)
            by_reason_.reset(new (std::nothrow) counts{});
        if (by_reason_)
            (*by_reason_)[static_cast<std::size_t>(reason)] += count;
    }
    /// Calls `each` for every reason with a count, and passes the count.
    template <class Each>
    void for_each(Each&& each) const
    {
        for (std::size_t reason = 0; by_reason_ && reason < by_reason_->size(); ++reason)
            if ((*by_reason_)[reason] != 0)
                each(static_cast<refusal>(reason), (*by_reason_)[reason]);
    }

 private:
    using counts = std::array<std::uint64_t, core::all_refusals>;

    std::unique_ptr<counts> by_reason_;
};

} // namespace weftio::nic::soft
