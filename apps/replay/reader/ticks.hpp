// Converts timestamps of any resolution to nanoseconds.
#pragma once

#include <cstdint>
#include <limits>

namespace weftio::replay {

/// The time unit of a pcapng interface (draft-ietf-opsawg-pcapng, if_tsresol and if_tsoffset).
class ticks {
 public:
    ticks() noexcept : ticks(6, 0) {}
    /// @param resolution  bit 7 clear: 10^-n seconds, set: 2^-n seconds; n is the rest
    /// @param offset_s    seconds to add to every time
    ticks(std::uint8_t resolution, std::int64_t offset_s) noexcept : resolution_(resolution), offset_s_(offset_s) {}

    /// Converts to nanoseconds, rounded down and clamped to 64 bits (years 1677 to 2262).
    std::int64_t to_ns(std::uint64_t count) const noexcept;
    /// Whether to_ns() returned a limit instead of the time.
    static bool clamped(std::int64_t ns) noexcept
    {
        return ns == std::numeric_limits<std::int64_t>::max() || ns == std::numeric_limits<std::int64_t>::min();
    }

 private:
    std::uint8_t resolution_;
    std::int64_t offset_s_;
};

} // namespace weftio::replay
