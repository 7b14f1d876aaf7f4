// Packets arrive without a pause while queues and rules come and go, and while kernels are slow.
#include <atomic>
#include <random>
#include <thread>

#include "injected_port.hpp"

namespace weftio::test {
namespace {

/// Sends numbered frames, and UDP to ports 0..7 between them, until it ends.
class traffic {
 public:
    explicit traffic(const injected_port& port) : thread_([this, &port](const std::stop_token& end) { run(port, end); })
    {}
    /// Returns how many packets have gone.
    std::uint64_t stop()
    {
        thread_ = {};
        return sent_;
    }

 private:
    void run(const injected_port& port, const std::stop_token& end)
    {
        for (std::uint32_t number = 0; !end.stop_requested(); ++number) {
            bool gone = port.send(number % 2 ? numbered_frame(number, 60 + number % 200)
                                             : frames::udp4(1, static_cast<std::uint16_t>(number / 2 % 8)));
            sent_ += gone;
            if (!gone || number % 64 == 0)
                std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }

    std::uint64_t sent_ = 0;
    std::jthread thread_;
};

constexpr flow_match numbered{.ether_type = 0x88b5};

class Traffic : public testing::Test {
 protected:
    /// Waits until what was sent has been taken, and checks that all of it is accounted for.
    void expect_all_accounted_for(std::uint64_t sent)
    {
        flow rest(port.get(), {}, flow_action::drop(), 99);
        eventually([&] { return port.counters().received == sent && port.counters().held == 0; });
        EXPECT_TRUE(all_accounted(port.counters(), sent));
    }

