// Nothing is lost silently: every packet is delivered, held, or dropped for a reason that is counted.
#include <deque>
#include <random>

#include "injected_port.hpp"

namespace weftio::test {
namespace {

constexpr std::uint32_t depth = 64;

class Conservation : public testing::Test {
 protected:
    ~Conservation() override { EXPECT_TRUE(conserves(port.counters())); }

    void send(std::uint32_t count, std::size_t frame_bytes = 60)
    {
        for (std::uint32_t i = 0; i < count; ++i)
            ASSERT_TRUE(port.send(numbered_frame(next_number++, frame_bytes)));
        port.run_dry();
    }
    std::uint64_t dropped_as(drop_reason reason) const { return dropped(port.counters(), reason); }
    flow all_to(const eth_rxq& queue) { return {port.get(), {}, flow_action::to(queue)}; }

    device cpu = device::open("cpu");
    injected_port port;
    std::uint32_t next_number = 0;
};

TEST_F(Conservation, TakesNothingFromTheDriverBeforeThereIsARule)
{
    eth_rxq queue(port.get(), cpu, {.packets = depth});
    send(10);
    EXPECT_EQ(port.counters().received, 0u);
    EXPECT_EQ(port.on_the_wire(), 10u);
    flow rule = all_to(queue);
    EXPECT_EQ(port.get().turn(), 10u);
    EXPECT_EQ(queue.counters().delivered, 10u);
}

TEST_F(Conservation, LeavesPacketsInTheDriverAgainOnceTheLastRuleIsGone)
{
    eth_rxq queue(port.get(), cpu, {.packets = depth});
    {
        flow rule = all_to(queue);
        send(3);
    }
    send(4);
    EXPECT_EQ(port.counters().received, 3u);
    EXPECT_EQ(port.on_the_wire(), 4u);
}

TEST_F(Conservation, CountsWhatNoRuleWants)
{
    eth_rxq queue(port.get(), cpu, {.packets = depth});
    flow udp_only(port.get(), {.ip_protocol = 17}, flow_action::to(queue));
    send(5);
    ASSERT_TRUE(port.send(frames::udp4()));
    port.run_dry();
    EXPECT_EQ(dropped_as(drop_reason::no_match), 5u);
    EXPECT_EQ(queue.counters().delivered, 1u);
    EXPECT_EQ(udp_only.hits().packets, 1u);
}

TEST_F(Conservation, CountsWhatARuleDrops)
{
    flow nothing(port.get(), {}, flow_action::drop());
    send(6);
    EXPECT_EQ(dropped_as(drop_reason::dropped_by_flow), 6u);
    EXPECT_EQ(nothing.hits().packets, 6u);
}

TEST_F(Conservation, CountsFramesThatAreLongerThanASlot)
{
    eth_rxq queue(port.get(), cpu, {.packets = depth, .max_packet_bytes = 100}); // rounded up to 128
    flow rule = all_to(queue);
    send(1, 128);
    send(2, 129);
    ASSERT_TRUE(port.send(port.make({numbered_frame(9, 100), bytes(29)})));
    port.run_dry();
    EXPECT_EQ(queue.counters().too_long, 3u);
    EXPECT_EQ(dropped_as(drop_reason::too_long), 3u);
    EXPECT_EQ(queue.counters().delivered, 1u);
}

TEST_F(Conservation, CountsFramesWithoutAnEthernetHeader)
{
    eth_rxq queue(port.get(), cpu, {.packets = depth});
    flow rule = all_to(queue);
    for (std::size_t frame_bytes = 0; frame_bytes < 14; ++frame_bytes)
        ASSERT_TRUE(port.send(bytes(frame_bytes)));
    port.run_dry();
    EXPECT_EQ(dropped_as(drop_reason::runt), 14u);
    EXPECT_EQ(rule.hits().packets, 0u);
}

/// Looks at all packets that are held, and gives some of them back, the oldest first.
testing::AssertionResult looks_and_gives_back(std::deque<weftio_dev_packet>& held, fake_kernel& kernel,
                                              std::mt19937& random)
{
    for (const weftio_dev_packet& packet : held)
        if (!is_intact(packet))
            return testing::AssertionFailure() << "packet " << number_of(packet) << " has changed";
    auto give_back = static_cast<std::uint32_t>(random() % (held.size() + 1));
    kernel.release(give_back);
    held.erase(held.begin(), held.begin() + give_back);
    return testing::AssertionSuccess();
}

class FullQueue : public Conservation, public testing::WithParamInterface<bool> {};

TEST_P(FullQueue, CountsWhatFindsNoFreeSlot)
{
    eth_rxq queue(port.get(), cpu, {.packets = depth, .verify_checksums = GetParam()});
    flow rule = all_to(queue);
    send(depth + 100);
    EXPECT_EQ(queue.counters().delivered, depth);
    EXPECT_EQ(queue.counters().out_of_buffer, 100u);
    EXPECT_EQ(dropped_as(drop_reason::out_of_buffer), 100u);
    EXPECT_EQ(rule.hits().packets, depth + 100u);
}

TEST_P(FullQueue, NeverChangesASlotThatTheKernelHolds)
{
    eth_rxq queue(port.get(), cpu, {.packets = depth, .verify_checksums = GetParam()});
    flow rule = all_to(queue);
    fake_kernel kernel(queue);
    std::deque<weftio_dev_packet> held;
    std::mt19937 random(1);
    for (int round = 0; round < 400; ++round) {
        send(static_cast<std::uint32_t>(random() % 100));
        for (const weftio_dev_packet& packet : kernel.receive())
            held.push_back(packet);
        ASSERT_TRUE(looks_and_gives_back(held, kernel, random)) << "in round " << round;
    }
    EXPECT_GT(queue.counters().out_of_buffer, 0u);
    EXPECT_EQ(queue.counters().delivered + queue.counters().out_of_buffer, next_number);
    EXPECT_TRUE(all_accounted(port.counters(), next_number));
}

INSTANTIATE_TEST_SUITE_P(Checksums, FullQueue, testing::Values(false, true),
                         [](const auto& param_info) { return param_info.param ? "verified" : "unverified"; });

/// A frame in one piece, in two, or one of which the driver says something.
rte_mbuf* any_mbuf(const injected_port& port, std::uint32_t number, std::mt19937& random)
{
    const bytes frame = numbered_frame(number, 60 + random() % 450);
    const auto kind = random() % 8;
    if (kind == 0)
        return port.make({bytes(frame.begin(), frame.begin() + 40), bytes(frame.begin() + 40, frame.end())});
    rte_mbuf* mbuf = port.make(frame);
    if (kind == 1 && mbuf)
        mbuf->ol_flags |= RTE_MBUF_F_RX_IP_CKSUM_GOOD;
    return mbuf;
}

TEST_F(Conservation, DeliversEveryKindOfMbufInOrderWhereNothingIsVerified)
{
    eth_rxq queue(port.get(), cpu, {.packets = depth, .max_packet_bytes = 512, .verify_checksums = false});
    flow rule = all_to(queue);
    fake_kernel kernel(queue);
    std::deque<weftio_dev_packet> held;
    std::mt19937 random(3);
    std::uint32_t expected = 0;
    for (int round = 0; round < 400; ++round) {
        const auto free = static_cast<std::uint32_t>(depth - held.size());
        for (std::uint32_t left = static_cast<std::uint32_t>(random() % (free + 1)); left != 0; --left)
            ASSERT_TRUE(port.send(any_mbuf(port, next_number++, random)));
        port.run_dry();
        for (const weftio_dev_packet& packet : kernel.receive()) {
            ASSERT_EQ(number_of(packet), expected++);
            held.push_back(packet);
        }
        ASSERT_TRUE(looks_and_gives_back(held, kernel, random)) << "in round " << round;
    }
    EXPECT_EQ(expected, next_number);
    EXPECT_EQ(queue.counters().delivered, next_number);
    EXPECT_EQ(port.counters().copied_bytes, queue.counters().delivered_bytes);
    EXPECT_TRUE(all_accounted(port.counters(), next_number));
}

TEST_F(Conservation, WakesUpAFullQueueWithTheFirstSlotGivenBack)
{
    eth_rxq queue(port.get(), cpu, {.packets = depth});
    flow rule = all_to(queue);
    fake_kernel kernel(queue);
    send(depth + 1);
    ASSERT_EQ(kernel.receive().size(), depth);
    kernel.release(1);
    send(2);
    EXPECT_EQ(number_of(kernel.receive_one()), depth + 1);
    EXPECT_EQ(queue.counters().out_of_buffer, 2u);
}

/// What one queue and one rule should have seen of a random mix.
struct expectation {
    std::uint64_t udp = 0, dropped = 0, unwanted = 0, runts = 0, too_long = 0;
};

bytes random_frame(std::mt19937& random, expectation& expected)
{
    switch (random() % 5) {
        case 0: ++expected.dropped; return frames::tcp4();
        case 1: ++expected.unwanted; return numbered_frame(1);
        case 2: ++expected.runts; return bytes(random() % 14);
        case 3: ++expected.too_long; return frames::ethernet({}, 0x0800, frames::ipv4({}, frames::udp(1, 2, 500)));
        default: ++expected.udp; return frames::udp4();
    }
}

TEST_F(Conservation, AccountsForARandomMixToTheLastPacket)
{
    eth_rxq queue(port.get(), cpu, {.packets = depth, .max_packet_bytes = 128});
    flow udp(port.get(), {.ip_protocol = 17}, flow_action::to(queue));
    flow tcp(port.get(), {.ip_protocol = 6}, flow_action::drop());
    fake_kernel kernel(queue);
    std::mt19937 random(2);
    expectation expected;
    for (int i = 0; i < 5000; ++i) {
        ASSERT_TRUE(port.send(random_frame(random, expected)));
        if (random() % 50 == 0)
            kernel.release(static_cast<std::uint32_t>(kernel.receive().size()));
    }
    port.run_dry();
    port_counters counters = port.counters();
    EXPECT_TRUE(all_accounted(counters, 5000));
    EXPECT_EQ(queue.counters().delivered + queue.counters().out_of_buffer, expected.udp);
    EXPECT_EQ(udp.hits().packets, expected.udp + expected.too_long);
    EXPECT_EQ(dropped(counters, drop_reason::dropped_by_flow), expected.dropped);
    EXPECT_EQ(dropped(counters, drop_reason::no_match), expected.unwanted);
    EXPECT_EQ(dropped(counters, drop_reason::runt), expected.runts);
    EXPECT_EQ(dropped(counters, drop_reason::too_long), expected.too_long);
}

TEST_F(Conservation, CountsWhatARuleSendsToAQueueThatIsGone)
{
    std::optional<eth_rxq> queue(std::in_place, port.get(), cpu);
    std::uint32_t number = queue->number();
    flow rule = all_to(*queue);
    send(2);
    queue.reset();
    send(3);
    eth_rxq next(port.get(), cpu); // takes the number, but not the packets
    EXPECT_EQ(next.number(), number);
    send(4);
    EXPECT_EQ(dropped_as(drop_reason::queue_closed), 7u);
    EXPECT_EQ(next.counters().delivered, 0u);
    EXPECT_EQ(rule.hits().packets, 9u);
}

TEST_F(Conservation, KeepsTheOtherQueuesOfARuleWhenOneGoes)
{
    eth_rxq first(port.get(), cpu);
    std::optional<eth_rxq> second(std::in_place, port.get(), cpu);
    flow spread(port.get(), {}, flow_action::rss({&first, &*second}));
    second.reset();
    for (std::uint16_t source = 0; source < 200; ++source)
        ASSERT_TRUE(port.send(frames::udp4(source)));
    port.run_dry();
    EXPECT_GT(first.counters().delivered, 0u);
    EXPECT_GT(dropped_as(drop_reason::queue_closed), 0u);
    EXPECT_EQ(first.counters().delivered + dropped_as(drop_reason::queue_closed), 200u);
}

class Holding : public testing::Test {
 protected:
    ~Holding() override { EXPECT_TRUE(conserves(port.counters())); }

