// The clock that sends are scheduled by: its servo with fake time, its readings with real time.
#include "core/clock.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <ctime>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>

#include "unit/device/fixture.hpp"
#include "weftio/clock.hpp"

namespace weftio::test {
namespace {

using core::utc_clock;

constexpr std::uint64_t origin_ns = 1'700'000'000'000'000'000;
constexpr double look_s = 0.02;

/// A counter of 2 ticks a nanosecond whose true rate is off, and a CLOCK_REALTIME that somebody may step.
class fake_time {
 public:
    explicit fake_time(double drift, double first_guess = 0.5)
        : ns_per_tick_(0.5 * (1 + drift)), clock_{0, origin_ns, 0, first_guess}
    {}

    /// Steers for `seconds`. Returns the rate of the clock over the last step, relative to true time.
    double run(double seconds)
    {
        double rate = 0;
        for (double passed = 0; passed < seconds; passed += look_s) {
            std::uint64_t before_ticks = ticks_, before_ns = clock_.at(ticks_);
            ticks_ += static_cast<std::uint64_t>(look_s * 2e9);
            clock_.steer(ticks_, real_ns(), true_ns() + static_cast<std::uint64_t>(steady_ns_), ticks_);
            std::uint64_t now_ns = clock_.at(ticks_);
            backwards_ += now_ns < before_ns;
            rate =
                static_cast<double>(now_ns - before_ns) / (static_cast<double>(ticks_ - before_ticks) * ns_per_tick_);
            fastest_ = std::max(fastest_, rate - 1);
            slowest_ = std::min(slowest_, rate - 1);
        }
        return rate;
    }
    void step(std::int64_t ns) { stepped_ns_ += ns; }
    /// The machine is suspended. The counter continues from `ticks`; CLOCK_MONOTONIC_RAW stands still.
    void suspend(double seconds, std::uint64_t ticks)
    {
        const std::uint64_t before_ns = clock_.at(ticks_), real_before = real_ns();
        steady_ns_ += static_cast<std::int64_t>(true_ns());
        ticks_ = ticks;
        steady_ns_ -= static_cast<std::int64_t>(true_ns());
        stepped_ns_ += static_cast<std::int64_t>(real_before - real_ns()) + static_cast<std::int64_t>(seconds * 1e9);
        clock_.resume(ticks_, real_ns(), true_ns() + static_cast<std::uint64_t>(steady_ns_));
        backwards_ += clock_.at(ticks_) < before_ns;
    }
    std::uint64_t ticks() const { return ticks_; }
    std::int64_t offset_ns() const { return static_cast<std::int64_t>(clock_.at(ticks_) - real_ns()); }
    void forget_extremes() { fastest_ = slowest_ = 0; }
    double fastest() const { return fastest_; }
    double slowest() const { return slowest_; }
    int backwards() const { return backwards_; }

 private:
    std::uint64_t true_ns() const { return static_cast<std::uint64_t>(static_cast<double>(ticks_) * ns_per_tick_); }
    std::uint64_t real_ns() const { return origin_ns + true_ns() + static_cast<std::uint64_t>(stepped_ns_); }

