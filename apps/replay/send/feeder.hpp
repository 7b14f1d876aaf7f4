// Reads, plans and edits frames, and keeps the conveyor full.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "reader/playlist.hpp"
#include "send/conveyor.hpp"
#include "send/edit.hpp"
#include "send/filter.hpp"
#include "send/plan.hpp"
#include "send/split.hpp"

namespace weftio::replay {

struct feed_options {
    plan_options timing{};
    std::uint64_t loops = 1;       ///< 0: without end
    std::uint64_t limit = 0;       ///< frames; 0: all
    std::uint64_t duration_ns = 0; ///< length of the plan from the anchor; 0: all
    bool preload = false;          ///< read all frames before the first is sent
    split_options split{};         ///< with a rule, only frames for `own` are sent; the others are planned only
    side own = side::first;
    bool laps = false; ///< preloaded and untimed: the kernel repeats the frames by itself
};

/// Planned and sent frames of a file.
struct file_account {
    std::uint64_t planned = 0, planned_bytes = 0; ///< frames put on the conveyor
    std::uint64_t sent = 0, sent_bytes = 0;
    std::array<std::uint64_t, static_cast<std::size_t>(skip_reason::count_)> skipped{};
    std::uint64_t cut = 0;      ///< planned frames that the capture has truncated
    std::uint64_t with_fcs = 0; ///< planned frames whose frame check sequence was removed
    std::uint64_t clamped = 0;  ///< planned frames whose time does not fit 64 bits of nanoseconds
    std::uint64_t first_seen_ns = 0, last_seen_ns = 0; ///< UTC; untimed runs: when the feeder noticed sent frames

    /// Frames that could not be sent, without those that the user left out.
    std::uint64_t skipped_total() const noexcept;
};

/// Feeds a conveyor from a playlist.
///
/// - Threads: run() has a thread of its own; read the accounts after it has returned.
class feeder {
 public:
    feeder(conveyor& to, playlist& from, frame_filter& filter, editor& edits, const feed_options& options);

    /// Reads all frames into the arena. Returns false if they do not fit, or after a stop.
    bool preload(const std::atomic<bool>& stop);
    /// Feeds until the end of the plan or until `stop`. Blocks; sleeps while there is nothing to do.
    void run(const std::atomic<bool>& stop);
    /// Completes the accounts after run(). Counts frames sent since, and removes unsent frames from the plan: those
    /// planned after `end_ns` (UTC), and in an untimed run all, unless the port `failed`.
    void close_accounts(std::uint64_t end_ns, bool failed);

    const std::vector<file_account>& accounts() const noexcept { return accounts_; }
    std::uint64_t out_of_order() const noexcept { return plan_.out_of_order(); }
    std::uint64_t loops_begun() const noexcept { return pass_ + 1; }
    /// Frames planned so far; once the plan has been read to its end, frames of the whole plan.
    std::uint64_t planned() const noexcept { return planned_; }
    /// Estimated frames of the whole plan; 0 while unknown. Any thread.
    std::uint64_t expected_frames() const noexcept { return expected_frames_.load(std::memory_order_relaxed); }
    std::uint64_t expected_ns() const noexcept { return expected_ns_.load(std::memory_order_relaxed); }
    /// Planned UTC of the next unpublished frame; 0 if there is none. Any thread.
    std::uint64_t next_ns() const noexcept { return next_ns_.load(std::memory_order_relaxed); }
    bool finished() const noexcept { return finished_.load(std::memory_order_acquire); }

 private:
    struct stored_frame {
        std::uint32_t place, bytes, file;
        std::int64_t time_ns;
        bool has_time, begins_file;
    };
    enum class step { put, full, end };
    enum class found { mine, others, none };

    step feed_one();
    step feed_stored();
    step feed_read();
    found find_item();
    bool next_pass();
    bool at_limit() const noexcept { return options_.limit != 0 && planned_ + others_ >= options_.limit; }
    bool within_plan(std::uint64_t offset_ns) const noexcept
    {
        return options_.duration_ns == 0 || offset_ns < options_.duration_ns;
    }
    bool out_of_time() const;
    void account(const conveyor::remark& done);
    void put(std::uint32_t place, std::uint32_t bytes, std::uint64_t offset_ns, std::size_t file);
    void note(const playlist::item& of) noexcept;
    double share_planned(bool all) const;
    void look_ahead(bool all);
    void skip(std::size_t file, skip_reason reason);
    void run_laps(const std::atomic<bool>& stop);
    void account_laps();

    conveyor& to_;
    playlist& from_;
    frame_filter& filter_;
    editor& edits_;
    feed_options options_;
    plan plan_;
    std::vector<file_account> accounts_;
    std::vector<stored_frame> stored_;
    std::size_t stored_at_ = 0;
    playlist::item item_;
    splitter splitter_;
    bool has_item_ = false, mine_ = true;
    bool any_in_pass_ = false;
    std::uint64_t pass_ = 0, planned_ = 0, last_offset_ns_ = 0, others_ = 0;
    std::chrono::steady_clock::time_point end_{}; ///< end of an untimed run with a duration
    std::atomic<std::uint64_t> expected_frames_{0}, expected_ns_{0}, next_ns_{0};
    std::atomic<bool> finished_{false};
};

} // namespace weftio::replay
