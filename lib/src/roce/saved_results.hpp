// Saved results of atomics: a repeated atomic is answered from here and not executed again (IBTA 9.4.5).
#pragma once

#include <algorithm>
#include <cstdint>

#include "roce/pooled_ring.hpp"

namespace weftio::roce {

/// Keeps the last `most` results. A peer has at most that many atomics in flight, so it never asks for an older one.
/// Memory is allocated for the first result.
class saved_results {
 public:
    saved_results(std::uint32_t most, block_pool& pool) noexcept : most_(most), ring_(pool) {}

    /// Raises the limit to `most`. A lower value changes nothing.
    void allow(std::uint32_t most) noexcept { most_ = std::max(most_, most); }
    /// @return false: there is no memory for a result
    bool make_room() noexcept { return ring_.reserve(std::max(most_, least), end_ - known_, end_); }
    /// @pre make_room()
    void save(std::uint32_t psn, std::uint64_t original) noexcept
    {
        ring_[end_++] = {psn, original};
        known_ = std::min(known_ + 1, most_);
    }
    /// The result of the atomic with this PSN; nullptr: unknown. Searches from the newest, because PSNs wrap around.
    const std::uint64_t* find(std::uint32_t psn) const noexcept
    {
        for (std::uint32_t back = 1; back <= known_; ++back)
            if (const result& one = ring_[end_ - back]; one.psn == psn)
                return &one.original;
        return nullptr;
    }
    /// Forgets all results, and returns the memory to the pool.
    void clear() noexcept
    {
        ring_.release();
        known_ = 0;
    }

 private:
    struct result {
        std::uint32_t psn;
        std::uint64_t original;
    };
    static constexpr std::uint32_t least = 4;

    std::uint32_t most_;
    pooled_ring<result, least> ring_;
    std::uint32_t end_ = 0;   ///< results saved so far, free-running
    std::uint32_t known_ = 0; ///< how many of the last results are kept
};

} // namespace weftio::roce
