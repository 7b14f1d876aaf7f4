// Deadlines: kept, counted, and reported. The arithmetic with a fake clock, the queues with bounds that only patience
// sets.
#include "nic/soft/send/pacing.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>

#include "core/clock.hpp"
#include "sending_port.hpp"
#include "software_nic.hpp"

namespace weftio::test {
namespace {

constexpr std::uint64_t ms = 1'000'000, second = 1'000'000'000;

TEST(Lateness, KnowsSmallValuesExactly)
{
    nic::soft::lateness late;
    EXPECT_EQ(late.quantile_ns(0.5), 0u);
    for (std::uint64_t value = 0; value < 64; ++value)
        late.record(value);
    EXPECT_EQ(late.quantile_ns(0.5), 31u);
    EXPECT_EQ(late.quantile_ns(1), 63u);
    EXPECT_EQ(late.max_ns(), 63u);
    EXPECT_EQ(late.count(), 64u);
}

TEST(Lateness, IsWithinThreePercentOfSortedValues)
{
    std::mt19937_64 random(3);
    for (double spread : {4.0, 12.0, 25.0, 62.9}) {
        nic::soft::lateness late;
        std::vector<std::uint64_t> values;
        for (int i = 0; i < 20000; ++i) {
            values.push_back(
                static_cast<std::uint64_t>(std::exp2(spread * static_cast<double>(random() % 1'000'000) / 1e6)));
            late.record(values.back());
        }
        std::sort(values.begin(), values.end());
        for (double share : {0.001, 0.25, 0.5, 0.99, 0.999, 1.0}) {
            std::uint64_t exact = values[static_cast<std::size_t>(std::ceil(share * 20000)) - 1];
            EXPECT_GE(late.quantile_ns(share), exact);
            EXPECT_LE(static_cast<double>(late.quantile_ns(share)), static_cast<double>(exact) * 1.032)
                << spread << " " << share;
        }
        EXPECT_EQ(late.max_ns(), values.back());
        EXPECT_EQ(late.quantile_ns(1), values.back());
    }
}

TEST(Lateness, HasRoomForTheLargestValue)
{
    nic::soft::lateness late;
    late.record(~std::uint64_t{0});
    EXPECT_EQ(late.quantile_ns(0.5), ~std::uint64_t{0});
}

TEST(Pacing, HoldsUntilADeadlineAhead)
{
    nic::soft::pacing pacing(4 * second);
    ASSERT_TRUE(pacing.begin(1000 * second + 5, 1000 * second));
    EXPECT_TRUE(pacing.holding());
    EXPECT_EQ(pacing.deadline_ns(), 1000 * second + 5);
    pacing.end();
    EXPECT_FALSE(pacing.holding());
    pacing.handed_over(1000 * second + 12);
    pacing.handed_over(1000 * second + 99); // more frames behind the same wait
    EXPECT_EQ(pacing.error.count(), 1u);
    EXPECT_EQ(pacing.error.max_ns(), 7u);
    EXPECT_EQ(pacing.past_errors.value() + pacing.future_errors.value() + pacing.order_errors.value(), 0u);
}

TEST(Pacing, CountsWhatIsPastAndDoesNotHold)
{
    nic::soft::pacing pacing(4 * second);
    for (std::uint64_t deadline : {999 * second, 1000 * second}) {
        ASSERT_TRUE(pacing.begin(deadline, 1000 * second));
        EXPECT_FALSE(pacing.holding());
    }
    EXPECT_EQ(pacing.past_errors.value(), 2u);
}

TEST(Pacing, RefusesWhatIsBeyondTheHorizonAndStaysAsItWas)
{
    nic::soft::pacing pacing(4 * second);
    ASSERT_TRUE(pacing.begin(1004 * second, 1000 * second));
    EXPECT_FALSE(pacing.begin(1004 * second + 1, 1000 * second));
    EXPECT_EQ(pacing.future_errors.value(), 1u);
    EXPECT_EQ(pacing.deadline_ns(), 1004 * second);
}

TEST(Pacing, CountsDeadlinesOutOfOrder)
{
    nic::soft::pacing pacing(4 * second);
    for (std::uint64_t deadline : {1001u, 1002u, 1002u, 1001u, 1003u})
        ASSERT_TRUE(pacing.begin(deadline * second, 1000 * second));
    EXPECT_EQ(pacing.order_errors.value(), 1u);
    pacing.forget();
    ASSERT_TRUE(pacing.begin(1001 * second, 1000 * second)); // a queue that starts again
    EXPECT_EQ(pacing.order_errors.value(), 1u);
}

/// Queues in inline mode: the test turns the engine, and sees the clock at every frame.
class TimedQueue : public testing::Test {
 protected:
    static constexpr std::uint32_t depth = 2048;

