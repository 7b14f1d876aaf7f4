// weftio-replay: captures replayed exactly when they happened.
//
//   weftio-replay capture.pcapng iface:veth0
//   weftio-replay --check *.pcap
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>

#include "options.hpp"
#include "report/check.hpp"
#include "report/screen.hpp"
#include "send/cores.hpp"

namespace {

using namespace weftio::replay;

std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set by a signal handler");

/// Without SA_RESTART: a read from a pipe ends at once.
void stop_on_signals()
{
    struct sigaction action {};
    action.sa_handler = [](int) { stop.store(true, std::memory_order_relaxed); };
    for (int signal : {SIGINT, SIGTERM, SIGHUP})
        ::sigaction(signal, &action, nullptr);
}

/// A core for the engine, if it is to have one. Returns false, and has said why, when it cannot be had.
bool share_out_cores(session_options& options)
{
    if (options.realtime != 0 && !spare_core()) {
        fmt::print(stderr,
                   "weftio-replay: --realtime takes a core of its own, and this process may use one only; leave it out\n");
        return false;
    }
    if (options.realtime != 0 && options.core < 0)
        options.core = *spare_core();
    if (std::string limit = options.realtime != 0 ? realtime_limit() : ""; !limit.empty())
        fmt::print(stderr, "{}\n", limit);
    if (options.core >= 0)
        stay_off(options.core);
    return true;
}

/// Asked before anything is sent, which may take hours.
bool can_be_written(const std::string& path)
{
    std::FILE* file = path.empty() || path == "-" ? nullptr : std::fopen(path.c_str(), "a");
    if (file)
        std::fclose(file);
    bool good = file || path.empty() || path == "-";
    if (!good)
        fmt::print(stderr, "weftio-replay: {}: cannot be written; name a file in a folder that can\n", path);
    return good;
}

bool write_file(const std::string& path, const std::string& text)
{
    std::FILE* file = path == "-" ? stdout : std::fopen(path.c_str(), "w");
    bool good = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (file)
        good = (path == "-" ? std::fflush(file) : std::fclose(file)) == 0 && good;
    if (!good)
        fmt::print(stderr, "weftio-replay: {}: cannot be written; name a file in a folder that can\n", path);
    return good;
}

int check(const command& wanted)
{
    std::vector<verdict> verdicts;
    outcome result = outcome::as_planned;
    for (const std::string& path : wanted.session.files) {
        verdicts.push_back(check_file(path, &stop));
        if (verdicts.back().damaged)
            result = outcome::damaged;
        if (!wanted.quiet && wanted.json != "-")
            fmt::print("{}\n", to_text(verdicts.back()));
    }
    if (!wanted.json.empty() && !write_file(wanted.json, to_json(verdicts)))
        result = outcome::usage;
    return static_cast<int>(result);
}

/// --strict: whether no file is damaged; pipes are not looked at, they can be read once.
bool all_good(const command& wanted)
{
    bool good = true;
    for (const std::string& path : wanted.session.files)
        if (path != "-")
            if (verdict found = check_file(path, &stop); found.damaged) {
                fmt::print(stderr, "weftio-replay: {}: damaged at byte {}: {}; nothing was sent\n", path, found.damaged->offset,
                           found.damaged->reason);
                good = false;
            }
    return good;
}

int replay(command& wanted)
{
    if (wanted.strict && !all_good(wanted))
        return static_cast<int>(outcome::damaged);
    if (!can_be_written(wanted.json) || !can_be_written(wanted.plot) || !share_out_cores(wanted.session))
        return static_cast<int>(outcome::usage);
    screen shown(!wanted.quiet && ::isatty(STDERR_FILENO), wanted.stats_s);
    run_report report = replay_files(wanted.session, stop, [&](const progress& at) { shown.show(at); });
    shown.end();
    bool written = (wanted.json.empty() || write_file(wanted.json, to_json(report))) &&
                   (wanted.plot.empty() || write_file(wanted.plot, to_svg(report)));
    if (!wanted.quiet && wanted.json != "-")
        fmt::print("{}", to_table(report));
    for (const file_report& file : report.files)
        if (file.damaged)
            fmt::print(stderr, "weftio-replay: {}: damaged at byte {}: {}\n", file.path, file.damaged->offset,
                       file.damaged->reason);
    if (!report.failure.empty())
        fmt::print(stderr, "{}\n", report.failure);
    outcome result = report.result();
    return static_cast<int>(result == outcome::as_planned && !written ? outcome::usage : result);
}

} // namespace

int main(int argc, char** argv)
{
    command wanted = parse_command_line(argc, argv);
    if (wanted.what == command::action::say) {
        fmt::print(wanted.exit_code == 0 ? stdout : stderr, "{}", wanted.text);
        return wanted.exit_code;
    }
    stop_on_signals();
    try {
        return wanted.what == command::action::check ? check(wanted) : replay(wanted);
    } catch (const open_error& error) {
        fmt::print(stderr, "{}\n", error.what());
        return static_cast<int>(outcome::usage);
    } catch (const weftio::error& error) {
        fmt::print(stderr, "{}\n", error.what());
        return static_cast<int>(outcome::port_failed);
    }
}
