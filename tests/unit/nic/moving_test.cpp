// A queue goes from one engine of a port to another under traffic: nothing is lost, doubled or out of order.
#include <atomic>
#include <cstring>
#include <thread>

#include <gmock/gmock.h>

#include "injected_port.hpp"
#include "nic/soft/receive/inbox.hpp"

namespace weftio::test {
namespace {

constexpr std::uint32_t ring_entries = 256, buffers = 4 * ring_entries;

/// Enqueues numbered frames, as many as fit, in a thread of its own until stop(). In inline mode its pushes drive the
/// queue's engine.
class sending_kernel {
 public:
    sending_kernel(const eth_txq& queue, const buf_arr& frames)
        : txq_(queue.handle()), frames_(frames), thread_([this](const std::stop_token& end) { run(end); })
    {}
    std::uint32_t stop()
    {
        thread_ = {};
        return next_;
    }

 private:
    void run(const std::stop_token& end)
    {
        while (!end.stop_requested()) {
            // Below the ring's depth: the frames of those that are under way must not be written over.
            while (next_ - weftio_dev_eth_txq_completed(txq_) < ring_entries / 2) {
                const bytes frame = numbered_frame(next_);
                std::copy(frame.begin(), frame.end(), static_cast<std::uint8_t*>(frames_.cpu_address(next_ % buffers)));
                if (weftio_dev_eth_txq_send_enqueue_strong(txq_, weftio_dev_buf_get(frames_.handle(), next_ % buffers),
                                                           60, 0) != WEFTIO_DEV_OK)
                    break;
                ++next_;
            }
            weftio_dev_eth_txq_commit_strong(txq_);
            weftio_dev_eth_txq_push(txq_);
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }

    weftio_dev_eth_txq* txq_;
    const buf_arr& frames_;
    std::uint32_t next_ = 0;
    std::jthread thread_;
};

/// Receives frames that have to come in order, each once, in a thread of its own until stop().
class ordered_kernel {
 public:
    explicit ordered_kernel(const eth_rxq& queue)
        : queue_(queue), thread_([this](const std::stop_token& end) { run(end); })
    {}
    void stop() { thread_ = {}; }
    std::uint32_t next() const { return next_; }
    std::uint32_t wrong() const { return wrong_; }

 private:
    void run(const std::stop_token& end)
    {
        fake_kernel kernel(queue_);
        while (!end.stop_requested()) {
            std::vector<weftio_dev_packet> packets = kernel.receive();
            for (const weftio_dev_packet& packet : packets)
                wrong_ += number_of(packet) != next_++ || !is_intact(packet);
            kernel.release(static_cast<std::uint32_t>(packets.size()));
        }
    }

    const eth_rxq& queue_;
    std::atomic<std::uint32_t> next_{0}, wrong_{0};
    std::jthread thread_;
};

class Moving : public testing::TestWithParam<engine_mode> {
 protected:
    ~Moving() override { EXPECT_TRUE(conserves(port.counters())); }

    device cpu = device::open("cpu");
    injected_port port{{.mode = GetParam(), .engines = 3, .hold_when_full = port_options::hold::on}};
    eth_rxq in{port.get(), cpu, {.packets = 128}};
    eth_txq out{port.get(), cpu, {.entries = ring_entries}};
    buf_arr frames{port.get(), cpu, {.count = buffers, .buffer_bytes = 60}};
    flow everything{port.get(), {}, flow_action::to(in)};

