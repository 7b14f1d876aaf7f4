// The result of a run, for people and for programs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reader/capture.hpp"
#include "report/observer.hpp"
#include "report/units.hpp"
#include "send/feeder.hpp"

namespace weftio::replay {

/// Exit codes of the program. Of several, the first of 1, 4, 2, 3, 0 applies.
enum class outcome {
    as_planned = 0,
    usage = 1,
    damaged = 2,     ///< a file is damaged; what was readable was sent
    not_sent = 3,    ///< frames of the plan, or of the files, were not sent
    port_failed = 4, ///< the port or the device failed
};

struct file_report {
    std::string path;
    file_account frames;
    timing times;
    std::optional<damage> damaged;
};

struct run_report {
    std::string port, driver, device, clock;
    bool timed = true;
    bool hardware_pacing = false; ///< the driver keeps the times in hardware
    std::vector<file_report> files;
    file_report total; ///< sum of all files
    error_series series;
    std::uint64_t late_after_ns = 0;
    schedule_error handover; ///< handover to the driver minus planned time, from the queue
    std::uint64_t out_of_order = 0, truncated = 0, converted = 0, loops = 0, lost_notifications = 0;
    std::uint32_t mtu = 0, wanted_mtu = 0; ///< of the port; what the longest frame skipped as oversize needs
    std::uint64_t tx_dropped = 0;          ///< frames dropped by the kernel's interface after they counted as sent
    std::uint64_t planned_ns = 0, actual_ns = 0; ///< from the first frame to the last
    bool interrupted = false, skipping_is_planned = false, endless = false;
    std::string failure; ///< failure of the port or the device; empty if there was none

    std::uint64_t not_sent() const noexcept { return total.frames.planned - total.frames.sent; }
    outcome result() const noexcept;
};

/// Adds up `files` into `total`.
void add_up(run_report& report);
/// The final table, several lines, without failures; empty if a failure kept the run from planning anything.
std::string to_table(const run_report& report);
/// Failures for standard error, a line each; empty if there were none.
std::string to_complaints(const run_report& report);
std::string to_json(const run_report& report);
/// The worst outcome of several runs at once, by the order of `outcome`.
outcome worst_of(const std::vector<run_report>& reports) noexcept;
/// JSON of several runs at once: the worst exit code, and each run in the array `ports`. A single run has no such
/// array.
std::string to_json(const std::vector<run_report>& reports);
/// A diagram of the schedule error over time: range and mean of each column, on a logarithmic scale.
std::string to_svg(const run_report& report);

} // namespace weftio::replay
