// Message rates and round trips of queue pairs of kernels, compared with frames and memcpy().
//
//   ./rdma_bench                                   5 rounds: two ports that rings connect, and one port
//   ./rdma_bench --only loopback --rounds 15       for machines with two cores: rows that need one core
//   ./rdma_bench --sizes --queues                  tables by message size and by number of queue pairs
//   ./rdma_bench --ports iface:eth0 iface:eth1     over two ports that a wire connects, instead of rings
//   ./rdma_bench --veth                            root: over a veth pair of its own
//
// Each setup (rdma_setup) is opened anew in each round, one at a time. A row and its peer are measured one after the
// other.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <CLI/CLI.hpp>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <ranges>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/arguments.hpp"
#include "common/network.hpp"
#include "common/on_core.hpp"
#include "common/table.hpp"
#include "net/crc32.hpp"
#include "rdma/measure.hpp"
#include "rdma/receives.hpp"
#include "rdma/stream.hpp"
#include "weftio/weftio.hpp"

namespace {

using namespace weftio;
using bench::rdma_setup;

constexpr std::size_t kib = 1024, mib = 1024 * kib;

struct options : bench::common_options {
    double seconds = 0.3;
    std::uint32_t trips = 20'000, idle = 1000;
    std::vector<int> words;         ///< values of --cores
    std::vector<std::string> ports; ///< two, or none
    std::string only;
    bool sizes = false, queues = false, veth = false;