    double ns_per_tick_;
    std::uint64_t ticks_ = 0;
    std::int64_t stepped_ns_ = 0, steady_ns_ = 0;
    utc_clock clock_;
    double fastest_ = 0, slowest_ = 0;
    int backwards_ = 0;
};

TEST(UtcClock, ReadsALine)
{
    utc_clock clock(1000, origin_ns, 0, 0.25);
    EXPECT_EQ(clock.at(1000), origin_ns);
    EXPECT_EQ(clock.at(5000), origin_ns + 1000);
    EXPECT_EQ(clock.at(996), origin_ns - 1);
    EXPECT_EQ(clock.at(1000 + 4'000'000'000'000), origin_ns + 1'000'000'000'000);
}

TEST(UtcClock, LearnsTheDriftOfItsCounter)
{
    for (double drift : {-300e-6, -20e-6, 0.0, 50e-6, 400e-6}) {
        fake_time time(drift);
        double rate = time.run(20);
        EXPECT_NEAR(rate, 1, 0.2e-6) << drift;
        EXPECT_LE(std::abs(time.offset_ns()), 200) << drift;
        EXPECT_EQ(time.backwards(), 0);
    }
}

TEST(UtcClock, GetsOverAFirstGuessThatWasDisturbed)
{
    for (double wrong : {0.3, 0.45, 0.502, 0.55, 0.9}) {
        fake_time time(10e-6, wrong);
        time.run(1);
        time.forget_extremes();
        time.run(10);
        EXPECT_LE(time.fastest(), 501e-6) << wrong;
        EXPECT_GE(time.slowest(), -501e-6) << wrong;
        EXPECT_EQ(time.backwards(), 0) << wrong;
    }
}

TEST(UtcClock, WorksASmallOffsetOff)
{
    fake_time time(10e-6);
    time.run(20);
    time.step(100'000); // in 20 ms: a rate of 5000 ppm, which nothing has
    EXPECT_NEAR(static_cast<double>(time.offset_ns()), -100'000, 1000);
    time.run(10);
    EXPECT_LE(std::abs(time.offset_ns()), 1000);
}

TEST(UtcClock, SlewsNoFasterThan500PpmWhenTheSystemClockIsStepped)
{
    for (std::int64_t step_ns : {1'000'000'000, -1'000'000'000}) {
        fake_time time(30e-6);
        time.run(20);
        time.forget_extremes();
        time.step(step_ns);
        std::int64_t before_ns = time.offset_ns();
        time.run(60);
        EXPECT_EQ(time.backwards(), 0);
        EXPECT_LE(time.fastest(), 501e-6);
        EXPECT_GE(time.slowest(), -501e-6);
        double worked_off = static_cast<double>(time.offset_ns() - before_ns);
        EXPECT_NEAR(worked_off, step_ns > 0 ? 30e6 : -30e6, 0.2e6); // 500 ppm of 60 s
    }
}

TEST(UtcClock, GoesOnWithTheSystemClockAfterASuspension)
{
    for (const bool restarts : {false, true}) {
        fake_time time(30e-6);
        time.run(20);
        time.suspend(3600, restarts ? 1000 : time.ticks());
        EXPECT_LE(std::abs(time.offset_ns()), 1000) << restarts;
        time.forget_extremes();
        time.run(10);
        EXPECT_LE(std::abs(time.offset_ns()), 1000) << restarts;
        EXPECT_LE(time.fastest(), 501e-6) << restarts;
        EXPECT_GE(time.slowest(), -501e-6) << restarts;
        EXPECT_EQ(time.backwards(), 0) << restarts;
    }
}

/// The system clock was set back before, and is still behind.
TEST(UtcClock, NeverGoesBackAfterASuspension)
{
    fake_time time(30e-6);
    time.run(20);
    time.step(-5'000'000'000);
    time.suspend(2, 1000);
    EXPECT_GT(time.offset_ns(), 0);
    EXPECT_EQ(time.backwards(), 0);
}

/// As chrony does, by up to 83,333 ppm.
TEST(UtcClock, DoesNotFollowAFastSlewOfTheSystemClock)
{
    for (std::int64_t slew_ns : {1'600'000, -1'600'000}) { // 80,000 ppm
        fake_time time(30e-6);
        time.run(20);
        time.forget_extremes();
        for (int look = 0; look < 500; ++look) {
            time.step(slew_ns);
            time.run(look_s);
        }
        time.run(10);
        EXPECT_EQ(time.backwards(), 0);
        EXPECT_LE(time.fastest(), 501e-6);
        EXPECT_GE(time.slowest(), -501e-6);
    }
}

TEST(UtcClock, StaysOnItsLineUntilTheNewRateHolds)
{
    utc_clock clock(0, origin_ns, 0, 0.5);
    std::uint64_t before = clock.at(1'000'000), later = clock.at(1'500'000);
    clock.steer(1'000'000, origin_ns + 400'000, 500'000,
                2'000'000); // it is ahead, and slows down from tick 2'000'000 on
    EXPECT_EQ(clock.at(1'000'000), before);
    EXPECT_EQ(clock.at(1'500'000), later);
    EXPECT_EQ(clock.at(2'000'000), origin_ns + 1'000'000);
    EXPECT_LT(clock.at(202'000'000), origin_ns + 101'000'000);
    EXPECT_GT(clock.at(202'000'000), origin_ns + 100'800'000);
}

TEST(UtcClock, AgreesWithTheSystemClock)
{
    using namespace std::chrono;
    auto real_ns = [] {
        return static_cast<std::uint64_t>(duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count());
    };
    constexpr std::uint64_t margin_ns = 500'000'000; // the machine may have been busy while the clock was young
    std::uint64_t before = real_ns(), ours = utc_now_ns(), after = real_ns();
    EXPECT_GE(ours + margin_ns, before);
    EXPECT_LE(ours, after + margin_ns);
}

TEST(UtcClock, StampsWhatHasJustBeenDone)
{
    const utc_clock& clock = utc_clock::instance();
    for (int round = 0; round < 10000; ++round) {
        const std::uint64_t before_ns = clock.now_ns(), stamp_ns = clock.stamp_ns(), after_ns = clock.now_ns();
        ASSERT_GE(stamp_ns + 1000, before_ns); // early by what a processor does ahead, at most
        ASSERT_LE(stamp_ns, after_ns);
    }
}

TEST(UtcClock, NeverGoesBackWhoeverReadsItAndSteersIt)
{
    std::atomic<std::uint64_t> latest{0};
    std::atomic<std::uint32_t> backwards{0};
    std::vector<std::thread> readers;
    for (int reader = 0; reader < 3; ++reader)
        readers.emplace_back([&] {
            for (int look = 0; look < 200000; ++look) {
                std::uint64_t seen = latest.load();
                std::uint64_t now = utc_now_ns(); // steers too
                // Counters of two cores may differ by less than the time that a store takes from one to the other.
                backwards += now + 100 < seen;
                latest.store(now);
            }
        });
    for (std::thread& reader : readers)
        reader.join();
    EXPECT_EQ(backwards.load(), 0u);
}

/// What a signal handler can see.
std::atomic<std::uint64_t> reads{0};
std::atomic<int> held{0};
std::atomic<bool> reader_waited{false};

/// Holds its thread until another has read the clock, as the scheduler may hold it wherever it is.
void hold_until_read(int)
{
    timespec begin{}, now{};
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (std::uint64_t before = reads; reads < before + 2 && !reader_waited; sched_yield()) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        reader_waited = now.tv_sec - begin.tv_sec > 10;
    }
    ++held;
}

TEST(UtcClock, IsReadWhileTheThreadThatSteersItHasLostItsCore)
{
    utc_clock clock(0, origin_ns, 0, 1.0);
    std::atomic<bool> steered{false}, read{false};
    struct sigaction action {
    }, before{};
    action.sa_handler = hold_until_read;
    sigaction(SIGUSR2, &action, &before);
    std::thread steering([&] {
        for (std::uint64_t at = 1000; !steered; at += 1000)
            clock.steer(at, origin_ns + at, at, at);
    });
    std::thread reading([&] {
        for (; !read; ++reads)
            static_cast<void>(clock.at(5000));
    });
    for (int signal = 0; signal < 100 && !reader_waited; ++signal) {
        pthread_kill(steering.native_handle(), SIGUSR2);
        while (held <= signal) // signals that wait become one
            std::this_thread::yield();
    }
    steered = true;
    steering.join();
    read = true;
    reading.join();
    sigaction(SIGUSR2, &before, nullptr);
    EXPECT_FALSE(reader_waited);
}

} // namespace
} // namespace weftio::test
