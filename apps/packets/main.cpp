// weftio-packets: kernels that answer ping, DNS statistics and curl.
//
//   weftio-packets -n tap:w0 --address 10.9.0.1/24 --peer 10.9.0.2
//   weftio-packets -n iface:eth1 --address 192.0.2.7/24 -g cuda:0 --queues 4
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <thread>

#include "options.hpp"
#include "output.hpp"
#include "peer.hpp"
#include "report.hpp"
#include "server.hpp"

namespace {

using namespace weftio::apps;
using namespace weftio::packets;
using steady = std::chrono::steady_clock;

volatile std::sig_atomic_t interrupted = 0;

double seconds_since(steady::time_point start)
{
    return std::chrono::duration<double>(steady::now() - start).count();
}

/// Prints the table each second, over the one before.
class live_table {
 public:
    void show(const packet_server& server)
    {
        if (seconds_since(shown_) < 1)
            return;
        const totals now = server.counters();
        const std::string text = to_table(now, before_, seconds_since(shown_));
        if (lines_ != 0)
            fmt::print("\033[{}A\033[J", lines_);
        fmt::print("{}", text);
        std::fflush(stdout);
        lines_ = std::ranges::count(text, '\n');
        before_ = now;
        shown_ = steady::now();
    }
    /// What is printed next stands below the table.
    void leave() noexcept { lines_ = 0; }

 private:
    totals before_;
    steady::time_point shown_ = steady::now();
    std::ptrdiff_t lines_ = 0;
};

/// Prints pings as they come.
void show_pings(packet_server& server, std::uint64_t& before_ns)
{
    server.for_each_ping([&](const ping_info& ping) {
        fmt::print("{}", ping_text(ping, before_ns));
        before_ns = ping.arrival_ns;
    });
    std::fflush(stdout);
}

/// Serves until the user or the time ends it.
void serve_until_end(packet_server& server, const command& wanted)
{
    const bool live = !wanted.quiet && wanted.json != "-" && !wanted.server.ping_report && ::isatty(STDOUT_FILENO);
    const auto start = steady::now();
    live_table table;
    std::uint64_t before_ns = 0;
    while (!interrupted && (wanted.seconds == 0 || seconds_since(start) < wanted.seconds)) {
        if (const std::string said = server.look_after(); !said.empty()) {
            say(said);
            table.leave();
        }
        if (wanted.server.ping_report)
            show_pings(server, before_ns);
        if (live)
            table.show(server);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

int serve(const command& wanted)
{
    if (!no_complaint(try_file(wanted.json)))
        return usage;
    // Kernels and engines that sleep between two looks inherit it: a sleep of 20 us is not one of 70.
    ::prctl(PR_SET_TIMERSLACK, 1);
    packet_server server(wanted.server);
    if (wanted.peer)
        set_up_peer(wanted.server.port.substr(4), *wanted.peer);
    const bool speaks = !wanted.quiet && wanted.json != "-";
    if (speaks) {
        fmt::print("{}", start_text(server, wanted));
        std::fflush(stdout);
    }
    const auto start = steady::now();
    serve_until_end(server, wanted);
    server.stop();
    const totals all = server.counters();
    const double seconds = seconds_since(start);
    if (speaks)
        fmt::print("{}", to_summary(all, seconds));
    const bool written = wanted.json.empty() || no_complaint(write_file(wanted.json, to_json(all, server, seconds)));
    return written && is_conserved(all) ? ended : failed;
}

} // namespace

int main(int argc, char** argv)
{
    fill_standard_descriptors();
    const command wanted = parse_command_line(argc, argv);
    if (wanted.what == command::action::say) {
        if (wanted.exit_code == ended)
            return no_complaint(print_out(wanted.text)) ? ended : failed;
        std::fputs(wanted.text.c_str(), stderr);
        return wanted.exit_code;
    }
    if (wanted.log)
        weftio::log_to_stderr(*wanted.log);
    for (int signal : {SIGINT, SIGTERM})
        std::signal(signal, [](int) { interrupted = 1; });
    int status = failed;
    try {
        status = serve(wanted);
    } catch (const weftio::error& error) {
        say(error.what());
        status = error.code() == weftio::errc::closed || error.code() == weftio::errc::device_error ? failed : usage;
    } catch (const std::exception& error) {
        say(error.what());
    }
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0)
        return status;
    say(output_failed(errno));
    return failed;
}