    bench::rdma_cores cores() const { return {words[0], words[1], words[2], words[3]}; }
};

/// A figure that is measured on one setup.
struct measurement {
    std::string name, peer;
    const char* unit;
    double in_unit; ///< factor from the result of `measure` to `unit`
    std::function<double(const rdma_setup&)> measure;
    bool once = false; ///< measured in the first round only
};

struct group {
    std::function<std::unique_ptr<rdma_setup>()> open;
    std::vector<measurement> all;
};

/// One hyperthread of each core if there are enough cores, so that no kernel slows an engine down.
std::vector<int> cores_apart(std::size_t count)
{
    const std::vector<int> usable = bench::usable_cores();
    std::set<std::string> seen;
    std::vector<int> apart;
    for (const int core : usable) {
        std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", core));
        std::string siblings;
        if (!(file >> siblings) || seen.insert(siblings).second)
            apart.push_back(core);
    }
    const std::vector<int>& from = apart.size() < count ? usable : apart;
    std::vector<int> cores;
    for (std::size_t at = 0; at < count; ++at) // if there are too few, consecutive threads share one
        cores.push_back(from[from.size() < count ? at * from.size() / count : at]);
    return cores;
}

measurement small(const std::string& name, const std::string& peer, std::uint32_t queues, double seconds)
{
    return {name, peer, "M/s", 1e-6,
            [=](const rdma_setup& setup) { return bench::small_writes(setup, queues, seconds); }};
}

/// Adds the median and the 99th percentile of the same round trips.
template <class Measure>
void add_round_trips(const options& wanted, const std::string& name, const std::string& peer, Measure&& measure,
                     std::vector<measurement>& all)
{
    const auto found = std::make_shared<bench::round_trips>();
    const auto once = [measure, cores = wanted.cores(), trips = wanted.trips](const rdma_setup& setup) {
        return measure(setup, cores, trips);
    };
    all.push_back({name, peer, "us", 1, [=](const rdma_setup& setup) {
                       *found = once(setup);
                       return found->median_us;
                   }});
    all.push_back({name + ", p99", peer.empty() ? "" : peer + ", p99", "us", 1, [=](const rdma_setup& setup) {
                       const double measured = std::exchange(found->p99_us, 0); // 0: the median was not measured
                       return measured != 0 ? measured : once(setup).p99_us;
                   }});
}

/// Adds the rate of a busy queue pair, alone and beside `pairs` idle queue pairs of its port.
void add_idle(const options& wanted, const std::string& where, std::uint32_t pairs, std::vector<measurement>& all)
{
    const std::string alone = "write 8 B, alone, " + where;
    all.push_back(small(alone, "", 1, wanted.seconds));
    all.push_back({fmt::format("write 8 B, beside {} idle, {}", wanted.idle, where), alone, "M/s", 1e-6,
                   [=, seconds = wanted.seconds](const rdma_setup& setup) {
                       return bench::small_writes_beside(setup, pairs, seconds);
                   }});
}

/// Two ports: all rows.
std::vector<measurement> over_a_wire(const options& wanted, const std::string& where)
{
    const double seconds = wanted.seconds;
    const bench::rdma_cores cores = wanted.cores();
    const std::string method = net::crc32_methods().front().name, frames = "frames of a path MTU, " + where,
                      one = "write 8 B inline, " + where;
    std::vector<measurement> all{
        {frames, "", "Gb/s", 8e-9,
         [=](const rdma_setup& setup) {
             return setup.path_mtu() * bench::frames(setup, cores, setup.path_mtu(), seconds);
         }},
        {fmt::format("write 1 MiB, {} (ICRC by {})", where, method), frames, "Gb/s", 8e-9,
         [=](const rdma_setup& setup) { return bench::written_bytes(setup, mib, seconds); }},
        {"read 1 MiB, " + where, frames, "Gb/s", 8e-9,
         [=](const rdma_setup& setup) { return bench::read_bytes(setup, mib, seconds); }},
        small(one, "", 1, seconds),
        small("write 8 B inline, 64 queues, " + where, one, 64, seconds),
        {"send 1 KiB, " + where, "", "M/s", 1e-6,
         [=](const rdma_setup& setup) { return bench::sent_messages(setup, cores, 1024, seconds); }},
        {"fetch_add, " + where, "", "M/s", 1e-6,
         [=](const rdma_setup& setup) { return bench::fetched_and_added(setup, seconds); }}};
    const std::string bare = "round trip of a frame, " + where;
    add_round_trips(wanted, bare, "", bench::frame_ping_pong, all);
    add_round_trips(wanted, "round trip 8 B, " + where, bare, bench::ping_pong, all);
    add_idle(wanted, where, wanted.idle, all);
    return all;
}

/// Two ports, one core: the calling thread runs both engines, so that the figures are the cost of both ends together.
std::vector<measurement> on_one_core(const options& wanted)
{
    const double seconds = wanted.seconds;
    return {small("write 8 B inline, ring, one core", "", 1, seconds),
            {"write 1 MiB, ring, one core", "", "Gb/s", 8e-9,
             [=](const rdma_setup& setup) { return bench::written_bytes(setup, mib, seconds); }},
            {"read 1 MiB, ring, one core", "", "Gb/s", 8e-9,
             [=](const rdma_setup& setup) { return bench::read_bytes(setup, mib, seconds); }},
            {"write 4 KiB, ring, one core", "", "Gb/s", 8e-9,
             [=](const rdma_setup& setup) { return bench::written_bytes(setup, 4096, seconds); }}};
}

/// Two ports, a core for each: the calling thread runs the near engine.
std::vector<measurement> on_two_cores(const options& wanted, const std::string& where)
{
    return {small(fmt::format("write 8 B inline, {}, two cores", where), "", 1, wanted.seconds)};
}

/// One port, one core: a wait of the calling thread runs the engine.
std::vector<measurement> at_one_port(const options& wanted)
{
    const double seconds = wanted.seconds;
    const std::string copied = "memcpy 64 KiB", small_one = "write 8 B inline, loopback inline",
                      large_one = "write 64 KiB, loopback inline",
                      registered = "register and destroy 1 MiB, loopback inline",
                      sent = "send 1 KiB and take it, loopback inline";
    std::vector<measurement> all{
        {"memory a queue pair, beside its rings", "", "bytes", 1,
         [count = wanted.idle](const rdma_setup& setup) { return bench::bytes_of_a_queue_pair(setup, count); }, true},
        small(small_one, "", 1, seconds),
        {"write 8 B inline, loopback inline, through a window", small_one, "M/s", 1e-6,
         [=](const rdma_setup& setup) { return bench::small_writes_through_window(setup, seconds); }},
        {copied, "", "Gb/s", 8e-9, [=](const rdma_setup& setup) { return bench::copied_bytes(setup, 65536, seconds); }},
        {large_one, copied, "Gb/s", 8e-9,
         [=](const rdma_setup& setup) { return bench::written_bytes(setup, 65536, seconds); }},
        {"write 64 KiB, loopback inline, through a window", large_one, "Gb/s", 8e-9,
         [=](const rdma_setup& setup) { return bench::written_bytes(setup, 65536, seconds, bench::named_by::window); }},
        {"exchanges of 240 queue pairs, loopback inline", "", "k/s", 1e-3,
         [=](const rdma_setup& setup) { return bench::exchanges(setup, 240, seconds); }},
        {registered, "", "M/s", 1e-6,
         [=](const rdma_setup& setup) { return bench::registered_and_destroyed(setup, false, seconds); }},
        {"bind and invalidate 1 MiB, loopback inline", registered, "M/s", 1e-6,
         [=](const rdma_setup& setup) { return bench::bound_and_invalidated(setup, false, seconds); }},
        {sent, "", "M/s", 1e-6,
         [=](const rdma_setup& setup) { return bench::sent_and_taken(setup, bench::receive_ring::own, kib, seconds); }},
        {"send 1 KiB and take it, loopback inline, shared receives", sent, "M/s", 1e-6,
         [=](const rdma_setup& setup) {
             return bench::sent_and_taken(setup, bench::receive_ring::shared, kib, seconds);
         }},
        {"send 1 KiB and take it, loopback inline, datagrams", sent, "M/s", 1e-6,
         [=](const rdma_setup& setup) { return bench::datagrams_taken(setup, kib, seconds); }}};
    add_idle(wanted, "loopback inline", wanted.idle / 2, all);
    return all;
}

/// One port whose engine has a thread, which other WRITEs keep busy: a change of a region waits for its turn.
void add_changes_beside_writes(const options& wanted, std::vector<measurement>& all)
{
    const double seconds = wanted.seconds;
    const std::string registered = "register and destroy 1 MiB, beside writes";
    all.push_back({registered, "", "M/s", 1e-6,
                   [=](const rdma_setup& setup) { return bench::registered_and_destroyed(setup, true, seconds); }});
    all.push_back({"bind and invalidate 1 MiB, beside writes", registered, "M/s", 1e-6,
                   [=](const rdma_setup& setup) { return bench::bound_and_invalidated(setup, true, seconds); }});
}

std::string words_of(std::size_t bytes)
{
    return bytes < 1024  ? fmt::format("{} B", bytes)
           : bytes < mib ? fmt::format("{} KiB", bytes / 1024)
                         : fmt::format("{} MiB", bytes / mib);
}

std::vector<measurement> by_size(const options& wanted, const std::string& where)
{
    std::vector<measurement> all;
    constexpr std::size_t sizes[] = {8,        32,       128,       512,       2 * kib, 8 * kib,
                                     32 * kib, 64 * kib, 128 * kib, 512 * kib, 2 * mib, 8 * mib};
    for (const std::size_t bytes : sizes)
        all.push_back({fmt::format("write {}, {}, by size", words_of(bytes), where), "", "Gb/s", 8e-9,
                       [=, seconds = wanted.seconds](const rdma_setup& setup) {
                           return bench::written_bytes(setup, bytes, seconds);
                       }});
    return all;
}

std::vector<measurement> by_queues(const options& wanted, const std::string& where)
{
    std::vector<measurement> all;
    for (std::uint32_t queues = 1; queues <= 256; queues *= 4)
        all.push_back(
            small(fmt::format("write 8 B inline, {}, queues: {}", where, queues), "", queues, wanted.seconds));
    return all;
}

std::vector<group> groups(const options& wanted)
{
    const bench::rdma_cores cores = wanted.cores();
    const bool given = !wanted.ports.empty();
    const auto wire = [=] {
        return given ? rdma_setup::at(wanted.ports[0], wanted.ports[1], cores) : rdma_setup::on_rings(cores);
    };
    const std::string where = wanted.veth ? "veth" : given ? "ports" : "ring";
    std::vector<group> all;
    if (wanted.sizes)
        all.push_back({wire, by_size(wanted, where)});
    if (wanted.queues)
        all.push_back({wire, by_queues(wanted, where)});
    if (!all.empty())
        return all;
    if (!given) {
        std::vector<measurement> threaded;
        add_round_trips(wanted, "round trip 8 B, loopback", "", bench::ping_pong, threaded);
        add_changes_beside_writes(wanted, threaded);
        all.push_back(
            {[=] { return rdma_setup::at_one_port(cores, engine_mode::inline_worker); }, at_one_port(wanted)});
        all.push_back({[=] { return rdma_setup::at_one_port(cores, engine_mode::thread); }, threaded});
        all.push_back({[=] { return rdma_setup::on_rings(cores, engine_mode::inline_worker); }, on_one_core(wanted)});
    }
    all.push_back({wire, over_a_wire(wanted, where)});
    if (given)
        all.push_back({[=] { return rdma_setup::on_two_cores(wanted.ports[0], wanted.ports[1], cores); },
                       on_two_cores(wanted, where)});
    return all;
}

/// Keeps the rows whose name contains `part`, and their peers, and the peers of these.
void keep(std::vector<group>& groups, const std::string& part)
{
    std::set<std::string> wanted;
    for (const group& group : groups)
        for (const measurement& each : group.all | std::views::reverse) // a peer stands before its row
            if (each.name.find(part) != std::string::npos || wanted.contains(each.name))
                wanted.insert({each.name, each.peer});
    if (wanted.empty())
        throw error(
            errc::invalid_argument,
            fmt::format("rdma_bench: --only: \"{}\" matches no row; run the program without it to see them", part));
    for (group& group : groups)
        std::erase_if(group.all, [&](const measurement& each) { return !wanted.contains(each.name); });
    std::erase_if(groups, [](const group& group) { return group.all.empty(); });
}

int run(options wanted)
{
    if (wanted.veth) {
        bench::make_private_network("rdma0", "rdma1", rdma_setup::port_mtu);
        wanted.ports = {"iface:rdma0", "iface:rdma1"};
    }
    std::vector<group> all = groups(wanted);
    keep(all, wanted.only);
    std::map<std::string, std::vector<double>> values;
    std::uint32_t path_mtu = 0;
    bench::on_core here(wanted.cores().near_kernel);
    for (unsigned round = 0; round < wanted.rounds; ++round)
        for (const group& group : all) {
            const std::unique_ptr<rdma_setup> setup = group.open();
            path_mtu = setup->path_mtu();
            for (const measurement& each : group.all)
                if (round == 0 || !each.once)
                    values[each.name].push_back(each.measure(*setup) * each.in_unit);
        }
    bench::table table("rdma_bench");
    for (const group& group : all)
        for (const measurement& each : group.all)
            table.add({.name = each.name, .unit = each.unit, .values = values[each.name], .peer = each.peer});
    fmt::print("packets of {} bytes; cores {}: near kernel, near engine, far engine, far kernel; {} of {} packets "
               "retransmitted, {} timeouts\n",
               path_mtu, fmt::join(wanted.words, ","), bench::all_repeats().packets, bench::all_repeats().of,
               bench::all_repeats().timeouts);
    table.finish(wanted.json);
    return 0;
}

void add_options(CLI::App& app, options& wanted)
{
    auto add = [&app](const char* name, auto& value, const char* what) {
        return app.add_option(name, value, what)->capture_default_str();
    };
    wanted.words = cores_apart(4);
    bench::add_cores(app, wanted.words, "cores of the near kernel, near engine, far engine and far kernel");
    add("--seconds", wanted.seconds, "time for each figure in each round")->check(CLI::Range(0.001, 3600.0));
    add("--trips", wanted.trips, "round trips per round")->check(CLI::Range(100u, 100'000'000u));
    add("--idle", wanted.idle, "idle queue pairs at each port")->check(CLI::Range(2u, 16000u));
    add("--only", wanted.only, "rows whose name contains this");
    CLI::Option* const ports =
        add("--ports", wanted.ports, "two connected ports, as for port::open, instead of rings")->expected(2);
    app.add_flag("--veth", wanted.veth, "instead of rings: a new veth pair, in a new network namespace (root)")
        ->excludes(ports);
    app.add_flag("--sizes", wanted.sizes, "measure writes of 8 B to 8 MiB instead");
    app.add_flag("--queues", wanted.queues, "measure 1 to 256 queue pairs at once instead");
    bench::add_rounds(app, wanted);
    bench::add_json(app, wanted);
}

} // namespace

int main(int argc, char** argv)
{
    options wanted;
    CLI::App app{"Message rate and round-trip time of kernels' queue pairs."};
    add_options(app, wanted);
    if (auto status = bench::read_words(app, argc, argv))
        return *status;
    return bench::ending([&] { return run(wanted); });
}
