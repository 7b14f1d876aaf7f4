// Host memory for staged copies, in blocks that are freed in any order.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace weftio::nic::soft {

class staging_blocks;

/// A share in a block of memory, or in none. The last share that goes returns the block. One thread only: shares are
/// counted without atomic instructions.
class staging_block {
 public:
    staging_block() = default;
    staging_block(const staging_block& other) noexcept;
    staging_block(staging_block&& other) noexcept : of_(std::exchange(other.of_, nullptr)), unit_(other.unit_) {}
    staging_block& operator=(staging_block other) noexcept
    {
        std::swap(of_, other.of_);
        std::swap(unit_, other.unit_);
        return *this;
    }
    ~staging_block();

    explicit operator bool() const noexcept { return of_ != nullptr; }
    bool operator==(const staging_block& other) const noexcept
    {
        return of_ == other.of_ && (of_ == nullptr || unit_ == other.unit_);
    }
    /// @pre it is a share in a block
    std::byte* first() const noexcept;
    std::size_t bytes() const noexcept;

 private:
    friend staging_blocks;
    /// Takes over a share that is counted already.
    staging_block(staging_blocks& of, std::uint32_t unit) noexcept : of_(&of), unit_(unit) {}

    staging_blocks* of_ = nullptr;
    std::uint32_t unit_ = 0; ///< the first of the block
};

/// Hands out blocks of 1 to 16 units. One thread only; must outlive its blocks.
class staging_blocks {
 public:
    static constexpr std::size_t unit = 4096, most_units = 16, most_bytes = most_units * unit;
    /// A block that is larger than it must be takes at most this part of what is free, so that all users get some.
    static constexpr std::size_t share_of_free = 64;

    /// @param bytes  a multiple of 64 units
    staging_blocks(std::byte* first, std::size_t bytes)
        : first_(first), busy_(bytes / unit / units_per_word), blocks_(bytes / unit), free_(bytes / unit)
    {}
    staging_blocks(const staging_blocks&) = delete;
    staging_blocks& operator=(const staging_blocks&) = delete;

    /// Takes a block of at least `least` bytes, and of up to `wanted` while there is much room.
    /// @pre 0 < least <= most_bytes  @return none: there is no room before other blocks are freed
    staging_block take(std::size_t least, std::size_t wanted) noexcept
    {
        const std::size_t fewest = units_of(least);
        std::size_t units = std::min(units_of(std::min(wanted, most_bytes)), std::bit_floor(free_ / share_of_free));
        for (units = std::max(units, fewest); units >= fewest; units /= 2)
            for (std::uint32_t word = 0; word != busy_.size(); ++word)
                if (const std::uint64_t starts = starts_of(~busy_[word], units); starts != 0)
                    return make(word * units_per_word + static_cast<std::uint32_t>(std::countr_zero(starts)), units);
        return {};
    }
    /// A share in the block that has the byte at this address; none: nobody has it.
    staging_block holder(const std::uint8_t* at) noexcept
    {
        const std::size_t offset = reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(first_);
        for (std::size_t units = 1; offset / unit < blocks_.size() && units <= most_units; units *= 2)
            if (const std::size_t head = offset / unit & ~(units - 1); blocks_[head].units == units) {
                ++blocks_[head].shares;
                return {*this, static_cast<std::uint32_t>(head)};
            }
        return {};
    }

 private:
    friend staging_block;
    static constexpr std::uint32_t units_per_word = 64;

    struct block {
        std::uint32_t units = 0; ///< 0: none begins here
        std::uint32_t shares = 0;
    };

    static std::size_t units_of(std::size_t bytes) noexcept { return std::bit_ceil((bytes + unit - 1) / unit); }
    /// The bits at which as many free units begin, at a multiple of their number.
    static std::uint64_t starts_of(std::uint64_t free, std::size_t units) noexcept
    {
        constexpr std::array<std::uint64_t, 5> aligned{~std::uint64_t{0}, 0x5555555555555555, 0x1111111111111111,
                                                       0x0101010101010101, 0x0001000100010001};
        for (std::size_t some = 1; some < units; some *= 2)
            free &= free >> some;
        return free & aligned[static_cast<std::size_t>(std::countr_zero(units))];
    }
    staging_block make(std::uint32_t at, std::size_t units) noexcept
    {
        blocks_[at] = {static_cast<std::uint32_t>(units), 1};
        mark(at, units);
        free_ -= units;
        return {*this, at};
    }
    void give_back(std::uint32_t at) noexcept
    {
        if (--blocks_[at].shares != 0)
            return;
        const std::uint32_t units = std::exchange(blocks_[at].units, 0);
        mark(at, units);
        free_ += units;
    }
    void mark(std::uint32_t at, std::size_t units) noexcept
    {
        busy_[at / units_per_word] ^= ((std::uint64_t{1} << units) - 1) << at % units_per_word;
    }

    std::byte* const first_;
    std::vector<std::uint64_t> busy_; ///< a bit for each unit
    std::vector<block> blocks_;       ///< by their first unit
    std::size_t free_;                ///< units
};

inline staging_block::staging_block(const staging_block& other) noexcept : of_(other.of_), unit_(other.unit_)
{
    if (of_ != nullptr)
        ++of_->blocks_[unit_].shares;
}

inline staging_block::~staging_block()
{
    if (of_ != nullptr)
        of_->give_back(unit_);
}

inline std::byte* staging_block::first() const noexcept
{
    return of_->first_ + unit_ * staging_blocks::unit;
}

inline std::size_t staging_block::bytes() const noexcept
{
    return of_->blocks_[unit_].units * staging_blocks::unit;
}

} // namespace weftio::nic::soft
