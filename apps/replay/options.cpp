#include "options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <CLI/CLI.hpp>
#include <cmath>
#include <limits>

#include "reader/printable.hpp"

namespace weftio::replay {

namespace {

/// Raw options as CLI11 parses them; checked and converted to a command afterwards.
struct raw_options {
    std::vector<std::string> names, maps, port_maps;
    std::string port, device = "cpu", start_at, max_gap, duration, dst_mac, src_mac, vlan, late_after, json, plot, ttl,
                      filter, second_port, split, log, realtime;
    double multiplier = 1, pps = 0, mbps = 0, stats = 0;
    std::uint64_t loop = 1, limit = 0;
    std::uint32_t lanes = 1;
    std::uint16_t mtu = 0;
    int core = -1, dscp = -1;
    bool check = false, merge = false, preload = false, strict = false, topspeed = false, vlan_pop = false,
         unique_ip = false, checksums = false, truncate = false, skip = false, quiet = false, busy = false,
         help = false, version = false;
};

CLI::Validator above_zero()
{
    return {[](std::string& text) {
                double value = 0;
                bool good = CLI::detail::lexical_cast(text, value) && value > 0 && std::isfinite(value);
                return good ? "" : fmt::format("{} is not a number above 0", text);
            },
            ""};
}

/// Refuses what CLI11 would turn into the largest number: -1, and numbers that are too large.
CLI::Validator whole_number()
{
    return {[](std::string& text) {
                constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
                std::uint64_t value = 0;
                const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
                bool good = error == std::errc{} && end == text.data() + text.size();
                return good ? "" : fmt::format("{} is not a whole number from 0 to {}", text, most);
            },
            ""};
}

CLI::Validator core_of_this_machine()
{
    return {[](std::string& text) {
                long core = -1, last = ::sysconf(_SC_NPROCESSORS_CONF) - 1;
                bool good = CLI::detail::lexical_cast(text, core) && core >= 0 && core <= last;
                return good ? "" : fmt::format("{} is not a core of this machine; name one from 0 to {}", text, last);
            },
            ""};
}

void add_files_and_timing(CLI::App& app, raw_options& to)
{
    app.add_option("names", to.names);
    app.add_flag("--check", to.check);
    app.add_flag("--merge", to.merge);
    app.add_flag("-K,--preload-pcap", to.preload);
    app.add_flag("--strict", to.strict);
    auto* multiplier = app.add_option("-x,--multiplier", to.multiplier)->check(above_zero());
    auto* pps = app.add_option("-p,--pps", to.pps)->check(above_zero())->excludes(multiplier);
    auto* mbps = app.add_option("-M,--mbps", to.mbps)->check(above_zero())->excludes(multiplier)->excludes(pps);
    app.add_flag("-t,--topspeed", to.topspeed)->excludes(multiplier)->excludes(pps)->excludes(mbps);
    app.add_option("--start-at", to.start_at);
    app.add_option("--max-gap", to.max_gap);
    app.add_option("-l,--loop", to.loop)->check(whole_number());
    app.add_option("-L,--limit", to.limit)->check(above_zero())->check(whole_number());
    app.add_option("--duration", to.duration);
    app.add_option("--filter", to.filter);
}

void add_edits_and_report(CLI::App& app, raw_options& to)
{
    app.add_option("--dst-mac,--enet-dmac", to.dst_mac);
    app.add_option("--src-mac,--enet-smac", to.src_mac);
    app.add_option("--vlan-push", to.vlan);
    app.add_flag("--vlan-pop", to.vlan_pop);
    app.add_option("--map", to.maps)->allow_extra_args(false);
    app.add_option("--port-map", to.port_maps)->allow_extra_args(false);
    app.add_option("--ttl", to.ttl);
    app.add_option("--dscp", to.dscp)->check(CLI::Range(0, 63));
    app.add_flag("--unique-ip", to.unique_ip);
    app.add_flag("--fix-checksums,--fixcsum", to.checksums);
    auto* truncate = app.add_flag("--mtu-trunc", to.truncate);
    app.add_flag("--mtu-skip", to.skip)->excludes(truncate);
    app.add_option("--stats", to.stats)->check(above_zero());
    app.add_flag("-q,--quiet", to.quiet);
    app.add_option("--json", to.json);
    app.add_option("--plot", to.plot);
    app.add_option("--late-after", to.late_after);
    app.add_option("-i,--port", to.port);
    app.add_option("-I,--port2", to.second_port);
    app.add_option("--split", to.split);
    app.add_option("-g,--device", to.device);
    app.add_option("--lanes", to.lanes)->check(CLI::Range(1, 1024));
    app.add_option("--mtu", to.mtu)->check(CLI::Range(68, 65535));
    app.add_option("--core", to.core)->check(core_of_this_machine());
    // A string option, because CLI11 from 2.4 on also checks a number that was not given.
    app.add_flag("--realtime{50}", to.realtime)->check(CLI::Range(1, 99));
    app.add_flag("--busy", to.busy);
    app.add_option("--log", to.log);
    app.add_flag("-h,--help", to.help);
    app.add_flag("-V,--version", to.version);
}

[[noreturn]] void refuse(const std::string& why)
{
    throw CLI::ValidationError(why);
}

/// Parses `text`, or throws an error that names the option.
template <class Parse>
auto required(const char* option, const std::string& text, const char* form, Parse parse)
{
    auto value = parse(text);
    if (!value)
        refuse(fmt::format("{} {}: write it as {}", option, text, form));
    return *value;
}

std::uint64_t start_of(const std::string& text)
{
    std::uint64_t now_ns = utc_now_ns();
    std::uint64_t start_ns = required("--start-at", text, "1700000000.5, 2026-11-21T09:30:00Z or +SECONDS",
                                      [now_ns](const std::string& time) { return parse_time(time, now_ns); });
    if (start_ns < now_ns)
        refuse(fmt::format("--start-at {}: was {} s ago; give a future time, or +SECONDS", text,
                           (now_ns - start_ns) / 1'000'000'000));
    return start_ns;
}

std::uint64_t duration_of(const char* option, const std::string& text)
{
    return text.empty() ? 0 : required(option, text, "2, 1.5s, 20ms, 100us or 7ns", parse_duration);
}

/// Parses the value of an option that sets a limit; 0 if it is not given.
std::uint64_t bound_of(const char* option, const std::string& text)
{
    const std::uint64_t bound_ns = duration_of(option, text);
    if (bound_ns == 0 && !text.empty())
        refuse(fmt::format("{} {}: must be at least 1ns; give a longer time, or leave the option out", option, text));
    return bound_ns;
}

/// Accepts the name of an interface instead of a spec, as tcpreplay does; text with a colon or a comma, and port names
/// without either, is a spec.
std::string port_of(const std::string& text)
{
    bool spec = text.find_first_of(":,") != std::string::npos || text == "null" || text == "loopback" ||
                text.starts_with("net_");
    return spec ? text : "iface:" + text;
}

void take_names(raw_options& from, command& to)
{
    std::vector<std::string>& names = from.names;
    if (to.what == command::action::replay && from.port.empty() && names.size() >= 2) {
        to.session.port = port_of(names.back());
        names.pop_back();
    } else if (!from.port.empty()) {
        to.session.port = port_of(from.port);
    }
    if (names.empty())
        refuse("no capture file; see weftio-replay --help");
    if (to.what == command::action::replay && to.session.port.empty())
        refuse(fmt::format("no port after {}; name one, such as iface:eth0, or give --check", names.back()));
    if (std::count(names.begin(), names.end(), "-") > 1)
        refuse("- is given twice, but standard input can be read only once");
    if (std::count(names.begin(), names.end(), "-") == 1 && (from.loop != 1 || from.preload))
        refuse("standard input can be read only once: leave out --loop and --preload-pcap, or name a file");
    to.session.files = names;
}

plan_options timing_of(const raw_options& from)
{
    plan_options timing{.multiplier = from.multiplier, .max_gap_ns = bound_of("--max-gap", from.max_gap)};
    if (from.pps > 0)
        timing.by = pace::frames;
    else if (from.mbps > 0)
        timing.by = pace::bits;
    else if (from.topspeed)
        timing.by = pace::top_speed;
    if (timing.by != pace::capture && timing.max_gap_ns != 0)
        refuse("--max-gap shortens gaps of the capture, whose times --pps, --mbps and --topspeed ignore; leave it out");
    timing.per_second = from.pps > 0 ? from.pps : from.mbps * 1e6;
    return timing;
}

log_level level_of(const std::string& text)
{
    try {
        return log_level_named(text);
    } catch (const error& unknown) {
        refuse(fmt::format("--log: {}", unknown.what()));
    }
}

edit_options edits_of(const raw_options& from)
{
    edit_options edits{.vlan_pop = from.vlan_pop,
                       .unique_ip = from.unique_ip,
                       .fix_checksums = from.checksums,
                       .truncate = from.truncate};
    if (!from.dst_mac.empty())
        edits.destination_mac = required("--dst-mac", from.dst_mac, "aa:bb:cc:dd:ee:ff", parse_mac);
    if (!from.src_mac.empty())
        edits.source_mac = required("--src-mac", from.src_mac, "aa:bb:cc:dd:ee:ff", parse_mac);
    if (!from.vlan.empty())
        edits.vlan_push = required("--vlan-push", from.vlan, "100 or 100:3", parse_vlan);
    for (const std::string& map : from.maps)
        edits.maps.push_back(required("--map", map, "10.0.0.0/8=192.168.0.0/16", parse_address_map));
    for (const std::string& map : from.port_maps)
        edits.ports.push_back(required("--port-map", map, "80=8080 or 1000-1999=80", parse_port_map));
    if (!from.ttl.empty())
        edits.ttl = required("--ttl", from.ttl, "64, +1 or -1, from 1 to 255", parse_ttl);
    if (from.dscp >= 0)
        edits.dscp = static_cast<std::uint8_t>(from.dscp);
    return edits;
}

/// With two ports, refuses options that only make sense for one.
void take_split(const raw_options& from, command& to)
{
    if (from.split.empty() && from.second_port.empty())
        return;
    if (from.split.empty() || from.second_port.empty())
        refuse("--split and --port2 (its second port) need each other: give both");
    to.session.feed.split = required("--split", from.split, "client, server, port or cidr=10.0.0.0/8", parse_split);
    if (from.preload || !from.plot.empty() || from.core >= 0 || !from.realtime.empty())
        refuse("--split excludes --preload-pcap, --plot, --core and --realtime; leave them out");
    if (std::count(from.names.begin(), from.names.end(), "-") != 0)
        refuse("--split reads every file once for each port, and standard input can be read only once; name a file");
    to.second_port = port_of(from.second_port);
}

void take_options(raw_options& from, command& to)
{
    to.what = from.check ? command::action::check : command::action::replay;
    take_names(from, to);
    session_options& session = to.session;
    session.files_by = from.merge ? order::by_time : order::in_sequence;
    session.device = from.device;
    session.feed = {.timing = timing_of(from),
                    .loops = from.loop,
                    .limit = from.limit,
                    .duration_ns = bound_of("--duration", from.duration),
                    .preload = from.preload,
                    .laps = from.preload && from.topspeed};
    session.filter = from.filter;
    take_split(from, to);
    session.edits = edits_of(from);
    if (from.unique_ip && from.preload)
        refuse("--unique-ip edits frames in every loop, but --preload-pcap only once; leave out one of them");
    if (!from.start_at.empty())
        session.start_at_ns = start_of(from.start_at);
    if (!from.late_after.empty())
        session.late_after_ns = duration_of("--late-after", from.late_after);
    session.mtu = from.mtu;
    session.core = from.core;
    if (!from.realtime.empty())
        CLI::detail::lexical_cast(from.realtime, session.realtime); // cannot fail: the option's check has parsed it
    session.lanes = from.lanes;
    session.busy = from.busy;
    session.skipping_is_planned = from.skip;
    if (from.topspeed && !from.plot.empty())
        refuse("--plot shows the schedule error, but --topspeed has no schedule; leave out one of them");
    if (from.topspeed && !from.start_at.empty())
        refuse("--start-at delays a schedule, but --topspeed has none; leave out one of them");
    to.stats_s = from.stats;
    to.quiet = from.quiet;
    to.strict = from.strict;
    to.json = from.json;
    to.plot = from.plot;
    if (!from.log.empty())
        to.log = level_of(from.log);
}

command say(std::string text, int exit_code)
{
    command made;
    made.what = command::action::say;
    made.text = std::move(text);
    made.exit_code = exit_code;
    return made;
}

} // namespace

command parse_command_line(int argc, const char* const* argv)
{
    CLI::App app;
    app.set_help_flag();
    raw_options given;
    add_files_and_timing(app, given);
    add_edits_and_report(app, given);
    command made;
    try {
        app.parse(argc, argv);
        if (given.help)
            return say(std::string(help_text()), 0);
        if (given.version)
            return say("weftio-replay " WEFTIO_VERSION "\n", 0);
        take_options(given, made);
    } catch (const CLI::ExtrasError&) {
        return say(fmt::format("weftio-replay: unknown option: {}; see weftio-replay --help\n",
                               printable(fmt::format("{}", fmt::join(app.remaining(), " ")))),
                   static_cast<int>(outcome::usage));
    } catch (const CLI::Error& error) {
        return say(fmt::format("weftio-replay: {}\n", printable(error.what())), static_cast<int>(outcome::usage));
    }
    return made;
}

} // namespace weftio::replay
