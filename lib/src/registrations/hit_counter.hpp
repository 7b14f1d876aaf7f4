// A count to which many threads add at once.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace weftio::registrations {

/// Each of the first threads adds in a cache line of its own, without an atomic operation that others could wait for.
///
/// - Threads: any. sum() is exact once the calls of add() have returned.
class hit_counter {
 public:
    void add() noexcept
    {
        thread_local owned_stripe own;
        std::atomic<std::uint64_t>& count = stripes_[own.number].count;
        if (own.number != shared) [[likely]]
            count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        else
            count.fetch_add(1, std::memory_order_relaxed);
    }
    std::uint64_t sum() const noexcept
    {
        std::uint64_t all = 0;
        for (const stripe& each : stripes_)
            all += each.count.load(std::memory_order_relaxed);
        return all;
    }

 private:
    static constexpr unsigned shared = 16; ///< the stripe of threads that have none

    /// The number of a stripe, in all counters, that one living thread has.
    struct owned_stripe {
        /// Acquire, pairs with the release of the thread that had the stripe before.
        owned_stripe() noexcept
        {
            std::uint32_t before = taken.load(std::memory_order_relaxed);
            do
                number = static_cast<unsigned>(std::countr_one(before));
            while (number != shared &&
                   !taken.compare_exchange_weak(before, before | 1u << number, std::memory_order_acquire,
                                                std::memory_order_relaxed));
        }
        owned_stripe(const owned_stripe&) = delete;
        owned_stripe& operator=(const owned_stripe&) = delete;
        ~owned_stripe()
        {
            if (number != shared)
                taken.fetch_and(~(1u << number), std::memory_order_release);
            number = shared; // for destructors of the thread that run later
        }

        static inline std::atomic<std::uint32_t> taken{0}; ///< bits of numbers
        unsigned number = shared;
    };
    struct alignas(64) stripe {
        std::atomic<std::uint64_t> count{0};
    };

    std::array<stripe, shared + 1> stripes_;
};

} // namespace weftio::registrations
