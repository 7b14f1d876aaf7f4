// The free slots of a receive queue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weftio::nic::soft {

/// Slots that put() has returned are used first, because their cache lines are most likely still in a cache.
class free_slots {
 public:
    /// Starts with no free slot.
    explicit free_slots(std::uint32_t depth) : slots_(depth) {}

    std::uint32_t count() const noexcept { return count_; }
    /// The free slots, count() of them, in the order in which they are filled.
    const std::uint16_t* next() const noexcept { return slots_.data() + (slots_.size() - count_); }
    /// Removes the next `count` slots. @pre count <= count()
    void take(std::uint32_t count) noexcept { count_ -= count; }
    /// Adds slots in front of the others, in the given order. @pre no more than were taken
    void put(const std::uint16_t* slots, std::uint32_t count) noexcept
    {
        count_ += count;
        std::copy_n(slots, count, slots_.data() + (slots_.size() - count_));
    }
    /// Adds slots behind the others, in the given order. @pre no more than were taken
    void put_behind(const std::uint16_t* slots, std::uint32_t count) noexcept
    {
        const auto end = slots_.end();
        std::copy(end - count_, end, end - count_ - count);
        std::copy_n(slots, count, end - count);
        count_ += count;
    }
    void clear() noexcept { count_ = 0; }

 private:
    std::vector<std::uint16_t> slots_; ///< the free slots are the last count_ elements
    std::uint32_t count_ = 0;
};

} // namespace weftio::nic::soft
