// Pieces of one block of memory, freed in the order in which they were taken.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace weftio::nic::soft {

/// Positions are free-running. One thread only.
class byte_ring {
 public:
    byte_ring() = default;
    byte_ring(std::byte* first, std::size_t bytes) noexcept : first_(first), bytes_(bytes) {}

    /// Takes `count` bytes in one piece. nullptr: there is no room before older pieces are freed.
    std::byte* take(std::size_t count) noexcept
    {
        std::uint64_t begin = end_;
        if (const std::size_t left = bytes_ - begin % bytes_; count > left)
            begin += left; // no piece continues at the start
        if (begin + count - free_to_ > bytes_)
            return nullptr;
        end_ = begin + count;
        return first_ + begin % bytes_;
    }
    /// The position behind the last piece.
    std::uint64_t end() const noexcept { return end_; }
    /// Frees all pieces before a position.
    void free_to(std::uint64_t position) noexcept { free_to_ = std::max(free_to_, position); }
    bool empty() const noexcept { return free_to_ == end_; }
    bool holds(const std::uint8_t* at) const noexcept
    {
        const auto* const byte = reinterpret_cast<const std::byte*>(at);
        return byte >= first_ && byte < first_ + bytes_;
    }

 private:
    std::byte* first_ = nullptr;
    std::size_t bytes_ = 1;
    std::uint64_t end_ = 0, free_to_ = 0;
};

} // namespace weftio::nic::soft
