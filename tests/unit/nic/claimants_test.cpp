// Packets that transports of the engine take ahead of the port's rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "injected_port.hpp"
#include "net/packet_headers.hpp"
#include "nic/soft/receive/packet_claimant.hpp"
#include "software_nic.hpp"

namespace weftio::test {
namespace {

using frames::udp4;

/// Takes what is UDP to one port.
class port_claimant final : public nic::soft::packet_claimant {
 public:
    explicit port_claimant(std::uint16_t udp_port) : udp_port_(udp_port) {}

    bool claims(const rte_mbuf&, const net::packet_headers& headers) const noexcept override
    {
        ++asked;
        return headers.destination_port == udp_port_;
    }
    bool take(rte_mbuf& mbuf, const net::packet_headers& headers) override
    {
        EXPECT_EQ(
            net::parse({rte_pktmbuf_mtod(&mbuf, const std::uint8_t*), mbuf.data_len}, std::nullopt).destination_port,
            headers.destination_port);
        ++taken;
        return false;
    }

    mutable unsigned asked = 0;
    unsigned taken = 0;

 private:
    const std::uint16_t udp_port_;
};

class Claimants : public testing::Test {
 protected:
    nic::soft::receiver& receiver() { return software_nic(wire.get()).engines().receiver(0); }
    void send_to(std::initializer_list<std::uint16_t> udp_ports)
    {
        for (const std::uint16_t udp_port : udp_ports)
            ASSERT_TRUE(wire.send(udp4(1, udp_port)));
        wire.run_dry();
    }
    /// UDP ports of what the rules have given to the kernel.
    std::vector<std::uint16_t> received()
    {
        std::vector<std::uint16_t> udp_ports;
        for (const weftio_dev_packet& packet : kernel.receive())
            udp_ports.push_back(net::parse(content(packet), std::nullopt).destination_port);
        return udp_ports;
    }

    injected_port wire;
    device cpu = device::open("cpu");
    eth_rxq queue{wire.get(), cpu};
    flow low_ports{wire.get(), {.destination_port = port_range{1, 9}}, flow_action::to(queue)};
    fake_kernel kernel{queue};
    port_claimant first{1000}, second{2000};
};

TEST_F(Claimants, GetTheirOwnAndRulesSeeTheOthersInOrder)
{
    receiver().admit(first);
    receiver().admit(second);
    receiver().admit(first);
    send_to({1, 1000, 2, 2000, 2000, 3, 77, 1000});
    EXPECT_EQ(first.taken, 2u);
    EXPECT_EQ(second.taken, 2u);
    EXPECT_EQ(first.asked, 8u);
    EXPECT_EQ(second.asked, 6u) << "what the first claims, the second does not see";
    EXPECT_THAT(received(), testing::ElementsAre(1, 2, 3));
    EXPECT_EQ(wire.counters().received, 4u) << "claimed packets are counted by who claims them";
    EXPECT_EQ(dropped(wire.counters(), drop_reason::no_match), 1u);
    EXPECT_TRUE(conserves(wire.counters()));
}

TEST_F(Claimants, ThatAreDismissedAreAskedNoMore)
{
    receiver().admit(first);
    receiver().admit(second);
    send_to({1000, 2000});
    receiver().dismiss(first);
    send_to({1000, 2000, 4});
    EXPECT_EQ(first.taken, 1u);
    EXPECT_EQ(second.taken, 2u);
    receiver().dismiss(second);
    send_to({2000, 5});
    EXPECT_EQ(second.taken, 2u);
    EXPECT_THAT(received(), testing::ElementsAre(4, 5));
    EXPECT_EQ(dropped(wire.counters(), drop_reason::no_match), 2u);
}

/// Packets wait in the burst while the queue is full: their headers wait with them.
TEST(ClaimantsOfAFullPort, LeaveTheHeadersOfPacketsThatWait)
{
    injected_port wire({.mode = engine_mode::inline_worker, .hold_when_full = port_options::hold::on});
    const device cpu = device::open("cpu");
    eth_rxq queue(wire.get(), cpu, {.packets = 64});
    const flow odd(wire.get(), {.destination_port = port_range{1, 9999}}, flow_action::to(queue));
    fake_kernel kernel(queue);
    port_claimant claimant(20000);
    software_nic(wire.get()).engines().receiver(0).admit(claimant);
    for (std::uint16_t number = 1; number <= 100; ++number) {
        ASSERT_TRUE(wire.send(udp4(1, number)));
        ASSERT_TRUE(wire.send(udp4(1, 20000)));
    }
    std::uint16_t expected = 0;
    while (expected != 100) {
        wire.run_dry();
        const std::vector<weftio_dev_packet> packets = kernel.receive();
        ASSERT_FALSE(packets.empty()) << "behind " << expected;
        for (const weftio_dev_packet& packet : packets)
            ASSERT_EQ(net::parse(content(packet), std::nullopt).destination_port, ++expected);
        kernel.release(static_cast<std::uint32_t>(packets.size()));
    }
    wire.run_dry();
    EXPECT_EQ(claimant.taken, 100u);
    EXPECT_TRUE(conserves(wire.counters()));
}

} // namespace
} // namespace weftio::test