    /// Inline mode: engines that no kernel drives just now.
    void drive()
    {
        if (GetParam() == engine_mode::inline_worker)
            port.get().turn();
    }
};

TEST_P(Moving, LosesDoublesAndReordersNothing)
{
    ordered_kernel receiver(in);
    sending_kernel sender(out, frames);
    for (unsigned move = 0; move < 1000; ++move) {
        in.move_to(move % 3);
        EXPECT_EQ(in.engine(), move % 3);
        if (move % 4 == 0)
            out.move_to(move / 4 % 3);
        drive();
    }
    EXPECT_TRUE(eventually([&] {
        drive();
        return receiver.next() > 2000;
    }));
    const std::uint32_t sent = sender.stop();
    EXPECT_TRUE(eventually([&] {
        drive();
        return receiver.next() == sent && out.counters().sent == sent;
    })) << receiver.next()
        << " of " << sent << ", " << out.counters().sent << " sent";
    receiver.stop();
    EXPECT_EQ(receiver.wrong(), 0u);
    EXPECT_EQ(everything.hits().packets, sent);
    EXPECT_EQ(in.counters().delivered, sent);
    EXPECT_TRUE(all_accounted(port.counters(), sent));
}

TEST_P(Moving, GoesOnBesideResetsAndQueuesThatEnd)
{
    std::jthread moving([&](const std::stop_token& end) {
        for (unsigned move = 0; !end.stop_requested(); ++move) {
            in.move_to(move % 3);
            out.move_to((move + 1) % 3);
            EXPECT_LT(in.engine() + out.engine(), 5u); // of lives that end: sanitizers would know
        }
    });
    for (std::uint32_t round = 0; round < 10; ++round) {
        port.send(numbered_frame(round), round % 3);
        in.reset();
        out.reset();
        eth_rxq passing(port.get(), cpu, {.packets = 64});
        eth_txq sending_too(port.get(), cpu, {.entries = 64});
        passing.move_to(round % 3);
        drive();
    }
    moving = {};
    EXPECT_TRUE(eventually([&] {
        drive();
        return in.counters().delivered == 10u;
    }));
}

INSTANTIATE_TEST_SUITE_P(Modes, Moving, testing::Values(engine_mode::thread, engine_mode::inline_worker),
                         [](const auto& info) { return info.param == engine_mode::thread ? "Threads" : "Inline"; });

/// Three engines, which the test runs.
class MovedQueue : public testing::Test {
 protected:
    static void expect_refusal(const std::function<void()>& move, errc code, const char* words)
    {
        const error refusal = error_of(move);
        EXPECT_EQ(refusal.code(), code);
        EXPECT_THAT(refusal.what(), testing::HasSubstr(words));
    }
    void send(eth_txq& queue)
    {
        ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(queue.handle(), weftio_dev_buf_get(frames.handle(), 0), 60, 0),
                  WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_eth_txq_commit_strong(queue.handle()), WEFTIO_DEV_OK);
        weftio_dev_eth_txq_push(queue.handle());
    }

