// What the host hears of sends, and queues, buffers and ports that end in any order.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <stdexcept>

#include "log_lines.hpp"
#include "sending_port.hpp"
#include "software_nic.hpp"

namespace weftio::test {
namespace {

using testing::HasSubstr;

class Progress : public testing::Test {
 protected:
    void send(const eth_txq& queue, std::uint32_t number, std::uint32_t flags = WEFTIO_DEV_SEND_NOTIFY)
    {
        ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(queue.handle(), frames[number % 64], 60, flags),
                  WEFTIO_DEV_OK);
    }
    void fail(const eth_txq& queue)
    {
        weftio_dev_buf wild = frames[0];
        wild.lkey_be = 0;
        ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(queue.handle(), wild, 60, 0), WEFTIO_DEV_OK);
    }
    static void push(const eth_txq& queue)
    {
        weftio_dev_eth_txq_commit_strong(queue.handle());
        weftio_dev_eth_txq_push(queue.handle());
    }
    progress_engine::callbacks record()
    {
        return {.on_sent = [this](const send_notification& each) { sent.push_back(each); },
                .on_error = [this](const send_failure& each) { failed.push_back(each); }};
    }

    device cpu = device::open("cpu");
    sending_port port;
    numbered_buffers frames{port.get(), cpu, 64};
    eth_txq queue{port.get(), cpu, {.entries = 64}};
    std::vector<send_notification> sent;
    std::vector<send_failure> failed;
};

TEST_F(Progress, TellsPositionsAndTimesOfWhatWasAskedForInOrder)
{
    progress_engine progress;
    progress.attach(queue, record());
    EXPECT_EQ(progress.progress(), 0u);
    std::uint64_t before_ns = utc_now_ns();
    for (std::uint32_t number = 0; number < 60; ++number)
        send(queue, number, number % 3 == 0 ? WEFTIO_DEV_SEND_NOTIFY : WEFTIO_DEV_SEND_NONE);
    push(queue);
    port.run_dry();
    EXPECT_EQ(progress.progress(), 0u); // the driver still has them
    port.send_all();
    EXPECT_EQ(progress.progress(), 20u);
    EXPECT_EQ(progress.progress(), 0u);
    ASSERT_EQ(sent.size(), 20u);
    for (std::uint32_t at = 0; at < 20; ++at) {
        EXPECT_EQ(sent[at].queue, queue.number());
        EXPECT_EQ(sent[at].position, 3 * at);
        EXPECT_GE(sent[at].time_ns, before_ns);
        EXPECT_LE(sent[at].time_ns, utc_now_ns());
    }
}

TEST_F(Progress, GoesOnBehindACallbackThatThrew)
{
    progress_engine progress;
    progress.attach(queue, {.on_sent = [this](const send_notification& each) {
                        if (each.position == 1)
                            throw std::runtime_error("no wish to hear of it");
                        sent.push_back(each);
                    }});
    for (std::uint32_t number = 0; number < 4; ++number)
        send(queue, number);
    push(queue);
    port.send_all();
    EXPECT_THROW(progress.progress(), std::runtime_error);
    EXPECT_EQ(progress.progress(), 2u);
    EXPECT_THAT(sent, testing::ElementsAre(testing::Field(&send_notification::position, 0u),
                                           testing::Field(&send_notification::position, 2u),
                                           testing::Field(&send_notification::position, 3u)));
}

TEST_F(Progress, TellsAFailureBehindWhatWasSentBefore)
{
    progress_engine progress;
    progress.attach(queue, record());
    send(queue, 0);
    fail(queue);
    send(queue, 2);
    push(queue);
    port.send_all();
    EXPECT_EQ(progress.progress(), 2u);
    ASSERT_EQ(sent.size(), 1u);
    ASSERT_EQ(failed.size(), 1u);
    EXPECT_EQ(failed[0].position, 1u);
    EXPECT_EQ(failed[0].syndrome, WEFTIO_SYNDROME_LOCAL_PROTECTION);
    EXPECT_GT(failed[0].time_ns, 0u);
    EXPECT_EQ(failed[0].text,
              fmt::format("weftio: eth_txq {}: entry at position 1 failed: no memory region has that key at this NIC",
                          queue.number()));
}

TEST_F(Progress, KeepsRoomForAFailureWhenNobodyHasReadNotifications)
{
    for (std::uint32_t round = 0; round < 6; ++round) {
        for (std::uint32_t number = 0; number < 50; ++number)
            send(queue, number);
        push(queue);
        EXPECT_EQ(port.send_all().size(), 50u);
    }
    EXPECT_GT(queue.counters().lost_events, 0u);
    fail(queue);
    push(queue);
    port.send_all();
    progress_engine progress;
    progress.attach(queue, record());
    EXPECT_EQ(progress.progress() + queue.counters().lost_events, 301u);
    EXPECT_EQ(failed.size(), 1u);
}

