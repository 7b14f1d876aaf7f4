// Options and exit status that all programs of bench/ share.
#pragma once

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "weftio/error.hpp"

namespace weftio::bench {

/// Options of every program that measures in rounds.
struct common_options {
    unsigned rounds = 5;
    std::string json;
};

inline void add_json(CLI::App& app, common_options& options)
{
    // Checked now, not after minutes of measuring.
    auto can_be_written = [](std::string path) {
        return std::ofstream(path, std::ios::app) ? "" : path + " cannot be written; name a file that can be created";
    };
    app.add_option("--json", options.json, "also write the rows to this file")->check(can_be_written);
}
inline void add_rounds(CLI::App& app, common_options& options, unsigned least = 1)
{
    app.add_option("--rounds", options.rounds, "rounds of all rows, in turn")
        ->check(CLI::Range(least, 1000u))
        ->capture_default_str();
}

/// The cores that this process may use.
inline std::vector<int> usable_cores()
{
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    std::vector<int> cores;
    for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(static_cast<std::size_t>(core), &allowed))
            cores.push_back(core);
    return cores;
}

/// Adds the option --cores with as many values as `cores` has, which are its default. If the process may not use all of
/// those, the default is the first cores that it may use.
inline void add_cores(CLI::App& app, std::vector<int>& cores, const std::string& what)
{
    const std::vector<int> usable = usable_cores();
    auto may_be_used = [usable](int core) { return std::find(usable.begin(), usable.end(), core) != usable.end(); };
    if (!usable.empty() && !std::all_of(cores.begin(), cores.end(), may_be_used))
        for (std::size_t at = 0; at < cores.size(); ++at)
            cores[at] = usable[std::min(at, usable.size() - 1)];
    auto check = [may_be_used](const std::string& core) -> std::string {
        if (may_be_used(std::atoi(core.c_str())))
            return {};
        return fmt::format("this process may not run on core {}; name other cores", core);
    };
    app.add_option("--cores", cores, what)
        ->delimiter(',')
        ->expected(static_cast<int>(cores.size()))
        ->check(check)
        ->capture_default_str();
}

/// Parses the command line. Returns an exit status if the program must end: 0 after --help; 2 after a wrong option,
/// which is reported in one sentence.
inline std::optional<int> read_words(CLI::App& app, int argc, char** argv)
{
    try {
        app.parse(argc, argv);
        return std::nullopt;
    } catch (const CLI::Success& help) {
        return app.exit(help);
    } catch (const CLI::ParseError& words) {
        std::string text = words.what();
        for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos;)
            text[at] = ' ';
        fmt::print(stderr, "weftio: {}: {}; --help lists the options\n", program_invocation_short_name, text);
        return 2;
    }
}

/// Calls `run` and returns its exit status. Prints an exception that it throws and returns 2 if the library refused an
/// argument, else 1.
template <class Run>
int ending(Run&& run)
{
    try {
        return run();
    } catch (const weftio::error& failure) {
        fmt::print(stderr, "{}\n", failure.what());
        return failure.code() == errc::invalid_argument ? 2 : 1;
    } catch (const std::exception& failure) {
        fmt::print(stderr, "{}\n", failure.what());
        return 1;
    }
}

} // namespace weftio::bench
