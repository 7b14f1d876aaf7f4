// A port with several engines: each has a port queue, and a queue gets its packets whichever engine receives them.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <rte_dev.h>

#include "injected_port.hpp"
#include "nic/soft/receive/inbox.hpp"
#include "software_nic.hpp"

namespace weftio::test {
namespace {

constexpr std::uint32_t depth = 64;

/// Two engines, which the test runs: nothing happens by itself.
class TwoEngines : public testing::Test {
 protected:
    ~TwoEngines() override { EXPECT_TRUE(conserves(port.counters())); }

    void arrive(unsigned queue, std::uint32_t first, std::uint32_t count)
    {
        for (std::uint32_t number = first; number != first + count; ++number)
            ASSERT_TRUE(port.send(numbered_frame(number), queue));
    }
    void run_dry(unsigned engine)
    {
        while (port.get().turn(engine) != 0) {
        }
    }

    device cpu = device::open("cpu");
    injected_port port{{.mode = engine_mode::inline_worker, .engines = 2}};
};

TEST_F(TwoEngines, GetQueuesInTurn)
{
    std::vector<eth_rxq> in;
    std::vector<eth_txq> out;
    for (unsigned number = 0; number < 4; ++number) {
        in.emplace_back(port.get(), cpu);
        out.emplace_back(port.get(), cpu);
        EXPECT_EQ(in.back().engine(), number % 2);
        EXPECT_EQ(out.back().engine(), number % 2);
        EXPECT_EQ(in.back().number(), number);
        EXPECT_EQ(out.back().number(), number + 1);
    }
    in.erase(in.begin() + 1);
    EXPECT_EQ(eth_rxq(port.get(), cpu).engine(), 1u);
    EXPECT_EQ(eth_rxq(port.get(), cpu).number(), 1u);
    EXPECT_EQ(eth_rxq(port.get(), cpu, {.engine = 0}).engine(), 0u);
    EXPECT_EQ(eth_txq(port.get(), cpu, {.engine = 1}).engine(), 1u);
}

TEST_F(TwoEngines, RefuseAThird)
{
    for (const error& refusal :
         {error_of([&] { eth_rxq(port.get(), cpu, {.engine = 2}); }),
          error_of([&] { eth_txq(port.get(), cpu, {.engine = 2}); }), error_of([&] { port.get().turn(2); })}) {
        EXPECT_EQ(refusal.code(), errc::invalid_argument);
        EXPECT_THAT(refusal.what(), testing::HasSubstr("no engine 2 at port net_ring_test"));
        EXPECT_THAT(refusal.what(), testing::HasSubstr(", which has 2, counted from 0"));
    }
}

TEST_F(TwoEngines, TakeNoOtherNumberBelowZeroForAnyOfThem)
{
    for (const int engine : {-2, std::numeric_limits<int>::min()})
        for (const error& refusal : {error_of([&] { eth_rxq(port.get(), cpu, {.engine = engine}); }),
                                     error_of([&] { eth_txq(port.get(), cpu, {.engine = engine}); })}) {
            EXPECT_EQ(refusal.code(), errc::invalid_argument);
            EXPECT_THAT(refusal.what(), testing::HasSubstr("engine is " + std::to_string(engine) + "; "));
        }
}

TEST_F(TwoEngines, EachReceiveFromAPortQueue)
{
    eth_rxq first(port.get(), cpu), second(port.get(), cpu);
    flow to_first(port.get(), {.ether_type = 0x88b5}, flow_action::to(first));
    arrive(0, 0, 3);
    arrive(1, 3, 4);
    EXPECT_EQ(port.get().turn(1), 4u);
    EXPECT_EQ(port.on_the_wire(0), 3u);
    EXPECT_EQ(port.get().turn(0), 4u + 3u);
    EXPECT_EQ(first.counters().delivered, 7u);
    EXPECT_EQ(to_first.hits().packets, 7u);
    EXPECT_EQ(to_first.hits().bytes, 7u * 60);
}

TEST_F(TwoEngines, HoldWhatIsOnItsWayFromOneToTheOther)
{
    eth_rxq queue(port.get(), cpu, {.engine = 0});
    flow rule(port.get(), {}, flow_action::to(queue));
    arrive(1, 0, 10);
    run_dry(1);
    EXPECT_EQ(port.counters().received, 10u);
    EXPECT_EQ(port.counters().held, 10u);
    EXPECT_TRUE(conserves(port.counters()));
    run_dry(0);
    EXPECT_EQ(port.counters().held, 0u);
    EXPECT_EQ(port.counters().received_bytes, 600u);
    fake_kernel kernel(queue);
    std::uint32_t next = 0;
    for (const weftio_dev_packet& packet : kernel.receive()) {
        EXPECT_TRUE(is_intact(packet));
        EXPECT_EQ(number_of(packet), next++);
    }
    EXPECT_EQ(next, 10u);
}

TEST_F(TwoEngines, TellAQueueTheSameOfAPacketWhereverItArrived)
{
    eth_rxq queue(port.get(), cpu, {.engine = 0});
    flow rule(port.get(), {.ip_protocol = 17}, flow_action::rss({&queue}));
    fake_kernel kernel(queue);
    weftio_dev_packet packets[2];
    for (unsigned arrived = 0; arrived < 2; ++arrived) {
        rte_mbuf* mbuf = port.make(frames::udp4(1000, 2000));
        stamp(*mbuf, 1'700'000'000'000'000'000);
        mbuf->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
        mbuf->vlan_tci = 0x2005;
        ASSERT_TRUE(port.send(mbuf, arrived));
        run_dry(1);
        packets[arrived] = kernel.receive_one();
    }
    EXPECT_EQ(content(packets[1]), frames::udp4(1000, 2000));
    EXPECT_EQ(packets[1].timestamp_ns, packets[0].timestamp_ns);
    EXPECT_EQ(packets[1].rss_hash, packets[0].rss_hash);
    EXPECT_NE(packets[1].rss_hash, 0u);
    EXPECT_EQ(packets[1].flags, packets[0].flags);
    EXPECT_EQ(packets[1].vlan_tci, 0x2005);
}

TEST_F(TwoEngines, CountWhatFindsTheInboxFull)
{
    eth_rxq queue(port.get(), cpu, {.packets = 4096, .engine = 0});
    flow rule(port.get(), {}, flow_action::to(queue));
    const std::uint32_t sent = nic::soft::inbox::capacity + 100;
    arrive(1, 0, sent);
    run_dry(1);
    EXPECT_EQ(port.counters().held, nic::soft::inbox::capacity);
    EXPECT_EQ(dropped(port.counters(), drop_reason::out_of_buffer), 100u);
    EXPECT_EQ(queue.counters().out_of_buffer, 100u);
    EXPECT_EQ(rule.hits().packets, sent);
    run_dry(0);
    EXPECT_EQ(queue.counters().delivered, nic::soft::inbox::capacity);
}

TEST_F(TwoEngines, DeliverWhatIsOnItsWayWhenThePortHasGone)
{
    eth_rxq queue(port.get(), cpu, {.engine = 0});
    flow rule(port.get(), {}, flow_action::to(queue));
    arrive(1, 0, 10);
    run_dry(1);
    ASSERT_EQ(rte_eal_hotplug_remove("vdev", port.get().spec().c_str()), 0);
    port.run_dry();
    EXPECT_TRUE(port.get().gone());
    EXPECT_EQ(queue.counters().delivered, 10u);
    EXPECT_EQ(port.counters().held, 0u);
}

TEST_F(TwoEngines, DropWhatIsOnItsWayToAQueueThatEnds)
{
    auto ending = std::make_unique<eth_rxq>(port.get(), cpu, eth_rxq_options{.engine = 0});
    flow rule(port.get(), {}, flow_action::to(*ending));
    arrive(1, 0, 10);
    run_dry(1);
    const std::uint32_t number = ending->number();
    ending.reset();
    eth_rxq next(port.get(), cpu, {.engine = 0});
    ASSERT_EQ(next.number(), number);
    port.run_dry();
    EXPECT_EQ(next.counters().delivered, 0u);
    EXPECT_EQ(dropped(port.counters(), drop_reason::queue_closed), 10u);
}

TEST_F(TwoEngines, SendEachThroughItsPortQueue)
{
    buf_arr frames(port.get(), cpu, {.count = 1, .buffer_bytes = 60});
    for (unsigned engine = 0; engine < 2; ++engine) {
        eth_txq queue(port.get(), cpu, {.engine = static_cast<int>(engine)});
        ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(queue.handle(), weftio_dev_buf_get(frames.handle(), 0), 60, 0),
                  WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_eth_txq_commit_strong(queue.handle()), WEFTIO_DEV_OK);
        weftio_dev_eth_txq_push(queue.handle());
        EXPECT_EQ(port.on_the_wire(engine), 1u);
        EXPECT_EQ(port.on_the_wire(1 - engine), 0u);
        rte_pktmbuf_free(port.take(engine));
        port.run_dry();
        EXPECT_EQ(queue.counters().sent, 1u);
    }
}

TEST(Inbox, RefusesNothingWhileThereIsRoomHoweverManyPutAtOnce)
{
    constexpr unsigned engines = 3, each = nic::soft::inbox::capacity / engines;
    std::atomic<unsigned> refused{0};
    for (unsigned round = 0; round < 500; ++round) {
        nic::soft::inbox inbox;
        std::atomic<unsigned> ready{0};
        std::vector<std::thread> putting;
        for (unsigned engine = 0; engine < engines; ++engine)
            putting.emplace_back([&] {
                for (++ready; ready != engines;)
                    std::this_thread::yield();
                for (unsigned packet = 0; packet < each; ++packet)
                    refused += !inbox.put({});
            });
        for (std::thread& thread : putting)
            thread.join();
        ASSERT_EQ(inbox.waiting() + refused, engines * each);
        ASSERT_EQ(refused, 0u) << round;
    }
}

TEST(HeldInboxes, LoseNothingAndKeepTheOrder)
{
    device cpu = device::open("cpu");
    injected_port port({.mode = engine_mode::inline_worker, .engines = 2, .hold_when_full = port_options::hold::on});
    eth_rxq queue(port.get(), cpu, {.packets = depth, .engine = 0});
    flow rule(port.get(), {}, flow_action::to(queue));
    fake_kernel kernel(queue);
    constexpr std::uint32_t sent = 3000; // more than the inbox holds
    for (std::uint32_t number = 0; number < sent; ++number)
        ASSERT_TRUE(port.send(numbered_frame(number), 1));
    for (std::uint32_t next = 0; next < sent;) {
        while (port.get().turn(1) != 0) {
        }
        std::vector<weftio_dev_packet> packets = kernel.receive();
        ASSERT_FALSE(packets.empty());
        for (const weftio_dev_packet& packet : packets)
            ASSERT_EQ(number_of(packet), next++);
        kernel.release(static_cast<std::uint32_t>(packets.size()));
        ASSERT_TRUE(conserves(port.counters()));
    }
    EXPECT_TRUE(all_accounted(port.counters(), sent));
    EXPECT_EQ(port.counters().dropped_total(), 0u);
}

/// A driver that fills slots of a queue itself: a slot must not leave its engine.
TEST(LentSlots, StayWithTheirEngineWhenAPacketIsHandedOver)
{
    device cpu = device::open("cpu");
    port port = port::open("net_null_scale,size=64", {.mode = engine_mode::inline_worker, .engines = 2});
    eth_rxq lender(port, cpu, {.packets = depth, .engine = 0}), other(port, cpu, {.packets = 1024, .engine = 1});
    {
        flow away(port, {}, flow_action::to(other));
        ASSERT_EQ(port.turn(0), 64u);
        EXPECT_EQ(port.counters().copied_bytes, 64u * 64);
    }
    flow back(port, {}, flow_action::to(lender));
    ASSERT_EQ(port.turn(0), 64u);
    EXPECT_EQ(lender.counters().delivered, depth);
    EXPECT_EQ(port.counters().copied_bytes, 64u * 64); // all of its slots had come back
    EXPECT_EQ(port.counters().held, 64u);
}

/// Flows of UDP, frame after frame, each on the port queue that a NIC's hash would give it.
class sender_of_flows {
 public:
    static constexpr std::uint16_t flows = 16;

