// Plans when each frame is sent, counted from one anchor for the whole run.
#pragma once

#include <cstdint>

namespace weftio::replay {

enum class pace {
    capture,   ///< the gaps of the capture
    frames,    ///< a constant number of frames a second
    bits,      ///< a constant number of bits a second
    top_speed, ///< no times
};

struct plan_options {
    pace by = pace::capture;
    double multiplier = 1;        ///< capture: speed relative to the capture
    double per_second = 0;        ///< frames or bits a second
    std::uint64_t max_gap_ns = 0; ///< capture: longer gaps are cut to this; 0: none is
};

/// Converts capture times to offsets from an anchor. Offsets never decrease. Each is computed from exact sums and
/// rounded once, so the last frame of a long run is as exact as the first.
class plan {
 public:
    explicit plan(const plan_options& options) : options_(options) {}

    /// Returns nanoseconds from the anchor to the next frame.
    ///
    /// A frame older than an earlier one is sent in file order, at the time of the latest frame before it. A frame more
    /// than a second older means that the clock was set back: gaps count from it onwards.
    std::uint64_t next(std::int64_t time_ns, bool has_time, std::uint32_t bytes);
    /// The next frame begins another file or pass, and is sent at the time of the frame before it.
    void next_file() noexcept { started_ = false; }
    /// Number of frames older than an earlier frame of their file.
    std::uint64_t out_of_order() const noexcept { return out_of_order_; }

 private:
    void advance(std::int64_t time_ns);

    plan_options options_;
    std::uint64_t elapsed_ns_ = 0; ///< capture time so far, without cut gaps; at most 2^63 - 1
    std::uint64_t frames_ = 0, bytes_ = 0, out_of_order_ = 0;
    std::int64_t latest_ns_ = 0;
    bool started_ = false;
};

} // namespace weftio::replay
