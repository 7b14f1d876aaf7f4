// weftio-replay: replays captures with their original timing.
//
//   weftio-replay capture.pcapng iface:veth0
//   weftio-replay --check *.pcap
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>

#include "file_clash.hpp"
#include "options.hpp"
#include "output.hpp"
#include "reader/printable.hpp"
#include "report/check.hpp"
#include "report/screen.hpp"
#include "send/cores.hpp"

namespace {

using namespace weftio::apps;
using namespace weftio::replay;

std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set by a signal handler");

/// Without SA_RESTART, so that a signal interrupts a read from a pipe. A file that reaches the limit of sizes is an
/// error of the write, which says so.
void stop_on_signals()
{
    std::signal(SIGXFSZ, SIG_IGN);
    struct sigaction action {};
    action.sa_handler = [](int) { stop.store(true, std::memory_order_relaxed); };
    for (int signal : {SIGINT, SIGTERM, SIGHUP})
        ::sigaction(signal, &action, nullptr);
}

/// Reserves a core for the engine if one is wanted. Returns false, after printing why, if none is available.
bool share_out_cores(session_options& options)
{
    if (options.realtime != 0 && !spare_core()) {
        say("weftio-replay: --realtime needs a core of its own, but this process may use only one; leave it out");
        return false;
    }
    if (options.realtime != 0 && options.core < 0)
        options.core = *spare_core();
    if (std::string limit = options.realtime != 0 ? realtime_limit() : ""; !limit.empty())
        say(limit);
    if (options.core >= 0)
        stay_off(options.core);
    return true;
}

/// Prints `error` unless it is empty. Returns whether it was empty.
bool no_complaint(const std::string& error)
{
    if (!error.empty())
        say(printable(error));
    return error.empty();
}

int check(const command& wanted)
{
    std::vector<verdict> verdicts;
    bool written = true;
    for (const std::string& path : wanted.session.files) {
        const verdict& found = verdicts.emplace_back(check_file(path, &stop));
        if (!found.unreadable.empty())
            say(printable(found.unreadable));
        else if (!wanted.quiet && wanted.json != "-" && written)
            written = no_complaint(print_out(to_text(found) + '\n'));
    }
    if (!wanted.json.empty())
        written = no_complaint(write_file(wanted.json, to_json(verdicts))) && written;
    return static_cast<int>(written ? result_of(verdicts) : outcome::usage);
}

/// For --strict: checks the files. Skips pipes, which can be read only once.
outcome look_through(const command& wanted)
{
    std::vector<verdict> verdicts;
    for (const std::string& path : wanted.session.files) {
        if (path == "-")
            continue;
        const verdict& found = verdicts.emplace_back(check_file(path, &stop));
        if (!found.unreadable.empty())
            say(printable(found.unreadable));
        else if (found.damaged)
            say(fmt::format("weftio-replay: {}: damaged at byte {}: {}; nothing was sent", printable(path),
                            found.damaged->offset, found.damaged->reason));
    }
    return result_of(verdicts);
}

int replay(command& wanted)
{
    if (outcome found = wanted.strict ? look_through(wanted) : outcome::as_planned; found != outcome::as_planned)
        return static_cast<int>(found);
    if (!no_complaint(try_file(wanted.json)) || !no_complaint(try_file(wanted.plot)) ||
        !share_out_cores(wanted.session))
        return static_cast<int>(outcome::usage);
    bool terminal = !wanted.quiet && ::isatty(STDERR_FILENO);
    const bool report_on_output = wanted.json == "-" || wanted.plot == "-"; // standard output then holds nothing else
    screen shown({.terminal = terminal,
                  .remarks = !wanted.quiet,
                  .stats_s = wanted.stats_s,
                  .stats_on_error = report_on_output});
    auto show_progress = [&](const progress& at) { shown.show(at); };
    std::vector<run_report> reports;
    if (wanted.second_port.empty())
        reports.push_back(replay_files(wanted.session, stop, show_progress));
    else
        reports = replay_split(wanted.session, wanted.second_port, stop, show_progress);
    shown.end();
    bool written = no_complaint(shown.failure());
    if (!wanted.json.empty())
        written = no_complaint(write_file(wanted.json, to_json(reports))) && written;
    if (!wanted.plot.empty())
        written = no_complaint(write_file(wanted.plot, to_svg(reports[0]))) && written;
    if (!wanted.quiet && !report_on_output && shown.failure().empty())
        for (const run_report& report : reports)
            written = written && no_complaint(print_out(to_table(report)));
    for (const run_report& report : reports)
        std::fputs(to_complaints(report).c_str(), stderr);
    return static_cast<int>(written ? worst_of(reports) : outcome::usage);
}

} // namespace

int main(int argc, char** argv)
{
    fill_standard_descriptors();
    command wanted = parse_command_line(argc, argv);
    if (wanted.what == command::action::say) {
        if (wanted.exit_code == 0)
            return no_complaint(print_out(wanted.text)) ? 0 : static_cast<int>(outcome::usage);
        std::fputs(wanted.text.c_str(), stderr);
        return wanted.exit_code;
    }
    if (wanted.log)
        weftio::log_to_stderr(*wanted.log);
    if (!no_complaint(file_clash(wanted)))
        return static_cast<int>(outcome::usage);
    stop_on_signals();
    try {
        return wanted.what == command::action::check ? check(wanted) : replay(wanted);
    } catch (const open_error& error) {
        say(printable(error.what()));
        return static_cast<int>(outcome::usage);
    } catch (const weftio::error& error) {
        say(error.what());
        return static_cast<int>(outcome::port_failed);
    }
}
