// Results of atomics, kept so that a repeated one is answered and not executed again (IBTA 9.4.5).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace weftio::roce {

/// The last `most` results. A peer has no more atomics in flight, so it never asks for an older one.
class saved_results {
 public:
    explicit saved_results(std::uint32_t most) : ring_(most) {}

    /// Keeps more than before; it never keeps fewer.
    void make_room(std::uint32_t most)
    {
        if (most <= ring_.size())
            return;
        std::vector<result> wider(most);
        for (std::uint64_t back = 1; back <= ring_.size() && back <= count_; ++back)
            wider[(count_ - back) % wider.size()] = ring_[(count_ - back) % ring_.size()];
        ring_ = std::move(wider);
    }
    void save(std::uint32_t psn, std::uint64_t original) noexcept
    {
        if (!ring_.empty())
            ring_[count_++ % ring_.size()] = {psn, original};
    }
    /// The result of the atomic with this PSN; nullptr: unknown. The newest first, as PSNs repeat.
    const std::uint64_t* find(std::uint32_t psn) const noexcept
    {
        for (std::uint64_t back = 1; back <= ring_.size() && back <= count_; ++back) {
            const result& one = ring_[(count_ - back) % ring_.size()];
            if (one.psn == psn)
                return &one.original;
        }
        return nullptr;
    }

 private:
    struct result {
        std::uint32_t psn = UINT32_MAX; ///< of no request
        std::uint64_t original = 0;
    };

    std::vector<result> ring_;
    std::uint64_t count_ = 0;
};

} // namespace weftio::roce