    sender_of_flows(const injected_port& port, unsigned queues)
        : thread_([this, &port, queues](const std::stop_token& end) { run(port, queues, end); })
    {}
    std::uint64_t stop()
    {
        thread_ = {};
        return sent_;
    }

 private:
    void run(const injected_port& port, unsigned queues, const std::stop_token& end)
    {
        for (std::uint32_t number = 0; !end.stop_requested(); ++number) {
            const auto flow = static_cast<std::uint16_t>(number % flows);
            bytes frame = frames::udp4(flow, 7);
            std::memcpy(&frame[frame.size() - sizeof number], &number, sizeof number);
            bool gone = false;
            while (!end.stop_requested() && !(gone = port.send(frame, flow % queues)))
                std::this_thread::sleep_for(std::chrono::microseconds(50));
            sent_ += gone;
            if (number % 64 == 0)
                std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }

    std::uint64_t sent_ = 0;
    std::jthread thread_;
};

/// What a receiving kernel sees of them: the flows, and that none goes backwards.
struct flows_seen {
    std::map<std::uint16_t, std::uint32_t> last;
    std::uint64_t packets = 0, backwards = 0;

    void see(const weftio_dev_packet& packet)
    {
        std::uint32_t number = 0;
        std::memcpy(&number, packet.address + packet.bytes - sizeof number, sizeof number);
        const std::uint16_t flow = static_cast<std::uint16_t>(packet.address[34] << 8 | packet.address[35]);
        auto [known, is_new] = last.try_emplace(flow, number);
        backwards += !is_new && number <= known->second;
        known->second = number;
        ++packets;
    }
};

/// Receives whatever comes to a queue, in a thread of its own, until stop(). In inline mode it drives the queue's
/// engine.
class receiving_kernel {
 public:
    explicit receiving_kernel(const eth_rxq& queue)
        : queue_(queue), thread_([this](const std::stop_token& end) { run(end); })
    {}
    const flows_seen& stop()
    {
        thread_ = {};
        return seen_;
    }
    std::uint64_t packets() const { return packets_; }

