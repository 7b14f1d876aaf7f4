// Somebody steps and slews CLOCK_REALTIME while a kernel sends on time: the frames do not notice.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <ctime>

#include <fmt/format.h>

#include "core/clock.hpp"
#include "send_kernels.h"
#include "sending_port.hpp"
#include "weftio/clock.hpp"

WEFTIO_DEFINE_KERNEL(send_on_time, "send_kernels.h");

extern "C" int __real_clock_gettime(clockid_t clock, timespec* time);

namespace {

constexpr std::int64_t second = 1'000'000'000;
std::atomic<std::int64_t> stepped_ns{0}, slew_ppm{0}, slews_since_ns{0};

std::int64_t in_ns(const timespec& time)
{
    return time.tv_sec * second + time.tv_nsec;
}

std::int64_t true_ns()
{
    timespec now{};
    __real_clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return in_ns(now);
}

/// Over so many nanoseconds of true time.
std::int64_t slewed_ns(std::int64_t now_ns)
{
    return static_cast<std::int64_t>(static_cast<double>(now_ns - slews_since_ns) * static_cast<double>(slew_ppm) /
                                     1e6);
}

void step(std::int64_t ns)
{
    stepped_ns += ns;
}

void slew(std::int64_t ppm)
{
    std::int64_t now_ns = true_ns(), until_now_ns = slewed_ns(now_ns);
    slew_ppm = 0;
    stepped_ns += until_now_ns;
    slews_since_ns = now_ns;
    slew_ppm = ppm;
}

} // namespace

/// The linker sends the calls of the library and of these tests here.
extern "C" int __wrap_clock_gettime(clockid_t clock, timespec* time)
{
    int result = __real_clock_gettime(clock, time);
    if (clock == CLOCK_REALTIME && result == 0) {
        std::int64_t ns = in_ns(*time) + stepped_ns + slewed_ns(true_ns());
        *time = {.tv_sec = ns / second, .tv_nsec = ns % second};
    }
    return result;
}

