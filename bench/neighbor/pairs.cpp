#include "neighbor/pairs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>

#include "machine.hpp"
#include "neighbor/crowd.hpp"

namespace weftio::bench {

namespace {

using clock = std::chrono::steady_clock;

constexpr std::uint64_t patience_ns = 5'000'000'000;

/// A thread that calls step() of a crowd repeatedly, on a core.
class other_thread {
 public:
    other_thread(crowd& of, int core)
        : thread_([this, &of, core] {
              stay_on(core);
              while (!ending_.load(std::memory_order_relaxed))
                  of.step();
          })
    {}
    ~other_thread()
    {
        ending_ = true;
        thread_.join();
    }

 private:
    std::atomic<bool> ending_{false};
    std::thread thread_; ///< declared last: it uses the other members
};

const std::vector<crowd_kind>& kinds()
{
    static const std::vector<crowd_kind> all = [] {
        std::vector<crowd_kind> kinds{kind_of<idle_pairs>("idle pairs")};
        for (const auto& topic : {busy_crowds(), failing_crowds(), receiving_crowds()})
            kinds.insert(kinds.end(), topic.begin(), topic.end());
        return kinds;
    }();
    return all;
}

constexpr std::array<unsigned, 3> counts{1, 8, 32};

std::string name_of(const crowd_kind& one, unsigned count)
{
    return fmt::format("{} {}", count, one.name);
}

/// Writes 8 bytes, waits, and writes again. Sends them where the crowd has the sender.
class pinger {
 public:
    explicit pinger(ground& on)
        : on_(on), near_(on.here, on.cpu, small_rings), spare_(on.here, on.cpu, small_rings),
          end_(on.here, on.cpu, small_rings), spare_too_(on.here, on.cpu, small_rings)
    {
        near_.connect(end_.address());
        end_.connect(near_.address());
    }

    /// Round trips per second.
    double run(double seconds, crowd& beside)
    {
        constexpr std::uint64_t trips_between = 8;
        std::uint64_t trips = 0;
        const auto begin = clock::now();
        auto last = begin;
        for (std::chrono::duration<double> lasted{}; lasted.count() < seconds; lasted = last - begin) {
            if (trips++ % trips_between == 0)
                beside.go_on();
            weftio_dev_rdma* const sender = beside.good_sender();
            weftio_dev_rdma* const rdma = sender ? sender : near_.handle();
            require(sender ? weftio_dev_rdma_send(rdma, on_.region.buffer(), 8, 8, 0)
                           : weftio_dev_rdma_write(rdma, on_.remote, 0, on_.region.buffer(), 8, 8, 0),
                    "a message of the good pair");
            require(weftio_dev_rdma_commit_wait(rdma, patience_ns), "the wait of the good pair");
            const auto now = clock::now();
            longest_ = std::max(longest_, now - last);
            last = now;
        }
        return static_cast<double>(trips) / std::chrono::duration<double>(last - begin).count();
    }
    double longest_gap_us() const { return std::chrono::duration<double, std::micro>(longest_).count(); }
    void forget_gaps() { longest_ = {}; }