TEST_F(Progress, ServesSeveralQueuesAndNeedsNoCallbacks)
{
    eth_txq other(port.get(), cpu, {.entries = 64});
    progress_engine progress;
    progress.attach(other, {});
    progress.attach(queue, record());
    send(queue, 1);
    send(other, 2);
    fail(other);
    push(queue);
    push(other);
    port.send_all();
    EXPECT_EQ(progress.progress(), 3u);
    EXPECT_EQ(sent.size(), 1u);
    EXPECT_TRUE(failed.empty());
}

TEST_F(Progress, HasAQueueToItself)
{
    progress_engine progress;
    progress.attach(queue, record());
    progress_engine second;
    error refused = error_of([&] { second.attach(queue, {}); });
    EXPECT_EQ(refused.code(), errc::in_use);
    EXPECT_THAT(refused.what(), HasSubstr("already attached to a progress_engine"));
    progress = progress_engine(); // lets go
    second.attach(queue, record());
    send(queue, 0);
    push(queue);
    port.send_all();
    EXPECT_EQ(second.progress(), 1u);
}

TEST_F(Progress, LetsAQueueGoThatHasEnded)
{
    progress_engine progress;
    std::optional<eth_txq> short_lived(std::in_place, port.get(), cpu, eth_txq_options{.entries = 64});
    std::uint32_t number = short_lived->number();
    progress.attach(*short_lived, record());
    send(*short_lived, 0);
    push(*short_lived);
    EXPECT_EQ(port.send_all().size(), 1u);
    const std::uint64_t deadline_ns = utc_now_ns() + 200'000'000;
    weftio_dev_eth_txq_wait_time_enqueue_strong(short_lived->handle(), eth_txq::timestamp(deadline_ns), 0);
    send(*short_lived, 1);
    push(*short_lived);
    short_lived.reset();
    const bool in_time = utc_now_ns() < deadline_ns;
    while (utc_now_ns() < deadline_ns)
        continue;
    EXPECT_TRUE(port.send_all().empty() || !in_time); // it sends no more
    EXPECT_EQ(progress.progress(), 1u);
    EXPECT_EQ(sent.size(), 1u);
    EXPECT_EQ(eth_txq(port.get(), cpu, {.entries = 64}).number(), number);
    EXPECT_EQ(progress.progress(), 0u);
}

TEST_F(Progress, SurvivesTheQueueBeingMoved)
{
    progress_engine progress;
    progress.attach(queue, record());
    eth_txq moved(std::move(queue));
    send(moved, 3);
    push(moved);
    queue = std::move(moved);
    port.send_all();
    EXPECT_EQ(progress.progress(), 1u);
    send(queue, 4);
    push(queue);
    EXPECT_EQ(port.send_all(), numbered_run(4, 1));
}

TEST_F(Progress, OfAResetIsRefusedWhileTheDriverHoldsFrames)
{
    send(queue, 0);
    push(queue);
    port.run_dry();
    error refused = error_of([&] { queue.reset(); });
    EXPECT_EQ(refused.code(), errc::in_use);
    EXPECT_THAT(refused.what(), HasSubstr("still holds frames of this queue after 1 s"));
    EXPECT_EQ(port.take().size(), 1u);
    queue.reset();
    send(queue, 5);
    push(queue);
    EXPECT_EQ(port.send_all(), numbered_run(5, 1));
    EXPECT_TRUE(conserves(queue.counters()));
}

TEST_F(Progress, OfFramesThatTheDriverHasNoRoomForGoesOn)
{
    eth_txq big(port.get(), cpu, {.entries = 4096});
    for (std::uint32_t number = 0; number < 2500; ++number)
        send(big, number, WEFTIO_DEV_SEND_NONE);
    push(big);
    port.run_dry();
    EXPECT_EQ(port.on_the_wire(), sending_port::wire_frames);
    EXPECT_EQ(big.counters().sent, 0u);
    EXPECT_EQ(port.send_all().size(), 2500u);
    EXPECT_EQ(big.counters().sent, 2500u);
    EXPECT_TRUE(conserves(big.counters()));
}

TEST(SendTearDown, OfAQueueFlushesWhatTheDriverHasNotTaken)
{
    device cpu = device::open("cpu");
    sending_port port;
    numbered_buffers frames(port.get(), cpu, 64);
    {
        eth_txq queue(port.get(), cpu, {.entries = 4096});
        for (std::uint32_t number = 0; number < 2500; ++number)
            ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(queue.handle(), frames[number % 64], 60, 0),
                      WEFTIO_DEV_OK);
        weftio_dev_eth_txq_commit_strong(queue.handle());
        weftio_dev_eth_txq_push(queue.handle());
        port.run_dry();
        software_nic(port.get()).engine().between_turns([&] {
            software_nic(port.get()).sender().queue(queue.number()).stop();
        });
        EXPECT_EQ(queue.counters().enqueued, 2500u);
        EXPECT_EQ(queue.counters().flushed, 2500u - sending_port::wire_frames);
        EXPECT_EQ(port.send_all().size(), sending_port::wire_frames);
        EXPECT_TRUE(conserves(queue.counters()));
    }
    EXPECT_EQ(port.on_the_wire(), 0u);
}

