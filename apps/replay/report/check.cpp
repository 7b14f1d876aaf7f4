#include "report/check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reader/printable.hpp"
#include "report/json.hpp"
#include "report/units.hpp"

namespace weftio::replay {

namespace {

void count(verdict& into, const frame& captured, std::int64_t& latest_ns, bool& any_time)
{
    ++into.frames;
    into.bytes += captured.captured_bytes + captured.fcs_captured;
    into.wire_bytes += captured.original_bytes + captured.fcs_bytes;
    into.with_fcs += captured.fcs_bytes != 0;
    into.cut_frames += captured.captured_bytes < captured.original_bytes;
    into.runts += captured.link_type == link_type_ethernet && captured.captured_bytes < 14;
    into.longest = std::max(into.longest, captured.captured_bytes);
    ++into.link_types[captured.link_type];
    if (!captured.has_time) {
        ++into.untimed;
        return;
    }
    into.clamped += captured.time_clamped;
    into.first_ns = any_time ? std::min(into.first_ns, captured.time_ns) : captured.time_ns;
    into.last_ns = any_time ? std::max(into.last_ns, captured.time_ns) : captured.time_ns;
    into.out_of_order += any_time && captured.time_ns < latest_ns;
    latest_ns = any_time ? std::max(latest_ns, captured.time_ns) : captured.time_ns;
    any_time = true;
}

std::uint64_t span_ns(const verdict& of)
{
    return static_cast<std::uint64_t>(of.last_ns) - static_cast<std::uint64_t>(of.first_ns);
}

void put_verdict(json_writer& json, const verdict& of)
{
    json.begin_object();
    json.value("file", of.path);
    json.value("format", of.format);
    json.value("verdict", !of.unreadable.empty() ? "unreadable" : of.damaged ? "damaged" : "good");
    if (of.unreadable.empty())
        json.null("error");
    else
        json.value("error", of.unreadable);
    if (of.damaged) {
        json.begin_object("damage");
        json.value("offset", of.damaged->offset);
        json.value("reason", of.damaged->reason);
        json.end_object();
    } else {
        json.null("damage");
    }
    json.value("frames", of.frames);
    json.value("bytes", of.bytes);
    json.value("wire_bytes", of.wire_bytes);
    json.value("longest", of.longest);
    json.value("cut_by_capture", of.cut_frames);
    json.value("with_fcs", of.with_fcs);
    json.value("runts", of.runts);
    json.value("without_time", of.untimed);
    json.value("out_of_order", of.out_of_order);
    json.value("times_clamped", of.clamped);
    json.value("first_ns", of.first_ns);
    json.value("last_ns", of.last_ns);
    json.begin_object("link_types");
    for (auto [type, frames] : of.link_types)
        json.value(fmt::format("{}", type), frames);
    json.end_object();
    json.end_object();
}

} // namespace

verdict check_file(const std::string& path, const std::atomic<bool>* stop)
{
    verdict made;
    made.path = path;
    std::unique_ptr<capture_reader> reader;
    try {
        reader = open_capture(path, stop);
    } catch (const open_error& error) {
        made.unreadable = error.what();
        return made;
    }
    made.format = reader->format();
    frame captured;
    std::int64_t latest_ns = 0;
    bool any_time = false;
    while (!(stop && stop->load(std::memory_order_relaxed)) && reader->next(captured))
        count(made, captured, latest_ns, any_time);
    if (!(stop && stop->load(std::memory_order_relaxed))) // a stopped read looks like the end of the file
        made.damaged = reader->damaged();
    return made;
}

std::string to_text(const verdict& of)
{
    if (!of.unreadable.empty())
        return printable(of.unreadable);
    std::string text = fmt::format("{}: ", printable(of.path));
    text += of.damaged ? fmt::format("damaged at byte {}: {}; before it ", of.damaged->offset, of.damaged->reason)
                       : "good; ";
    text += fmt::format("{}, {}, {}", of.format, frames_text(of.frames), bytes_text(of.bytes));
    if (of.frames > of.untimed)
        text += fmt::format(", {} from {}", duration_text(span_ns(of)), utc_text(of.first_ns));
    if (of.clamped != 0)
        text += fmt::format(", {} with a time before 1677 or after 2262, taken as that year", grouped(of.clamped));
    if (of.cut_frames != 0)
        text += fmt::format(", {} cut by the snapshot length", grouped(of.cut_frames));
    if (of.with_fcs != 0)
        text += fmt::format(", {} with a frame check sequence (FCS), sent without it", grouped(of.with_fcs));
    if (of.out_of_order != 0)
        text += fmt::format(", {} out of order", grouped(of.out_of_order));
    std::uint64_t others = of.frames;
    if (auto ethernet = of.link_types.find(link_type_ethernet); ethernet != of.link_types.end())
        others -= ethernet->second;
    if (others != 0)
        text += fmt::format(", {} not Ethernet", grouped(others));
    if (of.runts != 0)
        text += fmt::format(", {} shorter than an Ethernet header", grouped(of.runts));
    return text;
}

outcome result_of(const std::vector<verdict>& all) noexcept
{
    if (std::any_of(all.begin(), all.end(), [](const verdict& of) { return !of.unreadable.empty(); }))
        return outcome::usage;
    bool damaged = std::any_of(all.begin(), all.end(), [](const verdict& of) { return of.damaged.has_value(); });
    return damaged ? outcome::damaged : outcome::as_planned;
}

std::string to_json(const std::vector<verdict>& all)
{
    json_writer json;
    json.begin_object();
    json.value("exit_code", static_cast<int>(result_of(all)));
    json.begin_array("files");
    for (const verdict& of : all)
        put_verdict(json, of);
    json.end_array();
    json.end_object();
    return json.text();
}

} // namespace weftio::replay
