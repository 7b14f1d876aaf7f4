// Latencies of many operations.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace weftio::files {

/// Counts by latency, 3 % apart at most.
class latencies {
 public:
    void add(std::uint64_t ns, std::uint64_t count = 1) noexcept
    {
        counts_[bucket_of(ns)] += count;
        all_ += count;
        most_ = std::max(most_, ns);
    }
    void add(const latencies& other) noexcept
    {
        for (std::size_t i = 0; i < counts_.size(); ++i)
            counts_[i] += other.counts_[i];
        all_ += other.all_;
        most_ = std::max(most_, other.most_);
    }
    /// The latency that a part of the operations, 0 to 1, does not exceed; 0 without operations.
    std::uint64_t quantile_ns(double part) const noexcept
    {
        const auto wanted = static_cast<std::uint64_t>(part * static_cast<double>(all_));
        std::uint64_t seen = 0;
        for (std::size_t i = 0; i < counts_.size(); ++i)
            if (seen += counts_[i]; counts_[i] != 0 && seen >= std::max<std::uint64_t>(wanted, 1))
                return std::min(most_of(i), most_);
        return 0;
    }
    std::uint64_t max_ns() const noexcept { return most_; }

 private:
    static constexpr unsigned fine = 5; ///< 32 buckets for each power of two

    static std::size_t bucket_of(std::uint64_t ns) noexcept
    {
        const unsigned bits = static_cast<unsigned>(std::bit_width(ns));
        if (bits <= fine + 1)
            return ns;
        const unsigned shift = bits - fine - 1;
        return (std::size_t{shift} << fine) + (ns >> shift);
    }
    static std::uint64_t most_of(std::size_t bucket) noexcept
    {
        if (bucket < (2u << fine))
            return bucket;
        const std::size_t shift = (bucket >> fine) - 1;
        return (((bucket - (shift << fine)) + 1) << shift) - 1;
    }

    std::array<std::uint64_t, (64 - fine + 1) << fine> counts_{};
    std::uint64_t all_ = 0, most_ = 0;
};

} // namespace weftio::files