 private:
    ground& on_;
    /// A port gives its engines queue pairs in turn. With the spare ones, which are idle, both ends are at the first of
    /// two engines, and the next queue pair will be, too.
    rdma_queue near_, spare_, end_, spare_too_;
    clock::duration longest_{};
};

/// Work per second of the others while the good pair is idle.
double work_alone(const pair_options& wanted, port& of, crowd& others)
{
    const std::uint64_t before = others.work();
    const auto begin = clock::now();
    std::chrono::duration<double> lasted{};
    for (; lasted.count() < wanted.seconds; lasted = clock::now() - begin) {
        others.go_on();
        for (unsigned turns = 0; turns < 8 && wanted.inline_worker; ++turns)
            of.turn(0);
    }
    return static_cast<double>(others.work() - before) / lasted.count();
}

/// The figures of one kind and number of other pairs, with a value for each round.
struct kept_shares {
    std::vector<double> alone, beside, gaps; ///< millions of round trips per second (twice), and us
    std::vector<double> by_count, by_work;   ///< fair shares of the good pair
    std::vector<double> kept;                ///< part of the larger share that it keeps
    std::vector<double> lost;                ///< receives; empty: the others post none
};

/// Waits until all is done, and counts the receives that are lost, if there are any receives.
void count_lost(const pair_options& wanted, port& of, crowd& others, std::vector<double>& into)
{
    constexpr unsigned steps_when_done = 1000;
    const auto begin = clock::now();
    for (unsigned steps = 0; steps != steps_when_done;) {
        steps = others.is_done() ? steps + 1 : 0;
        others.step();
        if (wanted.inline_worker)
            of.turn(0);
        if (clock::now() - begin > std::chrono::nanoseconds(patience_ns))
            throw error(errc::device_error, "neighbor_bench: the other queue pairs do not come to their end");
    }
    if (const std::optional<std::uint64_t> lost = others.receives_lost())
        into.push_back(static_cast<double>(*lost));
}

void measure_round(const pair_options& wanted, ground& on, pinger& good, const crowd_kind& one, unsigned count,
                   kept_shares& into)
{
    {
        const std::unique_ptr<crowd> nobody = one.has_good ? one.make(on, 0) : std::make_unique<crowd>();
        const other_thread stranger(*nobody, wanted.other_core);
        into.alone.push_back(good.run(wanted.seconds, *nobody) / 1e6);
    }
    const std::unique_ptr<crowd> others = one.make(on, count);
    std::optional<other_thread> theirs;
    theirs.emplace(*others, wanted.other_core);
    good.run(0.05, *others);
    good.forget_gaps();
    const std::uint64_t before = others->work();
    const auto begin = clock::now();
    into.beside.push_back(good.run(wanted.seconds, *others) / 1e6);
    const double seconds = std::chrono::duration<double>(clock::now() - begin).count();
    const double work = static_cast<double>(others->work() - before) / seconds;
    into.gaps.push_back(good.longest_gap_us());
    into.by_count.push_back(1.0 / (count + 1));
    into.by_work.push_back(others->counts_work() ? std::max(0.0, 1 - work / work_alone(wanted, on.at, *others)) : 1.0);
    theirs.reset();
    if (others->receives_lost())
        count_lost(wanted, on.at, *others, into.lost);
    into.kept.push_back(into.beside.back() / into.alone.back() / std::max(into.by_count.back(), into.by_work.back()));
}

/// Names of the figures of a row.
struct figure_names {
    explicit figure_names(const std::string& row)
        : alone("without " + row), beside("beside " + row), gaps("longest gap beside " + row),
          by_count("share by count, " + row), by_work("share by work, " + row), kept("kept of the larger, " + row),
          lost("receives lost, " + row)
    {}
    std::string alone, beside, gaps, by_count, by_work, kept, lost;
};

void measure_row(const pair_options& wanted, ground& on, pinger& good, const crowd_kind& one, unsigned count,
                 table& into)
{
    kept_shares found;
    for (unsigned round = 0; round < wanted.rounds; ++round)
        measure_round(wanted, on, good, one, count, found);
    const figure_names names(name_of(one, count));
    into.add({.name = names.alone, .unit = "Mtrips/s", .values = found.alone});
    into.add({.name = names.beside, .unit = "Mtrips/s", .values = found.beside, .peer = names.alone});
    into.add({.name = names.gaps, .unit = "us", .values = found.gaps});
    into.add({.name = names.by_count, .unit = "share", .values = found.by_count});
    into.add({.name = names.by_work, .unit = "share", .values = found.by_work});
    into.add({.name = names.kept, .unit = "share", .values = found.kept});
    if (!found.lost.empty())
        into.add({.name = names.lost, .unit = "receives", .values = found.lost});
}

/// A port of its own, and the good pair.
struct place {
    place(const pair_options& wanted, const device& cpu, bool two_engines)
        : on(open_for(wanted, two_engines ? 2 : 1), cpu, wanted.inline_worker, wanted.gpu), good(on)
    {}

    ground on;
    pinger good;
};

template <class Each>
void for_each_row(const pair_options& wanted, Each&& each)
{
    for (const crowd_kind& one : kinds())
        for (const unsigned count : counts)
            if (std::string_view(name_of(one, count)).find(wanted.only) != std::string_view::npos)
                each(one, count);
}

} // namespace

std::vector<std::string> pair_rows()
{
    std::vector<std::string> names;
    for (const crowd_kind& one : kinds())
        for (const unsigned count : counts)
            names.push_back(name_of(one, count));
    return names;
}

void measure_pairs(const pair_options& wanted, const device& cpu, table& into)
{
    if (!wanted.missing.empty())
        return for_each_row(wanted, [&](const crowd_kind& one, unsigned count) {
            into.leave_out(figure_names(name_of(one, count)).kept, wanted.missing);
        });
    for (const bool two_engines : {false, true}) {
        std::optional<place> at; // if there is such a row
        for_each_row(wanted, [&](const crowd_kind& one, unsigned count) {
            if (one.two_engines != two_engines)
                return;
            if (two_engines && !wanted.inline_worker)
                return into.leave_out(figure_names(name_of(one, count)).kept, "needs --mode inline");
            if (one.on_gpu && wanted.gpu.empty())
                return into.leave_out(figure_names(name_of(one, count)).kept, "needs -g cuda:N");
            if (!at)
                at.emplace(wanted, cpu, two_engines);
            measure_row(wanted, at->on, at->good, one, count, into);
        });
    }
}

} // namespace weftio::bench
