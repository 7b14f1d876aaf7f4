#include "report/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reader/printable.hpp"
#include "report/json.hpp"

namespace weftio::replay {

namespace {

double per_second(std::uint64_t count, std::uint64_t ns)
{
    return ns == 0 ? 0 : static_cast<double>(count) * 1e9 / static_cast<double>(ns);
}

std::string skipped_text(const file_account& frames)
{
    std::string text;
    for (std::size_t reason = 0; reason < frames.skipped.size(); ++reason)
        if (frames.skipped[reason] != 0)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", grouped(frames.skipped[reason]),
                                to_string(static_cast<skip_reason>(reason)));
    return text;
}

void put_times(json_writer& json, const file_report& file, bool timed)
{
    const timing& times = file.times;
    json.value("first_sent_ns", timed ? times.first_sent_ns : file.frames.first_seen_ns);
    json.value("last_sent_ns", timed ? times.last_sent_ns : file.frames.last_seen_ns);
    if (!timed || times.errors.count() == 0)
        return;
    json.value("first_planned_ns", times.first_planned_ns);
    json.value("last_planned_ns", times.last_planned_ns);
    json.value("late", times.late);
    json.value("early", times.early);
    json.value("drift_ns", times.drift_ns());
    json.begin_object("schedule_error_ns");
    json.value("count", times.errors.count());
    json.value("p50", times.errors.quantile_ns(0.5));
    json.value("p90", times.errors.quantile_ns(0.9));
    json.value("p99", times.errors.quantile_ns(0.99));
    json.value("p999", times.errors.quantile_ns(0.999));
    json.value("max", times.errors.max_ns());
    json.end_object();
}

void put_file(json_writer& json, const file_report& file, bool timed)
{
    json.value("planned", file.frames.planned);
    json.value("sent", file.frames.sent);
    json.value("sent_bytes", file.frames.sent_bytes);
    json.value("not_sent", file.frames.planned - file.frames.sent);
    json.value("cut_by_capture", file.frames.cut);
    json.value("with_fcs", file.frames.with_fcs);
    json.value("times_clamped", file.frames.clamped);
    json.begin_object("skipped");
    for (std::size_t reason = 0; reason < file.frames.skipped.size(); ++reason)
        json.value(to_string(static_cast<skip_reason>(reason)), file.frames.skipped[reason]);
    json.end_object();
    put_times(json, file, timed);
}

void put_damage(json_writer& json, const std::optional<damage>& damaged)
{
    if (!damaged)
        return json.null("damage");
    json.begin_object("damage");
    json.value("offset", damaged->offset);
    json.value("reason", damaged->reason);
    json.end_object();
}

void put_handover(json_writer& json, const schedule_error& handover)
{
    json.begin_object("handover_error_ns");
    json.value("count", handover.count);
    json.value("p50", handover.p50_ns);
    json.value("p99", handover.p99_ns);
    json.value("p999", handover.p999_ns);
    json.value("max", handover.max_ns);
    json.end_object();
}

/// Two lines on the schedule error; nothing for an untimed run.
std::string times_text(const run_report& report)
{
    const timing& times = report.total.times;
    if (!report.timed || times.errors.count() == 0)
        return {};
    std::string first = utc_text(static_cast<std::int64_t>(times.first_planned_ns));
    return fmt::format("planned   {} from {}\n", duration_text(report.planned_ns), first) +
           fmt::format("error     p50 {}, p99 {}, p99.9 {}, max {}; drift {}\n",
                       duration_text(times.errors.quantile_ns(0.5)), duration_text(times.errors.quantile_ns(0.99)),
                       duration_text(times.errors.quantile_ns(0.999)), duration_text(times.errors.max_ns()),
                       signed_duration_text(times.drift_ns())) +
           fmt::format("late      {} by more than {}\n", frames_text(times.late), duration_text(report.late_after_ns));
}

/// A line on what to do about frames that are longer than the MTU allows; nothing if the user left them out.
std::string oversize_text(const run_report& report)
{
    if (report.wanted_mtu == 0 || report.skipping_is_planned)
        return {};
    std::string line =
        fmt::format("oversize  the MTU of the port is {}, the longest frame needs {}; ", report.mtu, report.wanted_mtu);
    constexpr std::uint32_t most_mtu = 16'362; // of an interface
    if (report.port.starts_with("iface:") && report.wanted_mtu <= most_mtu)
        line += fmt::format("raise it with --mtu {} at both ends of the link, or ", report.wanted_mtu);
    return line + "cut such frames with --mtu-trunc\n";
}

/// Lines on frames that differ from those on the wire, or whose times do.
std::string oddities_text(const run_report& report)
{
    const file_account& frames = report.total.frames;
    std::string text;
    if (frames.cut != 0)
        text +=
            fmt::format("cut       {} by the capture's snapshot length, sent as captured\n", frames_text(frames.cut));
    if (frames.with_fcs != 0)
        text += fmt::format("fcs       {} captured with a frame check sequence, sent without it\n",
                            frames_text(frames.with_fcs));
    if (report.converted != 0)
        text += fmt::format("converted {} of other link types to Ethernet\n", frames_text(report.converted));
    if (report.truncated != 0)
        text += fmt::format("truncated {} to the MTU\n", grouped(report.truncated));
    if (report.out_of_order != 0)
        text += fmt::format("order     {} older than a previous one, sent in file order\n",
                            frames_text(report.out_of_order));
    if (frames.clamped != 0)
        text += fmt::format("times     {} with a time before 1677 or after 2262, taken as that year\n",
                            frames_text(frames.clamped));
    return text;
}

} // namespace

