// Timestamps of any resolution as nanoseconds.
#pragma once

#include <cstdint>
#include <limits>

namespace weftio::replay {

/// What a pcapng interface counts time in (draft-ietf-opsawg-pcapng, if_tsresol and if_tsoffset).
class ticks {
 public:
    ticks() noexcept : ticks(6, 0) {}
    /// @param resolution  bit 7 clear: 10^-n seconds, set: 2^-n seconds; n is the rest
    /// @param offset_s    seconds to add to every time
    ticks(std::uint8_t resolution, std::int64_t offset_s) noexcept : resolution_(resolution), offset_s_(offset_s) {}

    /// Rounded down, and clamped to what 64 bits hold (years 1677 to 2262).
    std::int64_t to_ns(std::uint64_t count) const noexcept;
    /// Whether to_ns() gave a bound instead of the time.
    static bool clamped(std::int64_t ns) noexcept
    {
        return ns == std::numeric_limits<std::int64_t>::max() || ns == std::numeric_limits<std::int64_t>::min();
    }

 private:
    std::uint8_t resolution_;
    std::int64_t offset_s_;
};

} // namespace weftio::replay
