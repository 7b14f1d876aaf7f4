// The thread that reads, plans and edits frames, and keeps the conveyor full.
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
    std::uint64_t duration_ns = 0; ///< of the plan, from the anchor; 0: all
    bool preload = false;          ///< read everything once, before the first frame goes
    split_options split{};         ///< with a rule: frames of `own` are sent, the others only take their time
    side own = side::first;
    bool laps = false; ///< preloaded and untimed: the kernel goes round by itself
};

/// What was to be sent of a file, and what was.
struct file_account {
    std::uint64_t planned = 0, planned_bytes = 0; ///< frames put on the conveyor
    std::uint64_t sent = 0, sent_bytes = 0;
    std::array<std::uint64_t, static_cast<std::size_t>(skip_reason::count_)> skipped{};
    std::uint64_t cut = 0;                             ///< planned frames that the capture has only a part of
    std::uint64_t clamped = 0;                         ///< planned frames whose time 64 bits of nanoseconds do not hold
    std::uint64_t first_seen_ns = 0, last_seen_ns = 0; ///< UTC; untimed runs: when sent frames were taken back

    /// Frames that could not be sent; those that the user left out are not among them.
    std::uint64_t skipped_total() const noexcept;
};

/// Feeds a conveyor from a playlist.
///
/// - Threads: run() in one of its own; the accounts are read after it has returned.
class feeder {
 public:
    feeder(conveyor& to, playlist& from, frame_filter& filter, editor& edits, const feed_options& options);

    /// Reads all frames into the arena, which must be large enough for them. Returns false where it is not, or once
    /// stopped.
    bool preload(const std::atomic<bool>& stop);
    /// Feeds until the end of the plan, or until `stop`. Blocks; sleeps while there is nothing to do.
    void run(const std::atomic<bool>& stop);
    /// Accounts for what was sent since. What was to go after `end_ns` (UTC) is taken out of the plan; so is, unless
    /// the port `failed`, what an untimed run had not sent. After run().
    void settle(std::uint64_t end_ns, bool failed);

    const std::vector<file_account>& accounts() const noexcept { return accounts_; }
    std::uint64_t out_of_order() const noexcept { return plan_.out_of_order(); }
    std::uint64_t loops_begun() const noexcept { return pass_ + 1; }
    /// Frames of the whole plan, once it has been read to its end; of an endless one, what was planned so far.
    std::uint64_t planned() const noexcept { return planned_; }
    /// What the plan comes to, as far as can be told; 0 while that is unknown. From any thread.
    std::uint64_t expected_frames() const noexcept { return expected_frames_.load(std::memory_order_relaxed); }
    std::uint64_t expected_ns() const noexcept { return expected_ns_.load(std::memory_order_relaxed); }
    /// When the next frame goes that the kernel has not been given yet, UTC; 0: there is none. From any thread.
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
    void settle_laps();

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
    std::chrono::steady_clock::time_point end_{}; ///< of an untimed run with a duration
    std::atomic<std::uint64_t> expected_frames_{0}, expected_ns_{0}, next_ns_{0};
    std::atomic<bool> finished_{false};
};

} // namespace weftio::replay