    void send(const eth_txq& queue, std::uint32_t number)
    {
        ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(queue.handle(), frames[number], 60, WEFTIO_DEV_SEND_NOTIFY),
                  WEFTIO_DEV_OK);
    }
    void wait(const eth_txq& queue, std::uint64_t deadline_ns)
    {
        ASSERT_EQ(weftio_dev_eth_txq_wait_time_enqueue_strong(queue.handle(), eth_txq::timestamp(deadline_ns), 0),
                  WEFTIO_DEV_OK);
    }
    void push(const eth_txq& queue)
    {
        weftio_dev_eth_txq_commit_strong(queue.handle());
        weftio_dev_eth_txq_push(queue.handle());
    }
    /// Turns until `count` frames have come; each with the time at which it was there.
    std::vector<std::pair<bytes, std::uint64_t>> take(std::size_t count)
    {
        std::vector<std::pair<bytes, std::uint64_t>> taken;
        EXPECT_TRUE(eventually([&] {
            for (int turn = 0; turn < 1000 && taken.size() < count; ++turn) {
                port.get().turn();
                for (bytes& frame : port.take())
                    taken.emplace_back(std::move(frame), core::utc_now_ns());
            }
            return taken.size() >= count;
        }));
        port.run_dry();
        return taken;
    }