    device cpu = device::open("cpu");
    injected_port port{port_options{}};
};

TEST_F(Traffic, FlowsWhileQueuesComeAndGo)
{
    traffic sending(port);
    std::uint64_t delivered = 0;
    for (int round = 0; round < 100; ++round) {
        eth_rxq queue(port.get(), cpu, {.packets = 64, .max_packet_bytes = 512});
        flow rule(port.get(), numbered, flow_action::to(queue));
        fake_kernel kernel(queue);
        EXPECT_TRUE(eventually([&] { return queue.counters().delivered > 0; }));
        for (const weftio_dev_packet& packet : kernel.receive())
            EXPECT_TRUE(is_intact(packet));
        kernel.release(kernel.held());
        delivered += queue.counters().delivered;
    }
    expect_all_accounted_for(sending.stop());
    EXPECT_GE(port.counters().delivered, delivered);
}

TEST_F(Traffic, FlowsWhileAQueueGoesBeforeItsRule)
{
    traffic sending(port);
    for (int round = 0; round < 50; ++round) {
        std::optional<eth_rxq> queue(std::in_place, port.get(), cpu, eth_rxq_options{.packets = 64});
        flow rule(port.get(), {}, flow_action::to(*queue));
        EXPECT_TRUE(eventually([&] { return queue->counters().delivered > 0; }));
        queue.reset();
        std::uint64_t before = dropped(port.counters(), drop_reason::queue_closed);
        EXPECT_TRUE(eventually([&] { return dropped(port.counters(), drop_reason::queue_closed) > before; }));
    }
    expect_all_accounted_for(sending.stop());
}

TEST_F(Traffic, FlowsWhileManyQueuesShareIt)
{
    traffic sending(port);
    std::vector<std::optional<eth_rxq>> queues(8);
    std::vector<std::optional<flow>> rules(8);
    std::mt19937 random(4);
    for (int round = 0; round < 300; ++round) {
        auto at = static_cast<std::uint16_t>(random() % 8);
        if (rules[at] && random() % 2 == 0) {
            rules[at].reset();
        } else if (queues[at]) {
            queues[at].reset();
        } else {
            rules[at].reset();
            queues[at].emplace(port.get(), cpu, eth_rxq_options{.packets = 64});
            rules[at].emplace(port.get(), flow_match{.destination_port = port_range{at, at}},
                              flow_action::to(*queues[at]));
        }
    }
    expect_all_accounted_for(sending.stop());
}

TEST_F(Traffic, FlowsWhileRulesComeAndGo)
{
    eth_rxq queue(port.get(), cpu, {.packets = 64});
    flow always(port.get(), numbered, flow_action::to(queue), 5);
    traffic sending(port);
    std::atomic<bool> ending{false};
    std::thread reader([&] {
        fake_kernel kernel(queue);
        while (!ending) {
            for (const weftio_dev_packet& packet : kernel.receive())
                EXPECT_TRUE(is_intact(packet));
            kernel.release(kernel.held());
        }
    });
    for (int round = 0; round < 300; ++round) {
        flow dropping(port.get(), numbered, flow_action::drop(), static_cast<std::uint32_t>(round % 10));
        flow udp(port.get(), {.ip_protocol = 17}, flow_action::drop());
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    std::uint64_t sent = sending.stop();
    ending = true;
    reader.join();
    expect_all_accounted_for(sent);
    EXPECT_GT(queue.counters().delivered, 0u);
}

TEST_F(Traffic, IsDroppedAndCountedWhileAKernelIsSlowAndNoHeldSlotChanges)
{
    eth_rxq queue(port.get(), cpu, {.packets = 64, .max_packet_bytes = 512});
    flow rule(port.get(), numbered, flow_action::to(queue));
    traffic sending(port);
    fake_kernel kernel(queue);
    std::uint64_t received = 0;
    for (int round = 0; round < 60; ++round) {
        std::vector<weftio_dev_packet> packets = kernel.receive();
        received += packets.size();
        std::uint64_t full = queue.counters().out_of_buffer;
        EXPECT_TRUE(eventually([&] { return queue.counters().out_of_buffer > full; }));
        for (const weftio_dev_packet& packet : packets)
            EXPECT_TRUE(is_intact(packet));
        kernel.release(static_cast<std::uint32_t>(packets.size()));
    }
    expect_all_accounted_for(sending.stop());
    received += kernel.receive().size();
    EXPECT_EQ(queue.counters().delivered, received);
    EXPECT_EQ(rule.hits().packets, received + queue.counters().out_of_buffer);
}

TEST_F(Traffic, FlowsPastAKernelThatWritesNonsenseToItsDoorbellRecord)
{
    eth_rxq mad(port.get(), cpu, {.packets = 64}), sane(port.get(), cpu, {.packets = 64, .max_packet_bytes = 512});
    flow udp(port.get(), {.ip_protocol = 17}, flow_action::to(mad));
    flow rest(port.get(), numbered, flow_action::to(sane));
    traffic sending(port);
    fake_kernel kernel(sane);
    std::mt19937 random(5);
    for (std::uint64_t seen = 0; seen < 5000;) {
        weftio_store_release_sys_u32(mad.handle()->dbrec, static_cast<std::uint32_t>(random()));
        std::vector<weftio_dev_packet> packets = kernel.receive(1);
        for (const weftio_dev_packet& packet : packets)
            EXPECT_TRUE(is_intact(packet));
        seen += packets.size();
        kernel.release(kernel.held());
        if (packets.empty())
            std::this_thread::yield();
    }
    expect_all_accounted_for(sending.stop());
    EXPECT_EQ(sane.counters().delivered + sane.counters().out_of_buffer, rest.hits().packets);
    EXPECT_EQ(udp.hits().packets, mad.counters().delivered + mad.counters().out_of_buffer);
}

TEST(InlineTraffic, ReachesTwoHundredQueues)
{
    device cpu = device::open("cpu");
    injected_port port;
    std::vector<eth_rxq> queues;
    std::vector<flow> rules;
    for (std::uint16_t number = 0; number < 200; ++number) {
        queues.emplace_back(port.get(), cpu, eth_rxq_options{.packets = 64, .max_packet_bytes = 64});
        EXPECT_EQ(queues.back().number(), number);
        rules.emplace_back(port.get(), flow_match{.destination_port = port_range{number, number}},
                           flow_action::to(queues.back()));
    }
    for (std::uint16_t number = 0; number < 200; ++number)
        ASSERT_TRUE(port.send(frames::udp4(7, number)));
    port.run_dry();
    for (const eth_rxq& queue : queues)
        EXPECT_EQ(queue.counters().delivered, 1u);
}

} // namespace
} // namespace weftio::test