 private:
    void run(const std::stop_token& end)
    {
        fake_kernel kernel(queue_);
        while (!end.stop_requested()) {
            std::vector<weftio_dev_packet> packets = kernel.receive();
            for (const weftio_dev_packet& packet : packets)
                seen_.see(packet);
            kernel.release(static_cast<std::uint32_t>(packets.size()));
            packets_ += packets.size();
        }
    }

    const eth_rxq& queue_;
    flows_seen seen_;
    std::atomic<std::uint64_t> packets_{0};
    std::jthread thread_;
};

struct shape {
    engine_mode mode;
    unsigned engines;
};

class ManyEngines : public testing::TestWithParam<shape> {
 protected:
    ManyEngines()
    {
        for (unsigned engine = 0; engine < GetParam().engines; ++engine)
            queues.emplace_back(port.get(), cpu, eth_rxq_options{.packets = 4096});
    }
    std::vector<const eth_rxq*> all() const
    {
        std::vector<const eth_rxq*> pointers;
        for (const eth_rxq& queue : queues)
            pointers.push_back(&queue);
        return pointers;
    }
    std::uint64_t delivered() const { return port.counters().delivered; }

    device cpu = device::open("cpu");
    injected_port port{
        {.mode = GetParam().mode, .engines = GetParam().engines, .hold_when_full = port_options::hold::on}};
    std::vector<eth_rxq> queues;
};

TEST_P(ManyEngines, SpreadFlowsOverQueuesOfAllAndLoseNothing)
{
    flow everything(port.get(), {.ip_protocol = 17}, flow_action::rss(all()));
    std::deque<receiving_kernel> kernels;
    for (const eth_rxq& queue : queues)
        kernels.emplace_back(queue);
    sender_of_flows sending(port, GetParam().engines);
    EXPECT_TRUE(eventually([&] { return delivered() > 5000; }));
    const std::uint64_t sent = sending.stop();
    eventually([&] { return port.counters().received == sent && port.counters().held == 0; });
    EXPECT_TRUE(all_accounted(port.counters(), sent));
    EXPECT_EQ(delivered(), sent);
    std::uint64_t seen = 0;
    std::set<std::uint16_t> flows;
    for (receiving_kernel& kernel : kernels) {
        eventually([&] {
            return kernel.packets() == queues[static_cast<std::size_t>(&kernel - &kernels[0])].counters().delivered;
        });
        const flows_seen& here = kernel.stop();
        EXPECT_EQ(here.backwards, 0u);
        seen += here.packets;
        for (const auto& [flow, last] : here.last)
            EXPECT_TRUE(flows.insert(flow).second) << "flow " << flow << " went to two queues";
    }
    EXPECT_EQ(seen, sent);
    EXPECT_EQ(everything.hits().packets, sent);
    EXPECT_EQ(flows.size(), sender_of_flows::flows);
}

TEST_P(ManyEngines, LetQueuesRulesAndKeysComeAndGoWhileTheyWork)
{
    flow everything(port.get(), {.ip_protocol = 17}, flow_action::rss(all()), 9);
    std::deque<receiving_kernel> kernels;
    for (const eth_rxq& queue : queues)
        kernels.emplace_back(queue);
    sender_of_flows sending(port, GetParam().engines);
    auto change = [&] {
        for (int round = 0; round < 5; ++round) {
            eth_rxq passing(port.get(), cpu, {.packets = depth, .max_packet_bytes = 128});
            eth_txq sending_too(port.get(), cpu, {.entries = 64});
            flow some(port.get(), {.source_port = port_range{3, 5}}, flow_action::drop());
            buf_arr frames(port.get(), cpu, {.count = 4, .buffer_bytes = 64});
            passing.reset();
            sending_too.reset();
        }
    };
    std::thread first(change), second(change);
    first.join();
    second.join();
    const std::uint64_t sent = sending.stop();
    eventually([&] { return port.counters().received == sent && port.counters().held == 0; });
    EXPECT_TRUE(all_accounted(port.counters(), sent));
}

TEST_P(ManyEngines, NeedNoKernelAndMayBeDrivenByOneThread)
{
    flow everything(port.get(), {.ip_protocol = 17}, flow_action::rss(all()));
    for (std::uint16_t number = 0; number < 100; ++number)
        ASSERT_TRUE(port.send(frames::udp4(number, 7), number % GetParam().engines));
    if (GetParam().mode == engine_mode::inline_worker) // others drive themselves
        port.run_dry();
    EXPECT_TRUE(eventually([&] { return delivered() == 100u; }));
    EXPECT_EQ(everything.hits().packets, 100u);
}

INSTANTIATE_TEST_SUITE_P(Modes, ManyEngines,
                         testing::Values(shape{engine_mode::thread, 2}, shape{engine_mode::thread, 4},
                                         shape{engine_mode::inline_worker, 2}, shape{engine_mode::inline_worker, 4}),
                         [](const auto& info) {
                             return std::string(info.param.mode == engine_mode::thread ? "Threads" : "Inline") +
                                    std::to_string(info.param.engines);
                         });

/// An endless driver: every engine receives without a pause, into queues that fill and are dropped from.
TEST(EndlessEngines, AccountForEveryPacket)
{
    device cpu = device::open("cpu");
    port port = port::open("net_null_endless,size=64", {.engines = 4});
    {
        eth_rxq first_engine_queue(port, cpu, {.engine = 0}), last_engine_queue(port, cpu, {.engine = 3});
        flow rule(port, {}, flow_action::to(last_engine_queue), 1);
        EXPECT_TRUE(eventually([&] { return last_engine_queue.counters().out_of_buffer > 10000; }));
        flow first(port, {}, flow_action::to(first_engine_queue), 0);
        EXPECT_TRUE(eventually([&] { return port.counters().received > 50000; }));
        EXPECT_TRUE(conserves(port.counters()));
        port_counters counters;
        std::uint64_t hits = 0;
        nic::soft::engines& engines = software_nic(port).engines();
        engines.between_all_turns([&] {
            for (unsigned engine = 0; engine < engines.count(); ++engine)
                engines.receiver(engine).count(counters);
            hits = rule.hits().packets + first.hits().packets;
        });
        EXPECT_EQ(hits, counters.received);
    }
    EXPECT_TRUE(eventually([&] { return port.counters().held == 0; }));
    EXPECT_TRUE(all_accounted(port.counters(), port.counters().received));
}

} // namespace
} // namespace weftio::test