    device cpu = device::open("cpu");
    sending_port port;
    eth_txq queue{port.get(), cpu, {.entries = depth, .horizon_ns = 2 * an_hour_ns}},
        other{port.get(), cpu, {.entries = depth, .horizon_ns = 2 * an_hour_ns}};
    numbered_buffers frames{port.get(), cpu, 1000};
};

TEST_F(TimedQueue, IsNeverEarlyAndKeepsItsOrder)
{
    const std::uint64_t start_ns = utc_now_ns() + 5 * ms, interval_ns = 50'000;
    for (std::uint32_t number = 0; number < 200; ++number) {
        wait(queue, start_ns + number * interval_ns);
        send(queue, number);
    }
    push(queue);
    auto taken = take(200);
    for (std::uint32_t number = 0; number < 200; ++number) {
        EXPECT_EQ(taken[number].first, numbered(number));
        EXPECT_GE(taken[number].second, start_ns + number * interval_ns);
    }
    EXPECT_EQ(queue.schedule().count, 200u);
    EXPECT_EQ(queue.counters().waited, 200u);
    EXPECT_LE(queue.schedule().p50_ns, queue.schedule().p99_ns);
    EXPECT_LE(queue.schedule().p999_ns, queue.schedule().max_ns);
    EXPECT_TRUE(conserves(queue.counters()));
}

TEST_F(TimedQueue, SendsWhatIsInFrontOfAWaitAtOnce)
{
    send(queue, 0);
    wait(queue, utc_now_ns() + an_hour_ns);
    send(queue, 1);
    push(queue);
    EXPECT_EQ(port.send_all(), numbered_run(0, 1));
    EXPECT_EQ(queue.counters().sent, 1u);
}

TEST_F(TimedQueue, SendsAtOnceAndCountsWhenTheTimeHasPassed)
{
    wait(queue, utc_now_ns() - second);
    send(queue, 0);
    wait(queue, 1);
    send(queue, 1);
    push(queue);
    EXPECT_EQ(port.send_all(), numbered_run(0, 2));
    EXPECT_EQ(queue.counters().tx_pp_timestamp_past_errors, 2u);
    EXPECT_EQ(queue.counters().tx_pp_timestamp_order_errors, 1u);
    EXPECT_FALSE(queue.failed());
    EXPECT_GE(queue.schedule().p50_ns, second);
}

TEST_F(TimedQueue, KeepsTheLaterOfTwoWaitsThatAreOutOfOrder)
{
    const std::uint64_t later_ns = utc_now_ns() + 20 * ms;
    wait(queue, later_ns);
    wait(queue, later_ns - 10 * ms);
    send(queue, 0);
    push(queue);
    EXPECT_GE(take(1)[0].second, later_ns);
    EXPECT_EQ(queue.counters().tx_pp_timestamp_order_errors, 1u);
}

TEST_F(TimedQueue, RefusesAWaitBeyondItsOwnHorizon)
{
    eth_txq near(port.get(), cpu, {.entries = 64, .horizon_ns = 100 * ms});
    wait(near, utc_now_ns() + second);
    send(near, 0);
    push(near);
    EXPECT_TRUE(port.send_all().empty());
    EXPECT_EQ(near.counters().tx_pp_timestamp_future_errors, 1u);
    EXPECT_EQ(near.counters().failed, 1u);
    EXPECT_EQ(near.counters().flushed, 1u);
    EXPECT_TRUE(near.failed());
}

TEST_F(TimedQueue, HoldsUpNoOtherQueue)
{
    wait(queue, utc_now_ns() + an_hour_ns);
    send(queue, 999);
    push(queue);
    for (std::uint32_t number = 0; number < 900; ++number) {
        if (number % 100 == 0)
            wait(other, utc_now_ns() + ms);
        send(other, number);
    }
    push(other);
    auto taken = take(900);
    for (std::uint32_t number = 0; number < 900; ++number)
        ASSERT_EQ(taken[number].first, numbered(number));
    EXPECT_EQ(queue.counters().sent, 0u);
    EXPECT_EQ(other.counters().sent, 900u);
}

TEST_F(TimedQueue, IsNotKeptFromItsDeadlineByALongBacklogOfAnother)
{
    weftio_dev_eth_txq* backlog = other.handle();
    for (std::uint32_t number = 0; number < 1000; ++number)
        send(other, number);
    weftio_dev_eth_txq_commit_strong(backlog);
    weftio_dev_send_doorbell(&backlog->queue.ring); // no push: in inline mode that would run the engine
    nic::soft::sender& sender = software_nic(port.get()).sender();
    sender.turn({.entries = 32, .busy = true}); // what an engine thread does in one turn
    EXPECT_EQ(other.counters().enqueued, 32u);
    EXPECT_EQ(port.on_the_wire(), 32u);
    sender.turn({.entries = 32, .busy = true});
    EXPECT_EQ(other.counters().enqueued, 64u);
    EXPECT_EQ(port.send_all().size(), 1000u);
}

TEST_F(TimedQueue, TellsTheEngineItsDeadline)
{
    nic::soft::sender& sender = software_nic(port.get()).sender();
    EXPECT_EQ(sender.deadline_ns(), 0u);
    const std::uint64_t soon_ns = utc_now_ns() + an_hour_ns;
    wait(queue, soon_ns + second);
    push(queue);
    EXPECT_EQ(sender.deadline_ns(), soon_ns + second);
    wait(other, soon_ns);
    push(other);
    EXPECT_EQ(sender.deadline_ns(), soon_ns);
    other.reset();
    EXPECT_EQ(sender.deadline_ns(), soon_ns + second);
}

TEST_F(TimedQueue, LetsTheEngineSleepOnceAWaitIsOverThatNothingIsBehind)
{
    const std::uint64_t deadline_ns = utc_now_ns() + ms;
    wait(queue, deadline_ns);
    push(queue);
    EXPECT_TRUE(eventually([&] {
        port.run_dry();
        return utc_now_ns() > deadline_ns;
    }));
    port.run_dry();
    EXPECT_EQ(software_nic(port.get()).sender().deadline_ns(), 0u);
}

TEST_F(TimedQueue, ForgetsItsDeadlineInAReset)
{
    wait(queue, utc_now_ns() + an_hour_ns);
    send(queue, 0);
    push(queue);
    EXPECT_TRUE(port.send_all().empty());
    queue.reset();
    EXPECT_EQ(queue.counters().flushed, 2u); // the wait, and the frame behind it
    wait(queue, utc_now_ns() + ms);
    send(queue, 1);
    push(queue);
    EXPECT_EQ(take(1)[0].first, numbered(1));
    EXPECT_EQ(queue.counters().tx_pp_timestamp_order_errors, 0u);
    EXPECT_TRUE(conserves(queue.counters()));
}

TEST_F(TimedQueue, ReportsTimesThatAreNotBeforeTheDeadline)
{
    std::vector<send_notification> seen;
    progress_engine progress;
    progress.attach(queue, {.on_sent = [&](const send_notification& each) { seen.push_back(each); }});
    const std::uint64_t start_ns = utc_now_ns() + 2 * ms;
    for (std::uint32_t number = 0; number < 50; ++number) {
        wait(queue, start_ns + number * 100'000);
        send(queue, number);
    }
    push(queue);
    take(50);
    progress.progress();
    ASSERT_EQ(seen.size(), 50u);
    for (std::uint32_t number = 0; number < 50; ++number) {
        EXPECT_EQ(seen[number].position, 2 * number + 1);
        EXPECT_GE(seen[number].time_ns, start_ns + number * 100'000);
        EXPECT_TRUE(number == 0 || seen[number].time_ns >= seen[number - 1].time_ns);
    }
}

} // namespace
} // namespace weftio::test
