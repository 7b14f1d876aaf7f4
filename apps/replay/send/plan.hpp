// When each frame goes, counted from one anchor for the whole run.
#pragma once

#include <cstdint>

namespace weftio::replay {

enum class pace {
    capture,   ///< the gaps of the capture
    frames,    ///< so many frames a second
    bits,      ///< so many bits a second
    top_speed, ///< no times at all
};

struct plan_options {
    pace by = pace::capture;
    double multiplier = 1;        ///< capture: this many times as fast
    double per_second = 0;        ///< frames or bits a second
    std::uint64_t max_gap_ns = 0; ///< capture: longer gaps of the plan are cut to this; 0: none is
};

/// Turns capture times into offsets from an anchor. Offsets never decrease, and nothing is ever rounded twice: each is
/// worked out from sums that are exact, so the last frame of a long run is as exact as the first.
class plan {
 public:
    explicit plan(const plan_options& options) : options_(options) {}

    /// Nanoseconds from the anchor to the next frame.
    ///
    /// A frame older than the one before is sent in file order, at the time of the latest before it. One that is more
    /// than a second older starts a new count from there: a clock was set back.
    std::uint64_t next(std::int64_t time_ns, bool has_time, std::uint32_t bytes);
    /// The next frame begins another file, or another pass: it goes at the time of the one before.
    void next_file() noexcept { started_ = false; }
    /// Frames older than one before them in their file.
    std::uint64_t out_of_order() const noexcept { return out_of_order_; }

 private:
    void advance(std::int64_t time_ns);

    plan_options options_;
    std::uint64_t elapsed_ns_ = 0; ///< of the capture, cut gaps left out; at most 2^63 - 1
    std::uint64_t frames_ = 0, bytes_ = 0, out_of_order_ = 0;
    std::int64_t latest_ns_ = 0;
    bool started_ = false;
};

} // namespace weftio::replay
