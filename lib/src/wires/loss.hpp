// Frames that a wire loses on purpose, so that programs meet what a lossy network does to them.
#pragma once

#include <cstdint>

namespace weftio::wires {

/// Decides frame by frame, by a sequence that the seed fixes.
class loss {
 public:
    /// Loses nothing.
    loss() = default;
    /// @param share  of the frames, 0 to 1
    loss(double share, std::uint64_t seed) noexcept : least_(least_of(share)), state_(seed) {}

    /// Whether any frame is lost.
    bool takes_any() const noexcept { return least_ != 0; }
    /// Whether the next frame is lost.
    bool takes_next() noexcept { return least_ != 0 && next() < least_; }

 private:
    static constexpr std::uint64_t all = std::uint64_t{1} << 32;
    static std::uint64_t least_of(double share) noexcept
    {
        return static_cast<std::uint64_t>(share * static_cast<double>(all));
    }
    /// 32 bits of splitmix64.
    std::uint64_t next() noexcept
    {
        state_ += 0x9e3779b97f4a7c15;
        std::uint64_t mixed = (state_ ^ state_ >> 30) * 0xbf58476d1ce4e5b9;
        mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
        return (mixed ^ mixed >> 31) >> 32;
    }

    std::uint64_t least_ = 0; ///< numbers below it are lost frames
    std::uint64_t state_ = 0;
};

} // namespace weftio::wires
