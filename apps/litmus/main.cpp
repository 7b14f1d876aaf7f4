// weftio-litmus: whether who has seen a flag that an RDMA device wrote sees the data that it wrote before.
//
//   weftio-litmus -d mlx5_0
//   weftio-litmus -d mlx5_0 --gpu 0
//   weftio-run --wire w -- weftio-litmus --trials 100000
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <exception>
#include <new>
#include <optional>

#include "output.hpp"
#include "report.hpp"

namespace {

using namespace weftio::litmus;

std::atomic<bool> interrupted{false};

int print(const std::string& text)
{
    return weftio::apps::no_complaint(weftio::apps::print_out(text)) ? 0 : 1;
}

/// GPUs are opened where they are asked for. Throws failure.
struct parts {
    explicit parts(const command& wanted)
    {
        on.nic = nic(wanted.port, 16).words(); // without it there is no row, and no table
        on.port = wanted.port;
        if (!wanted.second.empty()) {
            on.second = {.device = wanted.second, .port = wanted.port.port};
            on.second_nic = nic(on.second, 16).words();
            if (on.second_nic.name == on.nic.name)
                throw failure(
                    fmt::format("--second {}: that is the first device, too; give another one, or -d", wanted.second));
        }
        if (!wanted.gpu.empty())
            on.owner = &owner.emplace(wanted.gpu);
        if (!wanted.peer_gpu.empty()) {
            on.peer = &peer.emplace(wanted.peer_gpu);
            peer->reach(*owner);
        }
    }

    std::optional<gpu> owner, peer;
    machine on;
};

outcome run_or_refuse(const cell& each, const command& wanted, machine& on)
try {
    if (std::string why = why_not(each, on); !why.empty())
        return {.of = each, .refused = std::move(why), .never = true};
    return run(each, wanted.trial, on, [] { return interrupted.load(); });
} catch (const access_refused& refused) {
    on.atomics_in_gpu = on.atomics_in_gpu && (each.by != writer::write_then_atomic || !each.flag_in_gpu());
    std::string why = why_not(each, on);
    const bool never = !why.empty();
    return {.of = each, .refused = never ? std::move(why) : refused.what(), .never = never};
} catch (const failure& refused) {
    return {.of = each, .refused = refused.what()};
} catch (const std::bad_alloc&) {
    return {.of = each, .refused = "there is no memory for it; give a smaller --bytes or --pairs"};
}

int status_of(const std::vector<outcome>& all)
{
    const auto has_run = [](const outcome& each) { return !each.never; };
    int status = interrupted ? 128 + SIGINT : std::ranges::any_of(all, has_run) ? 0 : 2;
    for (const outcome& each : all)
        if (each.stale != 0)
            status = 3;
        else if (!each.refused.empty() && !each.never && status == 0)
            status = 2;
    return status;
}

int measure(const command& wanted)
{
    parts machine(wanted);
    std::vector<outcome> all;
    if (!wanted.json && print(table_head(wanted, machine.on)) != 0)
        return 1;
    for (const cell& each : wanted.cells) {
        if (interrupted)
            break;
        all.push_back(run_or_refuse(each, wanted, machine.on));
        if (!wanted.json && !all.back().never && print(table_row(all.back())) != 0)
            return 1;
    }
    if (print(wanted.json ? to_json(wanted, machine.on, all) : table_end(all)) != 0)
        return 1;
    return status_of(all);
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