TEST(SendTearDown, OfBuffersWaitsForFramesThatLieInThem)
{
    device cpu = device::open("cpu");
    sending_port port({.mode = engine_mode::thread});
    eth_txq queue(port.get(), cpu, {.entries = 64});
    log_lines log;
    std::optional<numbered_buffers> frames(std::in_place, port.get(), cpu, 64);
    ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(queue.handle(), (*frames)[1], 60, 0), WEFTIO_DEV_OK);
    weftio_dev_eth_txq_commit_strong(queue.handle());
    weftio_dev_eth_txq_push(queue.handle());
    ASSERT_TRUE(eventually([&] { return port.on_the_wire() == 1; }));
    std::atomic<bool> gone{false};
    std::thread ending([&] {
        frames.reset();
        gone = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    bool waited = !gone;
    EXPECT_EQ(port.take(), numbered_run(1, 1)); // ASan would know if the memory had gone
    ending.join();
    EXPECT_TRUE(waited || !log.lines.empty());
    EXPECT_TRUE(eventually([&] { return queue.counters().sent == 1; }));
}

TEST(SendTearDown, OfBuffersInWhichTheDriverStaysIsSaid)
{
    device cpu = device::open("cpu");
    sending_port port;
    eth_txq queue(port.get(), cpu, {.entries = 64});
    memory kept = cpu.allocate(4096, memory_kind::cpu_device);
    log_lines log;
    {
        memory_region region(port.get(), kept);
        weftio_dev_buf buffer{static_cast<std::uint8_t*>(region.device_address()), 64, weftio_swap32(region.lkey())};
        ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(queue.handle(), buffer, 64, 0), WEFTIO_DEV_OK);
        weftio_dev_eth_txq_commit_strong(queue.handle());
        weftio_dev_eth_txq_push(queue.handle());
        port.run_dry();
    }
    ASSERT_EQ(log.lines.size(), 1u);
    EXPECT_THAT(log.lines[0], HasSubstr("memory of 4096 bytes at"));
    EXPECT_EQ(port.take().size(), 1u);
}

TEST(SendTearDown, OfAReceiveQueueWaitsForRepliesThatLieInItsSlots)
{
    device cpu = device::open("cpu");
    sending_port port({.mode = engine_mode::thread});
    eth_txq queue(port.get(), cpu, {.entries = 64});
    log_lines log;
    std::optional<eth_rxq> slots(std::in_place, port.get(), cpu, eth_rxq_options{.packets = 64});
    std::optional<flow> everything(std::in_place, port.get(), flow_match{}, flow_action::to(*slots));
    ASSERT_TRUE(port.arrive(numbered(3, 200)));
    std::uint32_t count = 0, first = 0;
    weftio_dev_eth_rxq_receive_thread(slots->handle(), 1, patience_ns, &count, &first);
    ASSERT_EQ(count, 1u);
    ASSERT_EQ(
        weftio_dev_eth_txq_send_enqueue_strong(queue.handle(), weftio_dev_eth_rxq_buf(slots->handle(), first), 200, 0),
        WEFTIO_DEV_OK);
    weftio_dev_eth_txq_commit_strong(queue.handle());
    weftio_dev_eth_txq_push(queue.handle());
    ASSERT_TRUE(eventually([&] { return port.on_the_wire() == 1; }));
    std::atomic<bool> gone{false};
    std::thread ending([&] {
        everything.reset();
        slots.reset();
        gone = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    bool waited = !gone;
    EXPECT_EQ(port.take(), std::vector<bytes>{numbered(3, 200)});
    ending.join();
    EXPECT_TRUE(waited || !log.lines.empty());
}

TEST(SendTearDown, OfAPortLeavesHeadersToItsDriver)
{
    // Over loopback: frames that are still in the ring when everything goes.
    device cpu = device::open("cpu");
    port loopback = port::open("loopback", {.mode = engine_mode::inline_worker});
    numbered_buffers frames(loopback, cpu, 64);
    eth_txq queue(loopback, cpu, {.entries = 64});
    for (std::uint32_t number = 0; number < 64; ++number)
        ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(queue.handle(), frames[number], 60, 0), WEFTIO_DEV_OK);
    weftio_dev_eth_txq_commit_strong(queue.handle());
    weftio_dev_eth_txq_push(queue.handle());
}

} // namespace
} // namespace weftio::test