outcome run_report::result() const noexcept
{
    if (!failure.empty())
        return outcome::port_failed;
    if (std::any_of(files.begin(), files.end(), [](const file_report& file) { return file.damaged.has_value(); }))
        return outcome::damaged;
    bool cut = interrupted && !endless;
    bool skipped = total.frames.skipped_total() != 0 && !skipping_is_planned;
    return not_sent() != 0 || tx_dropped != 0 || cut || skipped ? outcome::not_sent : outcome::as_planned;
}

void add_up(run_report& report)
{
    file_account& total = report.total.frames;
    total = {};
    for (const file_report& file : report.files) {
        total.planned += file.frames.planned;
        total.planned_bytes += file.frames.planned_bytes;
        total.sent += file.frames.sent;
        total.sent_bytes += file.frames.sent_bytes;
        total.cut += file.frames.cut;
        total.with_fcs += file.frames.with_fcs;
        total.clamped += file.frames.clamped;
        for (std::size_t reason = 0; reason < total.skipped.size(); ++reason)
            total.skipped[reason] += file.frames.skipped[reason];
        if (file.frames.first_seen_ns != 0 &&
            (total.first_seen_ns == 0 || file.frames.first_seen_ns < total.first_seen_ns))
            total.first_seen_ns = file.frames.first_seen_ns;
        total.last_seen_ns = std::max(total.last_seen_ns, file.frames.last_seen_ns);
    }
}

