// Detects that an engine's thread shares its core with other threads that are ready to run.
#pragma once

#include <algorithm>
#include <cstdint>

#include <rte_cycles.h>

namespace weftio::nic::soft {

/// The engine's thread calls it in idle turns. Consecutive idle turns without a sleep are less than a microsecond
/// apart, unless another thread had the core in between.
class crowd {
 public:
    /// Whether another thread had the core lately: within the last 1/20 s. This time doubles, up to 1 s, when it
    /// happens again soon after. @param idle_turns  number of consecutive idle turns, from 1
    bool is_there(unsigned idle_turns) noexcept
    {
        constexpr std::uint64_t gaps_of_a_second = 5000; // a time slice is longer than 200 us, an interrupt shorter
        const std::uint64_t now = rte_rdtsc(), second = rte_get_tsc_hz();
        if (idle_turns > 1 && last_ != 0 && now - last_ > second / gaps_of_a_second) {
            length_ = now - until_ < length_ ? std::min(2 * length_, second) : second / 20;
            until_ = now + length_;
        }
        last_ = now;
        return now < until_;
    }
    /// The thread has slept: the time until the next turn is not measured.
    void slept() noexcept { last_ = 0; }

 private:
    std::uint64_t last_ = 0;   ///< time of the last call; 0: the thread has slept since
    std::uint64_t until_ = 0;  ///< end of the time during which is_there() is true
    std::uint64_t length_ = 0; ///< length of that time
};

} // namespace weftio::nic::soft
