// How long the peer takes to answer.
#pragma once

#include <algorithm>
#include <cstdint>

#include "net/roce_rules.hpp"

namespace weftio::roce {

/// A smoothed mean and deviation of measured times, as TCP keeps them (RFC 6298). Measures one packet at a time.
class round_trip {
 public:
    /// No limit is lower.
    static constexpr std::uint64_t least_ns = 100'000;

    /// The packet `psn` was sent, and asks for an answer. Not for one whose earlier copy may have arrived: an answer
    /// does not tell which copy it is for.
    void begin(std::uint32_t psn, std::uint64_t now) noexcept
    {
        if (!measures_) {
            psn_ = psn;
            begun_ = now;
            measures_ = true;
        }
    }
    /// The peer has answered everything before `psn`.
    void end(std::uint32_t psn, std::uint64_t now) noexcept
    {
        if (!measures_ || net::psn_distance(psn_, psn) <= 0)
            return;
        measures_ = false;
        doublings_ = 0;
        const std::uint64_t taken = now - std::min(begun_, now);
        if (limit_ != 0) {
            const std::uint64_t off = taken > mean_ ? taken - mean_ : mean_ - taken;
            deviation_ = (3 * deviation_ + off) / 4;
            mean_ = (7 * mean_ + taken) / 8;
        } else {
            mean_ = taken;
            deviation_ = taken / 2;
        }
        limit_ = std::max(least_ns, mean_ + 4 * deviation_);
    }
    /// Packets are sent again.
    void cancel() noexcept { measures_ = false; }
    /// An answer has come to a packet of which copies were sent. It tells no time; the limit doubles until one does.
    /// Otherwise answers that have become slower would be repeated, and so not measured, for ever (Karn and Partridge).
    void back_off() noexcept
    {
        if (doublings_ == most_doublings)
            return;
        ++doublings_;
        limit_ *= 2;
    }
    /// How long an answer takes at most, nearly always; 0: unknown.
    std::uint64_t limit() const noexcept { return limit_; }

 private:
    static constexpr std::uint8_t most_doublings = 4;

    std::uint64_t begun_ = 0, mean_ = 0, deviation_ = 0, limit_ = 0; ///< in nanoseconds
    std::uint32_t psn_ = 0;
    std::uint8_t doublings_ = 0; ///< since the last measured time
    bool measures_ = false;
};

} // namespace weftio::roce
