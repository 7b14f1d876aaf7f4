// What a port counts: packets where they are, bytes of all of them, everything of one moment.
#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "injected_port.hpp"
#include "software_nic.hpp"

namespace weftio::test {
namespace {

constexpr std::uint32_t depth = 64;

TEST(PortCounters, AreOfOneMomentWhileEnginesWork)
{
    device cpu = device::open("cpu");
    port port = port::open("net_null_moment,size=64", {.engines = 2, .hold_when_full = port_options::hold::on});
    eth_rxq queue(port, cpu, {.packets = 1024, .engine = 0});
    flow everything(port, {}, flow_action::to(queue));
    std::atomic<bool> ending{false};
    std::thread kernel([&] {
        for (fake_kernel kernel(queue); !ending;)
            kernel.release(static_cast<std::uint32_t>(kernel.receive().size()));
    });
    auto look_often = [&] {
        std::uint64_t held = 0;
        for (int look = 0; look < 500; ++look) {
            const port_counters counters = port.counters();
            EXPECT_TRUE(conserves(counters));
            held += counters.held;
        }
        return held;
    };
    std::thread other([&] { look_often(); });
    EXPECT_TRUE(eventually([&] { return look_often() > 0; }))
        << "nothing was on its way between the engines: this has tested nothing";
    other.join();
    ending = true;
    kernel.join();
}

/// A port with a queue, and what its frames have in bytes.
class ByteCount : public testing::Test {
 protected:
    void send(const bytes& frame)
    {
        ASSERT_TRUE(port.send(frame));
        sent_bytes += frame.size();
        ++sent_packets;
    }
    void expect_all_counted(drop_reason reason, std::uint64_t wanted)
    {
        port.run_dry();
        EXPECT_EQ(dropped(port.counters(), reason), wanted);
        EXPECT_EQ(port.counters().received_bytes, sent_bytes);
        EXPECT_TRUE(all_accounted(port.counters(), sent_packets));
    }

    device cpu = device::open("cpu");
    injected_port port;
    std::uint64_t sent_bytes = 0, sent_packets = 0;
};

TEST_F(ByteCount, TellsOfPacketsThatRulesDropToo)
{
    eth_rxq queue(port.get(), cpu, {.packets = depth, .max_packet_bytes = 128});
    flow udp(port.get(), {.ip_protocol = 17}, flow_action::to(queue));
    flow tcp(port.get(), {.ip_protocol = 6}, flow_action::drop());
    send(frames::tcp4());
    expect_all_counted(drop_reason::dropped_by_flow, 1);
    send(numbered_frame(1, 77));
    expect_all_counted(drop_reason::no_match, 1);
    send(bytes(9));
    expect_all_counted(drop_reason::runt, 1);
    send(frames::ethernet({}, 0x0800, frames::ipv4({}, frames::udp(1, 2, 500))));
    expect_all_counted(drop_reason::too_long, 1);
    for (std::uint32_t number = 0; number < depth + 3; ++number)
        send(frames::udp4());
    expect_all_counted(drop_reason::out_of_buffer, 3);
}

TEST_F(ByteCount, TellsOfPacketsThatFindAFullOrAClosedQueue)
{
    auto queue =
        std::make_unique<eth_rxq>(port.get(), cpu, eth_rxq_options{.packets = depth, .verify_checksums = false});
    flow everything(port.get(), {}, flow_action::to(*queue));
    for (std::uint32_t number = 0; number < depth + 5; ++number)
        send(numbered_frame(number, 60 + number));
    expect_all_counted(drop_reason::out_of_buffer, 5);
    EXPECT_EQ(everything.hits().bytes, sent_bytes);
    queue.reset();
    send(numbered_frame(0, 99));
    expect_all_counted(drop_reason::queue_closed, 1);
}

/// Copies when the test says so.
class waiting_copies final : public devices::copy_queue {
 public:
    void copy(void*, const void*, const rows&) noexcept override {}
    void fill(void*, std::uint32_t, std::size_t) noexcept override {}
    bool failed() const noexcept override { return false; }
    void mark(std::uint32_t number) noexcept override { marked_ = number; }
    std::uint32_t completed() const noexcept override { return completed_; }
    void complete_all() { completed_ = marked_; }

 private:
    std::uint32_t marked_ = 0, completed_ = 0;
};

/// A queue whose packets are copied on, in memory of the test.
class CopiedOn : public testing::Test {
 protected:
    static constexpr std::uint32_t stride_bytes = 256;

    CopiedOn()
    {
        weftio_dev_post_receive(&dbrec, depth);
        engines().between_all_turns([&] {
            number = engines().add_rx(0, ring());
            rule->action = flow_action::kind::queue;
            rule->targets = {number};
            engines().receiver(0).rules().add(rule);
        });
    }
    ~CopiedOn() override
    {
        engines().between_all_turns([&] {
            engines().receiver(0).rules().remove(rule.get());
            engines().remove_rx(0, number);
        });
    }
    nic::soft::engines& engines() { return software_nic(port.get()).engines(); }
    nic::soft::rx_ring ring()
    {
        return {.completions = completions.data(),
                .dbrec = &dbrec,
                .slots = slots.data() + nic::soft::rx_ring::headroom_bytes,
                .depth = depth,
                .stride_bytes = stride_bytes,
                .slot_bytes = 64,
                .verify_checksums = false,
                .staged = {.copies = copies, .slots = landed.data()}};
    }
    void arrive(std::uint32_t count)
    {
        for (std::uint32_t sent = 0; sent < count; ++sent)
            ASSERT_TRUE(port.send(numbered_frame(sent)));
        port.get().turn();
        port.get().turn(); // starts to copy
    }

    injected_port port;
    std::shared_ptr<waiting_copies> copies = std::make_shared<waiting_copies>();
    std::array<weftio_cqe, depth> completions{};
    std::array<std::byte, depth * stride_bytes> slots{}, landed{};
    std::uint32_t dbrec = 0, number = 0;
    std::shared_ptr<nic::soft::steering_rule> rule = std::make_shared<nic::soft::steering_rule>();
};

TEST_F(CopiedOn, IsHeldUntilItHasLanded)
{
    arrive(10);
    EXPECT_EQ(port.counters().held, 10u);
    EXPECT_EQ(port.counters().delivered, 0u);
    EXPECT_TRUE(conserves(port.counters()));
    copies->complete_all();
    port.get().turn();
    EXPECT_EQ(port.counters().delivered, 10u);
    EXPECT_EQ(engines().receiver(0).queue(number).delivered_bytes.value(), 600u);
    EXPECT_TRUE(all_accounted(port.counters(), 10));
}

TEST_F(CopiedOn, IsDroppedWithTheLifeOfItsQueue)
{
    arrive(10);
    weftio_dev_post_receive(&dbrec, depth);
    engines().between_all_turns([&] { engines().receiver(0).restart(number, ring()); });
    EXPECT_EQ(dropped(port.counters(), drop_reason::queue_closed), 10u);
    arrive(5);
    EXPECT_EQ(port.counters().held, 5u);
    copies->complete_all();
    port.get().turn();
    EXPECT_TRUE(all_accounted(port.counters(), 15));
    EXPECT_EQ(port.counters().delivered, 5u);
}

} // namespace
} // namespace weftio::test