namespace weftio::test {
namespace {

struct disturbance {
    const char* what;
    void (*make)(std::int64_t);
    std::int64_t value;
    double slew; ///< of CLOCK_REALTIME from here on, which the clock may learn to follow
};

constexpr std::array disturbances{
    disturbance{"a step of a second ahead", step, second, 0},
    disturbance{"a step of a second back", step, -second, 0},
    disturbance{"a step of half a second ahead", step, second / 2, 0},
    disturbance{"a step of half a second back", step, -second / 2, 0},
    disturbance{"a leap of an hour ahead", step, 3600 * second, 0},
    disturbance{"a leap of an hour back", step, -3600 * second, 0},
    disturbance{"a slew of 400 ppm", slew, 400, 400e-6},
    disturbance{"a slew of 80,000 ppm", slew, 80'000, 0},
    disturbance{"the end of all slews", slew, 0, 0},
};

/// What the clock showed and when, without a moment in between at which the reader may lose its core.
struct reading {
    std::uint64_t ticks, ns;
};

reading read_clock()
{
    std::uint64_t ticks = core::utc_clock::ticks();
    return {ticks, core::utc_clock::instance().at(ticks)};
}

/// Nanoseconds of true time a tick, over `seconds`: right within 1 ppm, or 10 where somebody else has the core.
double ns_per_tick(double seconds)
{
    auto look = [] {
        std::array<std::uint64_t, 3> best{0, 0, ~std::uint64_t{0}};
        for (int attempt = 0; attempt < 100; ++attempt) {
            std::uint64_t before = core::utc_clock::ticks();
            auto ns = static_cast<std::uint64_t>(true_ns());
            std::uint64_t doubt = core::utc_clock::ticks() - before;
            if (doubt < best[2])
                best = {before + doubt / 2, ns, doubt};
        }
        return best;
    };
    auto first = look();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    auto last = look();
    return static_cast<double>(last[1] - first[1]) / static_cast<double>(last[0] - first[0]);
}

class SteppedClock : public testing::Test {
 protected:
    static constexpr std::uint64_t interval_ns = 500'000;
    static constexpr std::uint32_t frames_a_step = 600, total = frames_a_step * (disturbances.size() + 1);
    static constexpr double margin = 300e-6; ///< between the counter's rate and what the clock had learnt of it
    static constexpr std::uint64_t shortest_ns =
        100'000; ///< between two readings that are compared: a rounding is 10 ppm

    ~SteppedClock() override { slew(0), stepped_ns = 0; }

    /// How far the clock's rate has been from true time between readings, at most; it may not have gone back at all.
    double worst_rate(const std::vector<reading>& readings) const
    {
        double worst = 0;
        reading before = readings.front();
        for (const reading& now : readings) {
            EXPECT_GE(now.ns, before.ns);
            if (now.ns < before.ns + shortest_ns)
                continue;
            double rate =
                static_cast<double>(now.ns - before.ns) / (static_cast<double>(now.ticks - before.ticks) * tick_ns);
            worst = std::max(worst, std::abs(rate - 1));
            before = now;
        }
        return worst;
    }
    /// Takes frames until number `end`, as they come, and adds to `readings` what the clock showed then.
    void take_until(std::uint32_t end, std::vector<reading>& readings)
    {
        bool came = eventually([&] {
            for (int look = 0; look < 100 && taken < end; ++look) {
                std::vector<bytes> frames = port.take();
                readings.push_back(read_clock());
                for (const bytes& frame : frames) {
                    EXPECT_EQ(number_in(frame), taken) << "lost, or out of order";
                    EXPECT_GE(readings.back().ns, start_ns + taken * interval_ns) << "early, frame " << taken;
                    ++taken;
                }
                std::this_thread::sleep_for(std::chrono::microseconds(100));
            }
            return taken >= end || testing::Test::HasFailure();
        });
        EXPECT_TRUE(came) << taken << " of " << total;
    }

    device cpu = device::open("cpu");
    sending_port port{{.mode = engine_mode::thread}};
    eth_txq queue{port.get(), cpu, {.entries = 128}};
    numbered_buffers frames{port.get(), cpu, total};
    double tick_ns = ns_per_tick(0.5);
    std::uint64_t start_ns = 0;
    std::uint32_t taken = 0;
};

TEST_F(SteppedClock, DoesNotMoveFramesThatAreSentOnTime)
{
    start_ns = utc_now_ns() + 50'000'000;
    running_kernel kernel =
        cpu.launch(send_on_time_kernel, {}, queue, frames.array(), eth_txq::timestamp(start_ns), interval_ns, total);
    std::vector<reading> readings{read_clock()};
    std::uint32_t end = frames_a_step;
    take_until(end, readings);
    EXPECT_LE(worst_rate(readings), 500e-6 + margin) << "before any step";
    for (const disturbance& disturbance : disturbances) {
        if (HasFailure())
            break;
        disturbance.make(disturbance.value);
        readings = {readings.back()};
        take_until(end += frames_a_step, readings);
        EXPECT_LE(worst_rate(readings), 500e-6 + margin + disturbance.slew) << disturbance.what;
    }
    kernel.stop();
    EXPECT_TRUE(kernel.wait_for(patience));
    EXPECT_TRUE(eventually([&] {
        port.take();
        eth_txq_counters counters = queue.counters();
        return conserves(counters) && counters.sent + counters.flushed >= taken;
    }));
    eth_txq_counters counters = queue.counters();
    EXPECT_EQ(taken, total);
    EXPECT_EQ(counters.sent, total);
    EXPECT_EQ(counters.waited, total);
    EXPECT_EQ(queue.schedule().count, total);
    EXPECT_EQ(counters.tx_pp_timestamp_future_errors + counters.tx_pp_timestamp_order_errors, 0u);
}

} // namespace
} // namespace weftio::test