    void send(std::uint32_t count)
    {
        for (std::uint32_t i = 0; i < count; ++i)
            ASSERT_TRUE(port.send(numbered_frame(next_number++)));
        port.run_dry();
    }

    device cpu = device::open("cpu");
    injected_port port{{.mode = engine_mode::inline_worker, .hold_when_full = port_options::hold::on}};
    std::optional<eth_rxq> queue{std::in_place, port.get(), cpu, eth_rxq_options{.packets = depth}};
    std::optional<flow> rule{std::in_place, port.get(), flow_match{}, flow_action::to(*queue)};
    fake_kernel kernel{*queue};
    std::uint32_t next_number = 0;
};

TEST_F(Holding, WaitsForASlotInsteadOfDropping)
{
    send(depth + 30);
    EXPECT_EQ(port.counters().held, 30u);
    EXPECT_EQ(port.counters().dropped_total(), 0u);
    for (std::uint32_t expected = 0; expected < depth + 30; ++expected) {
        EXPECT_EQ(number_of(kernel.receive_one()), expected);
        kernel.release(1);
    }
    EXPECT_EQ(port.counters().held, 0u);
    EXPECT_EQ(rule->hits().packets, depth + 30u);
}

TEST_F(Holding, LeavesTheRestInTheDriver)
{
    send(depth * 4);
    EXPECT_EQ(port.counters().received, depth * 2u); // a burst that is held, and no more
    EXPECT_EQ(port.on_the_wire(), depth * 2u);
}

TEST_F(Holding, DropsWhatWaitsForAQueueThatIsClosed)
{
    send(depth + 30);
    queue.reset();
    port.run_dry();
    EXPECT_EQ(dropped(port.counters(), drop_reason::queue_closed), 30u);
    EXPECT_EQ(port.counters().held, 0u);
    EXPECT_EQ(rule->hits().packets, depth + 30u);
}

TEST_F(Holding, DoesNotGiveWhatWaitedForAQueueToTheNextOneOfThatNumber)
{
    send(depth + 1);
    std::uint32_t number = queue->number();
    queue.reset();
    eth_rxq next(port.get(), cpu);
    ASSERT_EQ(next.number(), number);
    flow to_next(port.get(), {}, flow_action::to(next));
    port.run_dry();
    EXPECT_EQ(next.counters().delivered, 0u);
    EXPECT_EQ(dropped(port.counters(), drop_reason::queue_closed), 1u);
}

TEST_F(Holding, DropsWhatIsTooLongEvenWhenTheQueueIsFull)
{
    send(depth);
    ASSERT_TRUE(port.send(port.make({numbered_frame(1, 2000), bytes(100)})));
    port.run_dry();
    EXPECT_EQ(queue->counters().too_long, 1u);
    EXPECT_EQ(port.counters().held, 0u);
}

TEST_F(Holding, GivesTheMbufsBackWhenThePortCloses)
{
    send(depth + 30); // the fixture's port checks it
    EXPECT_EQ(port.counters().held, 30u);
}

} // namespace
} // namespace weftio::test