    device cpu = device::open("cpu");
    injected_port port{{.mode = engine_mode::inline_worker, .engines = 3, .hold_when_full = port_options::hold::on}};
    buf_arr frames{port.get(), cpu, {.count = 1, .buffer_bytes = 60}};
};

TEST_F(MovedQueue, NeedsAnEngineToGoTo)
{
    eth_rxq in(port.get(), cpu);
    eth_txq out(port.get(), cpu);
    expect_refusal([&] { in.move_to(3); }, errc::invalid_argument, "eth_rxq: no engine 3");
    expect_refusal([&] { out.move_to(3); }, errc::invalid_argument, "eth_txq: no engine 3");
}

TEST_F(MovedQueue, StaysWhileThePortHoldsFramesOfIt)
{
    eth_txq out(port.get(), cpu, {.engine = 0});
    send(out);
    expect_refusal([&] { out.move_to(1); }, errc::in_use, "still holds frames of this queue after 1 s");
    EXPECT_EQ(out.engine(), 0u);
    send(out); // it goes on
    EXPECT_EQ(port.on_the_wire(0), 2u);
    rte_pktmbuf_free(port.take(0));
    rte_pktmbuf_free(port.take(0));
    out.move_to(1);
    send(out);
    EXPECT_EQ(port.on_the_wire(1), 1u);
    rte_pktmbuf_free(port.take(1));
    port.run_dry();
    EXPECT_EQ(out.counters().sent, 3u);
}

TEST_F(MovedQueue, SendsWhatIsPushedMeanwhileWithoutAnotherPush)
{
    eth_txq out(port.get(), cpu, {.engine = 0});
    send(out);
    std::thread moving([&] { out.move_to(1); });
    unsigned pushed = 1;
    for (; port.on_the_wire(0) == pushed; ++pushed) { // until it waits for these frames
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        send(out);
    }
    while (port.on_the_wire(0) != 0)
        rte_pktmbuf_free(port.take(0));
    moving.join();
    EXPECT_EQ(port.on_the_wire(1), 1u);
    while (port.on_the_wire(1) != 0)
        rte_pktmbuf_free(port.take(1));
    port.run_dry();
    EXPECT_EQ(out.counters().sent, pushed);
}

TEST_F(MovedQueue, KeepsADeadlineThatItWaitsFor)
{
    eth_txq out(port.get(), cpu, {.engine = 0});
    const std::uint64_t deadline_ns = utc_now_ns() + 100'000'000;
    ASSERT_EQ(weftio_dev_eth_txq_wait_time_enqueue_strong(out.handle(), eth_txq::timestamp(deadline_ns), 0),
              WEFTIO_DEV_OK);
    send(out);
    out.move_to(1);
    while (port.on_the_wire(1) == 0) {
        const bool was_early = utc_now_ns() < deadline_ns;
        port.get().turn(1);
        ASSERT_FALSE(was_early && port.on_the_wire(1) != 0 && utc_now_ns() < deadline_ns);
    }
    EXPECT_EQ(port.on_the_wire(0), 0u);
    rte_pktmbuf_free(port.take(1));
    port.run_dry();
    EXPECT_EQ(out.counters().waited, 1u);
    EXPECT_EQ(out.counters().sent, 1u);
}

TEST_F(MovedQueue, TakesWhatIsOnItsWayWithItOrStays)
{
    constexpr std::uint32_t slots = 64;
    eth_rxq going(port.get(), cpu, {.packets = slots, .engine = 0}),
        other(port.get(), cpu, {.packets = slots, .engine = 1});
    auto fill = [&](const eth_rxq& queue) {
        flow rule(port.get(), {}, flow_action::to(queue));
        for (std::uint32_t number = 0; number < slots + 700; ++number)
            ASSERT_TRUE(port.send(numbered_frame(number), 2));
        port.run_dry();
    };
    auto drain = [&](const eth_rxq& queue) {
        fake_kernel kernel(queue);
        for (std::uint32_t next = 0; next < slots + 700;) {
            std::vector<weftio_dev_packet> packets = kernel.receive();
            ASSERT_FALSE(packets.empty());
            for (const weftio_dev_packet& packet : packets)
                ASSERT_EQ(number_of(packet), next++);
            kernel.release(static_cast<std::uint32_t>(packets.size()));
        }
    };
    fill(going);
    fill(other);
    EXPECT_EQ(port.counters().held, 2 * 700u);
    expect_refusal([&] { going.move_to(1); }, errc::in_use, "engine 1 of port net_ring_test");
    EXPECT_EQ(going.engine(), 0u);
    drain(other);
    going.move_to(1);
    drain(going);
    EXPECT_EQ(port.counters().held, 0u);
}

TEST(MovedLender, TakesItsSlotsAlong)
{
    device cpu = device::open("cpu");
    port port = port::open("net_null_moved,size=64", {.mode = engine_mode::inline_worker, .engines = 2});
    eth_rxq queue(port, cpu, {.packets = 64, .engine = 0});
    fake_kernel kernel(queue);
    flow everything(port, {}, flow_action::to(queue));
    for (unsigned move = 0; move < 100; ++move) {
        queue.move_to(move % 2);
        const std::uint64_t copied = port.counters().copied_bytes;
        EXPECT_EQ(port.turn(move % 2), 64u);
        EXPECT_EQ(port.counters().copied_bytes, copied) << "it lends its slots where it is";
        EXPECT_EQ(kernel.receive().size(), 64u);
        kernel.release(64);
    }
    EXPECT_EQ(queue.counters().delivered, 6400u);
    EXPECT_TRUE(conserves(port.counters()));
}

} // namespace
} // namespace weftio::test
