// The slots of a receive queue that nobody has.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weftio::nic {

/// Those given back last go first, because their lines are the likeliest to be in a cache still.
class free_slots {
 public:
    /// None of them is free.
    explicit free_slots(std::uint32_t depth) : slots_(depth) {}

    std::uint32_t count() const noexcept { return count_; }
    /// All of them, the next one first.
    const std::uint16_t* next() const noexcept { return slots_.data() + (slots_.size() - count_); }
    /// The next ones are free no more. @pre there are as many
    void take(std::uint32_t count) noexcept { count_ -= count; }
    /// Gives these back: they go before the others, in this order. @pre no more than were taken
    void put(const std::uint16_t* slots, std::uint32_t count) noexcept
    {
        count_ += count;
        std::copy_n(slots, count, slots_.data() + (slots_.size() - count_));
    }
    void clear() noexcept { count_ = 0; }

 private:
    std::vector<std::uint16_t> slots_; ///< the last `count_`
    std::uint32_t count_ = 0;
};

} // namespace weftio::nic
