// What counts as sent on a network interface has left it, and what arrives there is whole.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "dpdk/kernel_interface.hpp"
#include "own_network.hpp"
#include "peer.hpp"
#include "sends.hpp"

WEFTIO_DEFINE_KERNEL(sees_packets, "sends_kernels.h");

namespace weftio::test {
namespace {

constexpr const char* missed = "what is sent on an interface";

class Interface : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Of, Interface, testing::Values("iface:v1", "net_af_packet_sent,iface=v1"),
                         [](const auto& info) { return std::string(info.index == 0 ? "AfXdp" : "AfPacket"); });

TEST_P(Interface, RefusesFramesLongerThanItsMtuAndNamesBothLengths)
{
    in_own_network(missed, [] {
        shell("ip link set v1 mtu 600");
        const peer other;
        sends some(GetParam());
        EXPECT_EQ(some.port.mtu(), 600u);
        some.run(614, 20);
        EXPECT_EQ(some.queue.counters().sent, 20u);
        EXPECT_EQ(other.heard(614, 20), 20u);
        some.run(615, 1);
        EXPECT_EQ(some.queue.counters().sent, 20u);
        EXPECT_NE(some.said.find("it has at least 615 bytes, the limit is 614 with an MTU of 600"), std::string::npos)
            << some.said;
    });
}

TEST_P(Interface, MayGetAnotherMtuMeanwhile)
{
    in_own_network(missed, [] {
        sends some(GetParam());
        some.run(1514, 1);
        EXPECT_EQ(some.queue.counters().sent, 1u);
        shell("ip link set v1 mtu 600");
        EXPECT_TRUE(eventually([&] { // an engine looks now and then
            some.run(1514, 1);
            return some.queue.failed();
        }));
        EXPECT_NE(some.said.find("an MTU of 600"), std::string::npos) << some.said;
    });
}

void expect_failure_until_up(sends& some, const peer& other, const char* up)
{
    EXPECT_FALSE(some.port.link_up());
    some.run(64, 10);
    EXPECT_EQ(some.queue.counters().sent, 0u);
    EXPECT_EQ(some.queue.counters().failed, 1u);
    EXPECT_EQ(some.queue.counters().flushed, 9u);
    EXPECT_NE(some.said.find("entry at position 0 failed: the link is down"), std::string::npos) << some.said;
    shell(up);
    EXPECT_TRUE(eventually([&] { return some.port.link_up(); }));
    EXPECT_TRUE(eventually([&] {
        some.queue.reset();
        some.run(64, 1);
        return !some.queue.failed();
    }));
    const auto sent = static_cast<unsigned>(some.queue.counters().sent);
    EXPECT_EQ(other.heard(64, sent), sent);
}

TEST_P(Interface, ThatIsDownSendsNothingAndSaysSo)
{
    in_own_network(missed, [] {
        shell("ip link set v1 down");
        const peer other;
        sends some(GetParam());
        shell("ip link set v1 down"); // some drivers bring it up
        expect_failure_until_up(some, other, "ip link set v1 up");
    });
}

TEST_P(Interface, WhosePeerIsDownSendsNothingAndSaysSo)
{
    in_own_network(missed, [] {
        shell("ip link set v0 down");
        const peer other;
        sends some(GetParam());
        expect_failure_until_up(some, other, "ip link set v0 up");
    });
}

TEST_P(Interface, WaitsForALinkThatIsDownForAMomentOnly)
{
    in_own_network(missed, [] {
        const peer other;
        sends some(GetParam());
        bool waited = false;
        for (int attempt = 0; attempt < 5 && !waited; ++attempt) { // Linux may take longer than the port waits
            some.queue.reset();
            shell("ip link set v0 down");
            EXPECT_TRUE(eventually([&] { return !some.port.link_up(); }));
            std::this_thread::sleep_for(std::chrono::milliseconds(100)); // until the engine has looked
            std::thread brings_up([] { shell("ip link set v0 up"); });
            some.run(64, 10);
            brings_up.join();
            waited = !some.queue.failed();
        }
        EXPECT_TRUE(waited) << some.said;
        const auto sent = static_cast<unsigned>(some.queue.counters().sent);
        EXPECT_GE(sent, 10u);
        EXPECT_EQ(other.heard(64, sent), sent);
    });
}

TEST_P(Interface, TellsWhatTheKernelDropsAfterwards)
{
    in_own_network(missed, [] {
        shell("ip link set v0 mtu 600"); // the other end takes no more
        sends some(GetParam());
        EXPECT_EQ(some.port.counters().tx_dropped, 0u);
        some.run(1514, 10);
        EXPECT_EQ(some.queue.counters().sent, 10u);
        EXPECT_TRUE(eventually([&] { return some.port.counters().tx_dropped >= 10; }));
    });
}

TEST_P(Interface, CountsAFrameThatTheKernelDropsOnce)
{
    in_own_network(missed, [] {
        shell("ip link set v0 mtu 600");
        sends some(GetParam());
        for (unsigned dropped : {1u, 1u, 1u, 50u}) { // alone, and many in a burst
            some.run(1514, dropped);
            some.run(500, 3);
        }
        EXPECT_TRUE(eventually([&] { return some.port.counters().tx_dropped >= 53; }));
        EXPECT_EQ(some.port.counters().tx_dropped, 53u);
    });
}

TEST_P(Interface, GoesOnBehindWhatTheKernelDrops)
{
    in_own_network(missed, [] {
        shell("ip link set v0 mtu 600");
        const peer other;
        sends some(GetParam());
        for (unsigned dropped : {1u, 10u, 3000u}) { // the last are more than the ring of any driver has
            some.run(1514, dropped);
            some.run(500, 20);
            EXPECT_EQ(other.heard(500, 20), 20u) << "behind " << dropped;
        }
        EXPECT_EQ(some.queue.counters().sent, 3071u);
    });
}

TEST_P(Interface, HasReceivedOrMissedAllThatArrived)
{
    in_own_network("packets that no ring has room for", [] {
        unsigned said = 0;
        const peer other;
        const dpdk::kernel_interface others_end("v0");
        port from = port::open(GetParam(), {.mode = engine_mode::inline_worker});
        const flow none(from, {}, flow_action::drop());
        // More than any driver has room for. While the machine is busy, Linux may drop the rest before the driver does.
        EXPECT_TRUE(eventually([&] {
            for (unsigned frame = 0; frame < 20000; ++frame)
                said += other.try_to_say(100);
            return from.counters().driver_missed != 0;
        }));
        port_counters seen;
        EXPECT_TRUE(eventually([&] {
            while (from.turn() != 0) {
            }
            seen = from.counters();
            return seen.received + seen.driver_missed + others_end.tx_dropped() >= said;
        })) << seen.received
            << " received, " << seen.driver_missed << " missed";
        EXPECT_GT(seen.driver_missed, 0u);
        EXPECT_LE(seen.received + seen.driver_missed, said + 200); // Linux says something by itself
    });
}

/// What a kernel sees of packets that arrive.
struct sight {
    explicit sight(port& port) : queue(port, device, {.packets = 64, .max_packet_bytes = 9216})
    {
        kernel = device.launch(sees_packets_kernel, {}, queue, words.on_device());
    }
    weftio::device device = weftio::device::open("cpu");
    shared_words words{device, 3};
    eth_rxq queue;
    running_kernel kernel;
};

TEST(JumboFrames, GoBothWaysWhereTheInterfaceHasAnMtuOf9000)
{
    in_own_network("frames of 9,000 bytes", [] {
        shell("ip link set v0 mtu 9000 && ip link set v1 mtu 9000");
        const peer other;
        sends some("iface:v1");
        EXPECT_EQ(some.port.mtu(), 9000u);
        some.run(9014, 20);
        EXPECT_EQ(other.heard(9014, 20), 20u);
        sight seen(some.port);
        flow all(some.port, {.ether_type = 0x88b5}, flow_action::to(seen.queue));
        for (int frame = 0; frame < 20; ++frame)
            other.say(9014);
        EXPECT_TRUE(eventually([&] { return seen.words[0] == 20; }));
        EXPECT_EQ(seen.words[2], 9014u);
    });
}

TEST(JumboFrames, ThatTheDriverCutsCountAsTooLong)
{
    in_own_network("frames longer than a driver's buffers", [] {
        shell("ip link set v0 mtu 9000 && ip link set v1 mtu 9000");
        const peer other;
        port from = port::open("net_af_packet_cut,iface=v1"); // its frames have 2,048 bytes
        EXPECT_EQ(from.mtu(), 1959u);
        sight seen(from);
        flow all(from, {.ether_type = 0x88b5}, flow_action::to(seen.queue));
        for (std::size_t bytes : {1981u, 1982u, 3000u, 9014u, 100u})
            other.say(bytes);
        EXPECT_TRUE(eventually([&] { return seen.words[0] == 2; }));
        EXPECT_EQ(seen.words[2], 100u);
        EXPECT_EQ(seen.queue.counters().too_long, 3u);
    });
}

TEST(DriverMissed, CountsWhatTheRingOfAfPacketHadNoRoomFor)
{
    in_own_network("packets that a driver's ring has no room for", [] {
        const peer other;
        port from = port::open("net_af_packet_missed,iface=v1,blocksz=4096,framesz=2048,framecnt=32",
                               {.mode = engine_mode::inline_worker});
        const flow none(from, {}, flow_action::drop());
        for (unsigned sent = 1; sent <= 2; ++sent) {
            for (int frame = 0; frame < 500; ++frame)
                other.say(100);
            EXPECT_TRUE(eventually([&] { return from.counters().driver_missed >= 460 * sent; }));
            while (from.turn() != 0) {
            }
            const port_counters seen = from.counters();
            EXPECT_GE(seen.received + seen.driver_missed, 500 * sent);
            EXPECT_EQ(from.counters().driver_missed, seen.driver_missed);
        }
    });
}

TEST(PartialChecksums, OfAPeerThatLeavesThemToItsNicAreNotWrong)
{
    in_own_network("checksums that Linux leaves to a NIC", [] {
        shell("ip address add 10.9.8.1/24 dev v0 && ip neighbor add 10.9.8.2 lladdr 02:00:00:00:00:01 dev v0");
        port from = port::open("net_af_packet_partial,iface=v1");
        sight seen(from);
        flow all(from, {.ip_protocol = 17}, flow_action::to(seen.queue));
        const int udp = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(4321);
        to.sin_addr.s_addr = inet_addr("10.9.8.2");
        for (int datagram = 0; datagram < 5; ++datagram)
            EXPECT_EQ(::sendto(udp, "partial", 7, 0, reinterpret_cast<sockaddr*>(&to), sizeof to), 7);
        ::close(udp);
        EXPECT_TRUE(eventually([&] { return seen.words[0] == 5; }));
        EXPECT_EQ(seen.words[1], 5u);
    });
}

} // namespace
} // namespace weftio::test
