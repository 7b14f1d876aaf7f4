// Deadlines of queues, the earliest first.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace weftio::nic::soft {

/// A binary heap that stores where each queue stands in it, so that the deadline of one queue can be changed or
/// removed.
class deadlines {
 public:
    /// Makes room for queues 1 .. `queues`, so that set() allocates nothing. Throws std::bad_alloc.
    void reserve(std::uint32_t queues)
    {
        heap_.reserve(queues);
        if (queues >= where_.size())
            where_.resize(queues + std::size_t{1}, nowhere);
    }
    bool empty() const noexcept { return heap_.empty(); }
    /// @pre not empty()
    std::uint64_t first_ns() const noexcept { return heap_.front().ns; }
    std::uint32_t first_queue() const noexcept { return heap_.front().queue; }
    /// Sets the deadline of `queue` to `ns`; 0 removes the deadline. @pre reserve() has made room for `queue`
    void set(std::uint32_t queue, std::uint64_t ns) noexcept
    {
        std::uint32_t at = where_[queue];
        if (ns == 0)
            return at == nowhere ? void() : take_out(at);
        if (at == nowhere) {
            at = static_cast<std::uint32_t>(heap_.size());
            heap_.push_back({ns, queue});
            where_[queue] = at;
        }
        heap_[at].ns = ns;
        down(up(at));
    }

 private:
    static constexpr std::uint32_t nowhere = UINT32_MAX;

    struct element {
        std::uint64_t ns;
        std::uint32_t queue;
    };

    void take_out(std::uint32_t at) noexcept
    {
        const auto last = static_cast<std::uint32_t>(heap_.size() - 1);
        swap(at, last);
        where_[heap_[last].queue] = nowhere;
        heap_.pop_back();
        if (at != last)
            down(up(at));
    }
    std::uint32_t up(std::uint32_t at) noexcept
    {
        for (; at != 0 && heap_[at].ns < heap_[(at - 1) / 2].ns; at = (at - 1) / 2)
            swap(at, (at - 1) / 2);
        return at;
    }
    void down(std::uint32_t at) noexcept
    {
        const auto count = static_cast<std::uint32_t>(heap_.size());
        for (std::uint32_t child; (child = 2 * at + 1) < count; at = child) {
            if (child + 1 < count && heap_[child + 1].ns < heap_[child].ns)
                ++child;
            if (heap_[at].ns <= heap_[child].ns)
                return;
            swap(at, child);
        }
    }
    void swap(std::uint32_t one, std::uint32_t other) noexcept
    {
        std::swap(heap_[one], heap_[other]);
        where_[heap_[one].queue] = one;
        where_[heap_[other].queue] = other;
    }

    std::vector<element> heap_;
    std::vector<std::uint32_t> where_; ///< index in heap_ by queue number
};

} // namespace weftio::nic::soft
