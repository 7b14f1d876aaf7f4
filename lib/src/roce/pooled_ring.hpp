// A ring in pool memory: it grows with the items in flight, and has no memory when there are none.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

#include "roce/block_pool.hpp"

namespace weftio::roce {

/// Items by free-running number. @tparam least  capacity of the ring when it first gets memory
template <class T, std::uint32_t least>
class pooled_ring {
    static_assert(std::is_trivially_copyable_v<T> && std::has_single_bit(least));

 public:
    /// @param pool  must outlive this
    explicit pooled_ring(block_pool& pool) noexcept : pool_(pool) {}
    pooled_ring(const pooled_ring&) = delete;
    pooled_ring& operator=(const pooled_ring&) = delete;
    ~pooled_ring() { release(); }

    /// Capacity in items: 0 or a power of two.
    std::uint32_t capacity() const noexcept { return capacity_; }
    /// @pre one of the last capacity() numbers
    T& operator[](std::uint32_t number) noexcept { return items_[number & (capacity_ - 1)]; }
    const T& operator[](std::uint32_t number) const noexcept { return items_[number & (capacity_ - 1)]; }
    /// Makes room for `count` items. Keeps the items in [first, end), but may move them.
    /// @return false: there is no memory, and nothing has changed
    bool reserve(std::uint32_t count, std::uint32_t first, std::uint32_t end) noexcept
    {
        return count <= capacity_ || grow(std::bit_ceil(std::max(count, least)), first, end);
    }
    /// Returns the memory to the pool. All items are lost.
    void release() noexcept
    {
        if (capacity_ != 0)
            pool_.give_back(items_, bytes_of(capacity_));
        items_ = nullptr;
        capacity_ = 0;
    }

 private:
    static std::size_t bytes_of(std::uint32_t capacity) noexcept
    {
        return std::max(std::bit_ceil(capacity * sizeof(T)), block_pool::least_bytes);
    }
    /// Rarely called: kept out of line of the functions that run for each message.
    [[gnu::noinline]] bool grow(std::uint32_t capacity, std::uint32_t first, std::uint32_t end) noexcept
    {
        const std::size_t bytes = bytes_of(capacity);
        T* const wider = bytes > block_pool::most_bytes ? nullptr : static_cast<T*>(pool_.take(bytes));
        if (wider == nullptr)
            return false;
        for (std::uint32_t number = first; number != end && capacity_ != 0; ++number)
            new (&wider[number & (capacity - 1)]) T((*this)[number]);
        release();
        items_ = wider;
        capacity_ = capacity;
        return true;
    }

    block_pool& pool_;
    T* items_ = nullptr;
    std::uint32_t capacity_ = 0;
};

} // namespace weftio::roce
