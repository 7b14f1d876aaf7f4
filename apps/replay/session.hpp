// Runs a replay, from opened files to a report.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "reader/playlist.hpp"
#include "report/progress.hpp"
#include "report/report.hpp"
#include "send/edit.hpp"
#include "send/feeder.hpp"

namespace weftio::replay {

struct session_options {
    std::vector<std::string> files{};
    order files_by = order::in_sequence;
    std::string port{}, device = "cpu";
    feed_options feed{};
    std::string filter{}; ///< expression of pcap-filter(7); empty: all frames
    edit_options edits{};
    std::uint64_t start_at_ns = 0; ///< UTC; 0: at once
    std::uint64_t late_after_ns = 50'000;
    std::uint16_t mtu = 0; ///< 0: the port's own
    int core = -1;         ///< core of the engine's thread
    int realtime = 0;      ///< real-time priority of the engine's thread; 0: none
    std::uint32_t lanes = 1;
    bool busy = false; ///< the engine spins and never gives its core away
    bool skipping_is_planned = false;
};

/// Sends all frames and returns a report. Blocks until the run is done, or until `stop` becomes true; sets `stop`
/// itself if the port fails. Calls `show_progress` about every millisecond, on the caller's thread.
/// @throws open_error a file cannot be opened; weftio::error the port or the device cannot
run_report replay_files(const session_options& options, std::atomic<bool>& stop,
                        const std::function<void(const progress&)>& show_progress);

/// Replays through two ports with one anchor: frames that `options.feed.split` sorts to the second go through
/// `second_port`. Returns a report for each. A port that fails stops both.
std::vector<run_report> replay_split(const session_options& options, const std::string& second_port,
                                     std::atomic<bool>& stop,
                                     const std::function<void(const progress&)>& show_progress);

} // namespace weftio::replay
