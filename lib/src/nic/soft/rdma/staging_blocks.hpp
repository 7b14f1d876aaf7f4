// Host memory for staged copies, in blocks that are freed in any order.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weftio::nic::soft {

class staging_blocks;

/// Bytes that belong to whoever holds a pointer to the block. The last one returns them.
class staging_block : public std::enable_shared_from_this<staging_block> {
 public:
    /// See staging_blocks::take().
    staging_block(staging_blocks& of, std::uint32_t unit, std::uint32_t units) noexcept;
    staging_block(const staging_block&) = delete;
    staging_block& operator=(const staging_block&) = delete;
    ~staging_block();

    std::byte* first() const noexcept;
    std::size_t bytes() const noexcept;

 private:
    staging_blocks& of_;
    const std::uint32_t unit_, units_;
};

/// Hands out blocks of 1 to 16 units. One thread only; must outlive its blocks.
class staging_blocks {
 public:
    static constexpr std::size_t unit = 4096, most_units = 16, most_bytes = most_units * unit;
    /// A block that is larger than it must be takes at most this part of what is free, so that all users get some.
    static constexpr std::size_t share_of_free = 64;

    /// @param bytes  a multiple of 64 units
    staging_blocks(std::byte* first, std::size_t bytes)
        : first_(first), busy_(bytes / unit / units_per_word), users_(bytes / unit), free_(bytes / unit)
    {}
    staging_blocks(const staging_blocks&) = delete;
    staging_blocks& operator=(const staging_blocks&) = delete;

    /// Takes a block of at least `least` bytes, and of up to `wanted` while there is much room.
    /// @pre 0 < least <= most_bytes  @return nullptr: there is no room before other blocks are freed
    std::shared_ptr<staging_block> take(std::size_t least, std::size_t wanted)
    {
        const std::size_t fewest = units_of(least);
        std::size_t units = std::min(units_of(std::min(wanted, most_bytes)), std::bit_floor(free_ / share_of_free));
        for (units = std::max(units, fewest); units >= fewest; units /= 2)
            for (std::uint32_t word = 0; word != busy_.size(); ++word)
                if (const std::uint64_t starts = starts_of(~busy_[word], units); starts != 0)
                    return make(word * units_per_word + static_cast<std::uint32_t>(std::countr_zero(starts)), units);
        return nullptr;
    }
    /// The block that has the byte at this address; nullptr: none.
    std::shared_ptr<staging_block> holder(const std::uint8_t* at) const noexcept
    {
        const std::size_t offset = reinterpret_cast<std::uintptr_t>(at) - reinterpret_cast<std::uintptr_t>(first_);
        staging_block* const user = offset / unit < users_.size() ? users_[offset / unit] : nullptr;
        return user == nullptr ? nullptr : user->shared_from_this();
    }

 private:
    friend staging_block;
    static constexpr std::uint32_t units_per_word = 64;

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
    std::shared_ptr<staging_block> make(std::uint32_t at, std::size_t units)
    {
        return std::make_shared<staging_block>(*this, at, static_cast<std::uint32_t>(units));
    }
    void change(std::uint32_t at, std::uint32_t units, staging_block* to) noexcept
    {
        std::fill_n(users_.begin() + at, units, to);
        const std::uint64_t bits = ((std::uint64_t{1} << units) - 1) << at % units_per_word;
        busy_[at / units_per_word] ^= bits;
        free_ = to != nullptr ? free_ - units : free_ + units;
    }

    std::byte* const first_;
    std::vector<std::uint64_t> busy_;   ///< a bit for each unit
    std::vector<staging_block*> users_; ///< by unit; nullptr: it is free
    std::size_t free_;                  ///< units
};

inline staging_block::staging_block(staging_blocks& of, std::uint32_t unit, std::uint32_t units) noexcept
    : of_(of), unit_(unit), units_(units)
{
    of_.change(unit_, units_, this);
}

inline staging_block::~staging_block()
{
    of_.change(unit_, units_, nullptr);
}

inline std::byte* staging_block::first() const noexcept
{
    return of_.first_ + unit_ * staging_blocks::unit;
}

inline std::size_t staging_block::bytes() const noexcept
{
    return units_ * staging_blocks::unit;
}

} // namespace weftio::nic::soft
