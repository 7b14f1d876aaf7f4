// weftio-litmus: whether who has seen a flag that an RDMA device wrote sees the data that it wrote before.
//
//   weftio-litmus -d mlx5_0
//   weftio-run --wire w -- weftio-litmus --trials 100000
#include <atomic>
#include <csignal>
#include <exception>

#include "output.hpp"
#include "report.hpp"

namespace {

using namespace weftio::litmus;

std::atomic<bool> interrupted{false};

int print(const std::string& text)
{
    return weftio::apps::no_complaint(weftio::apps::print_out(text)) ? 0 : 1;
}

outcome run_or_refuse(const cell& each, const command& wanted)
{
    try {
        return run(each, wanted.trial, wanted.port, [] { return interrupted.load(); });
    } catch (const failure& refused) {
        return {.of = each, .refused = refused.what()};
    }
}

int measure(const command& wanted)
{
    nic(wanted.port, 16); // without it there is no row, and no table
    std::vector<outcome> all;
    if (!wanted.json && print(table_head(wanted)) != 0)
        return 1;
    for (const cell& each : wanted.cells) {
        if (interrupted)
            break;
        all.push_back(run_or_refuse(each, wanted));
        if (!wanted.json && print(table_row(all.back())) != 0)
            return 1;
    }
    if (print(wanted.json ? to_json(wanted, all) : table_end(all)) != 0)
        return 1;
    int status = interrupted ? 128 + SIGINT : 0;
    for (const outcome& each : all)
        if (each.stale != 0)
            status = 3;
        else if (!each.refused.empty() && status == 0)
            status = 2;
    return status;
}

} // namespace

int main(int argc, char** argv)
try {
    weftio::apps::fill_standard_descriptors();
    const command wanted = parse_command_line(argc, argv);
    if (wanted.exit_code != 0) {
        weftio::apps::say(wanted.text);
        return wanted.exit_code;
    }
    if (!wanted.text.empty())
        return print(wanted.text);
    std::signal(SIGINT, [](int) { interrupted = true; });
    std::signal(SIGTERM, [](int) { interrupted = true; });
    return measure(wanted);
} catch (const std::exception& failed) {
    weftio::apps::say(std::string("weftio-litmus: ") + failed.what());
    return 2;
}