std::string to_table(const run_report& report)
{
    const file_account& frames = report.total.frames;
    if (frames.planned == 0 && !to_complaints(report).empty())
        return {};
    std::string text = fmt::format("sent      {} of {}, {} in {}", grouped(frames.sent), frames_text(frames.planned),
                                   bytes_text(frames.sent_bytes), duration_text(report.actual_ns));
    if (report.actual_ns != 0)
        text += fmt::format(": {}, {}", frame_rate_text(per_second(frames.sent, report.actual_ns)),
                            bit_rate_text(per_second(frames.sent_bytes * 8, report.actual_ns)));
    text += '\n';
    if (!skipped_text(frames).empty())
        text += fmt::format("skipped   {}\n", skipped_text(frames)) + oversize_text(report);
    if (report.tx_dropped != 0)
        text += fmt::format("dropped   {} by the interface, after they were sent (its tx_dropped)\n",
                            grouped(report.tx_dropped));
    text += oddities_text(report) + times_text(report);
    text += fmt::format("path      {} ({}), kernel on {}, clock {}, {} pacing\n", printable(report.port), report.driver,
                        report.device, report.clock,
                        !report.timed            ? "no"
                        : report.hardware_pacing ? "hardware"
                                                 : "software");
    if (report.files.size() > 1)
        for (const file_report& file : report.files)
            text += fmt::format("file      {}: sent {} of {}, skipped {}\n", printable(file.path),
                                grouped(file.frames.sent), grouped(file.frames.planned),
                                grouped(file.frames.skipped_total()));
    if (report.interrupted)
        text += "stopped   by a signal\n";
    return text;
}

std::string to_complaints(const run_report& report)
{
    std::string text;
    for (const file_report& file : report.files)
        if (file.damaged)
            text += fmt::format("weftio-replay: {}: damaged at byte {}: {}\n", printable(file.path),
                                file.damaged->offset, file.damaged->reason);
    return report.failure.empty() ? text : text + report.failure + '\n';
}

outcome worst_of(const std::vector<run_report>& reports) noexcept
{
    for (outcome each : {outcome::usage, outcome::port_failed, outcome::damaged, outcome::not_sent})
        if (std::any_of(reports.begin(), reports.end(), [each](const run_report& of) { return of.result() == each; }))
            return each;
    return outcome::as_planned;
}

namespace {

void put_run(json_writer& json, const run_report& report)
{
    json.value("exit_code", static_cast<int>(report.result()));
    json.value("port", report.port);
    json.value("driver", report.driver);
    json.value("device", report.device);
    json.value("clock", report.clock);
    json.value("path", !report.timed ? "untimed" : report.hardware_pacing ? "hardware" : "software");
    json.value("interrupted", report.interrupted);
    if (report.failure.empty())
        json.null("failure");
    else
        json.value("failure", report.failure);
    json.value("loops", report.loops);
    json.value("out_of_order", report.out_of_order);
    json.value("truncated", report.truncated);
    json.value("mtu", report.mtu);
    json.value("wanted_mtu", report.wanted_mtu);
    json.value("converted", report.converted);
    json.value("tx_dropped", report.tx_dropped);
    json.value("lost_notifications", report.lost_notifications);
    json.value("late_after_ns", report.late_after_ns);
    json.value("planned_duration_ns", report.planned_ns);
    json.value("actual_duration_ns", report.actual_ns);
    json.value("frames_per_second", per_second(report.total.frames.sent, report.actual_ns));
    json.value("bits_per_second", per_second(report.total.frames.sent_bytes * 8, report.actual_ns));
    put_handover(json, report.handover);
    json.begin_object("total");
    put_file(json, report.total, report.timed);
    json.end_object();
    json.begin_array("files");
    for (const file_report& file : report.files) {
        json.begin_object();
        json.value("file", file.path);
        put_damage(json, file.damaged);
        put_file(json, file, report.timed);
        json.end_object();
    }
    json.end_array();
}

} // namespace

std::string to_json(const run_report& report)
{
    json_writer json;
    json.begin_object();
    put_run(json, report);
    json.end_object();
    return json.text();
}

std::string to_json(const std::vector<run_report>& reports)
{
    if (reports.size() == 1)
        return to_json(reports[0]);
    json_writer json;
    json.begin_object();
    json.value("exit_code", static_cast<int>(worst_of(reports)));
    json.begin_array("ports");
    for (const run_report& report : reports) {
        json.begin_object();
        put_run(json, report);
        json.end_object();
    }
    json.end_array();
    json.end_object();
    return json.text();
}

} // namespace weftio::replay
