// One run, from opened files to a report.
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
    std::string filter{}; ///< of pcap-filter(7); empty: all frames
    edit_options edits{};
    std::uint64_t start_at_ns = 0; ///< UTC; 0: at once
    std::uint64_t late_after_ns = 50'000;
    std::uint16_t mtu = 0; ///< 0: the port's own
    int core = -1;         ///< of the engine
    int realtime = 0;      ///< its priority as a real-time thread; 0: none
    std::uint32_t lanes = 1;
    bool busy = false; ///< the engine never gives its core away
    bool skipping_is_planned = false;
};

/// Sends everything and reports. Blocks until it is done, or until `stop` becomes true; sets `stop` itself when the
/// port fails. `look` is called every millisecond or so, in the caller's thread.
/// @throws open_error a file cannot be opened; weftio::error the port or the device cannot
run_report replay_files(const session_options& options, std::atomic<bool>& stop,
                        const std::function<void(const progress&)>& look);

/// The same through two ports with one anchor: what `options.feed.split` sorts to the second goes through
/// `second_port`. Returns a report for each. A port that fails stops both.
std::vector<run_report> replay_split(const session_options& options, const std::string& second_port,
                                     std::atomic<bool>& stop, const std::function<void(const progress&)>& look);

} // namespace weftio::replay
