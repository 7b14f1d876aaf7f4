// Memory for the requests and answers in flight of many connections.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace weftio::roce {

/// Blocks whose size is a power of two. A returned block is kept for the next take() of the same size, so a warm pool
/// allocates nothing. One thread only; never throws.
class block_pool {
 public:
    static constexpr std::size_t least_bytes = 64, most_bytes = 65536;

    /// @param limit  most bytes to allocate from the system
    explicit block_pool(std::size_t limit = SIZE_MAX) noexcept : left_(limit) {}
    block_pool(const block_pool&) = delete;
    block_pool& operator=(const block_pool&) = delete;
    /// @pre every block has been given back
    ~block_pool()
    {
        for (spare* first : spares_)
            while (first != nullptr)
                ::operator delete(std::exchange(first, first->next));
    }

    /// Returns nullptr when there is no memory. @pre bytes is a power of two from least_bytes to most_bytes
    void* take(std::size_t bytes) noexcept
    {
        spare*& first = spares_of(bytes);
        void* block = first;
        if (first != nullptr)
            first = first->next;
        else if (bytes <= left_ && (block = ::operator new(bytes, std::nothrow)) != nullptr)
            left_ -= bytes;
        in_use_ += block != nullptr ? bytes : 0;
        return block;
    }
    /// @param bytes  the value that was passed to take()
    void give_back(void* block, std::size_t bytes) noexcept
    {
        spare*& first = spares_of(bytes);
        first = new (block) spare{first};
        in_use_ -= bytes;
    }
    /// Bytes in blocks that were taken and not given back.
    std::size_t in_use() const noexcept { return in_use_; }

 private:
    struct spare {
        spare* next;
    };
    static constexpr int smallest = std::countr_zero(least_bytes);

    spare*& spares_of(std::size_t bytes) noexcept
    {
        return spares_[static_cast<std::size_t>(std::countr_zero(bytes) - smallest)];
    }

    std::array<spare*, std::countr_zero(most_bytes) - smallest + 1> spares_{}; ///< by size
    std::size_t left_;
    std::size_t in_use_ = 0;
};

} // namespace weftio::roce
