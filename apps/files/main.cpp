// weftio-files: what files can do here, how fast, and what a program does with them.
//
//   weftio-files --check /data
//   weftio-files bench -b 4k,1m --random /data
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <fstream>

#include "bench/bench.hpp"
#include "core/printable.hpp"
#include "options.hpp"
#include "output.hpp"
#include "stats.hpp"
#include "weftio/error.hpp"

namespace {

using namespace weftio::files;

/// Prints and flushes. Returns the exit status: 1 where standard output takes nothing.
int print(const std::string& text)
{
    return weftio::apps::no_complaint(weftio::apps::print_out(text)) ? 0 : 1;
}

/// Returns the exit status: 1 where the file takes nothing.
int write_plot(const bench_options& wanted, const std::vector<bench_run>& runs)
{
    if (wanted.plot.empty())
        return 0;
    std::ofstream file(wanted.plot, std::ios::binary);
    file << to_svg(wanted, runs) << std::flush;
    if (file)
        return 0;
    std::fprintf(stderr, "weftio-files: --plot %s: cannot be written\n", weftio::core::printable(wanted.plot).c_str());
    return 1;
}

/// Exit status 2: an operation failed, also that of making the file on a full disk.
int measure(const command& wanted)
try {
    const bool terminal = ::isatty(STDERR_FILENO) != 0;
    const std::vector<bench_run> runs = run_bench(wanted.bench, [&](const std::string& step) {
        if (terminal)
            std::fprintf(stderr, "weftio-files: %s\n", step.c_str());
    });
    if (const int failed = write_plot(wanted.bench, runs); failed != 0)
        return failed;
    if (const int failed = print(wanted.json ? to_json(wanted.bench, runs) : to_table(runs)); failed != 0)
        return failed;
    return is_clean(runs) ? 0 : 2;
} catch (const weftio::error& failed) {
    if (failed.code() != weftio::errc::device_error)
        throw;
    std::fprintf(stderr, "%s\n", failed.what());
    return 2;
}

/// Exit status 3: there is no such program, or none that uses files of Weftio.
int show(const command& wanted)
try {
    const auto pages = weftio::storage::read_statistics("/", wanted.process);
    if (!pages.empty())
        return print(wanted.json ? stats_to_json(pages) : stats_to_text(pages));
    std::fprintf(stderr, "weftio-files: process %u: uses no Weftio files\n", wanted.process);
    return 3;
} catch (const weftio::error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
}

int run(const command& wanted)
{
    switch (wanted.what) {
        case command::action::check: {
            const std::vector<section> found = check(wanted.check);
            return print(wanted.json ? to_json(found) : to_text(found));
        }
        case command::action::bench: return measure(wanted);
        case command::action::stats: return show(wanted);
        case command::action::say: break;
    }
    if (wanted.exit_code == 0)
        return print(wanted.text);
    std::fputs(wanted.text.c_str(), stderr);
    return wanted.exit_code;
}

} // namespace

int main(int argc, char** argv)
try {
    weftio::apps::fill_standard_descriptors();
    return run(parse_command_line(argc, argv));
} catch (const weftio::error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
} catch (const std::exception& error) { // of the standard library: a path that cannot be reached, no memory
    std::fprintf(stderr, "weftio-files: %s\n", error.what());
    return 1;
}
