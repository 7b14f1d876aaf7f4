// Notices that an engine's thread shares its core with threads that want it.
#pragma once

#include <algorithm>
#include <cstdint>

#include <rte_cycles.h>

namespace weftio::nic::soft {

/// The engine's thread asks in its idle turns. Two of them that follow each other without a sleep are less than a
/// microsecond apart, unless another thread has had the core meanwhile.
class crowd {
 public:
    /// Whether another thread has had the core lately: for a twentieth of a second after it has, and for twice as long, up
    /// to a second, when it has it again soon after. @param idle_turns  that follow each other, from 1
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
    /// The thread has slept: the time until the next turn tells nothing.
    void slept() noexcept { last_ = 0; }

 private:
    std::uint64_t last_ = 0;   ///< when it was asked last; 0: the thread has slept since
    std::uint64_t until_ = 0;  ///< the end of the time in which there is a crowd
    std::uint64_t length_ = 0; ///< of that time
};

} // namespace weftio::nic::soft
