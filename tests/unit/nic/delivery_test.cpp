// What of a frame reaches a kernel: its bytes, its length, its time, its flags.
#include "injected_port.hpp"
#include "nic/soft/receive/steering.hpp"

namespace weftio::test {
namespace {

constexpr std::uint32_t l3_good = WEFTIO_DEV_PACKET_L3_CHECKSUM_GOOD, l4_good = WEFTIO_DEV_PACKET_L4_CHECKSUM_GOOD;

class Delivery : public testing::Test {
 protected:
    weftio_dev_packet deliver(rte_mbuf* mbuf)
    {
        EXPECT_TRUE(port.send(mbuf));
        return kernel.receive_one();
    }
    weftio_dev_packet deliver(const bytes& frame) { return deliver(port.make(frame)); }

    device cpu = device::open("cpu");
    injected_port port;
    eth_rxq queue{port.get(), cpu};
    flow everything{port.get(), {}, flow_action::to(queue)};
    fake_kernel kernel{queue};
};

TEST_F(Delivery, GivesEveryByteOfAFrame)
{
    for (std::size_t frame_bytes : {18u, 59u, 60u, 64u, 65u, 1514u, 1518u, 2047u, 2048u}) {
        bytes frame = numbered_frame(7, frame_bytes);
        weftio_dev_packet packet = deliver(frame);
        EXPECT_EQ(packet.bytes, frame_bytes);
        EXPECT_EQ(content(packet), frame);
    }
    EXPECT_EQ(port.counters().copied_bytes, 18u + 59 + 60 + 64 + 65 + 1514 + 1518 + 2047 + 2048);
    EXPECT_EQ(port.counters().received_bytes, port.counters().copied_bytes);
}

TEST_F(Delivery, GivesTheShortestFrameThatHasAnEthernetHeader)
{
    bytes header(14, 0x3c);
    EXPECT_EQ(content(deliver(header)), header);
}

TEST_F(Delivery, LaysPacketsInSlotsOfTheirOwnInOrder)
{
    for (std::uint32_t number = 0; number < 200; ++number)
        ASSERT_TRUE(port.send(numbered_frame(number, 60 + number)));
    port.run_dry();
    std::vector<weftio_dev_packet> packets = kernel.receive();
    ASSERT_EQ(packets.size(), 200u);
    for (std::uint32_t number = 0; number < 200; ++number) {
        EXPECT_EQ(number_of(packets[number]), number);
        EXPECT_EQ(packets[number].bytes, 60 + number);
        EXPECT_TRUE(is_intact(packets[number]));
    }
}

TEST_F(Delivery, TellsTheDriversReceiveTime)
{
    rte_mbuf* mbuf = port.make(numbered_frame(1));
    stamp(*mbuf, 1'700'000'000'123'456'789);
    EXPECT_EQ(deliver(mbuf).timestamp_ns, 1'700'000'000'123'456'789u);
}

TEST_F(Delivery, TakesASmallDriverTimeForMicroseconds)
{
    rte_mbuf* mbuf = port.make(numbered_frame(1));
    stamp(*mbuf, 1'700'000'000'123'456);
    EXPECT_EQ(deliver(mbuf).timestamp_ns, 1'700'000'000'123'456'000u);
}

TEST_F(Delivery, TellsTheTimeOfTheBurstWhereTheDriverGivesNone)
{
    using namespace std::chrono;
    auto now_ns = [] {
        return static_cast<std::uint64_t>(duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count());
    };
    constexpr std::uint64_t second = 1'000'000'000; // more than the engine's clock may differ
    std::uint64_t before = now_ns();
    std::uint64_t reported = deliver(numbered_frame(1)).timestamp_ns;
    EXPECT_GE(reported, before - second);
    EXPECT_LE(reported, now_ns() + second);
}

TEST_F(Delivery, SaysWhichTagTheDriverHasStripped)
{
    rte_mbuf* mbuf = port.make(frames::udp4());
    mbuf->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
    mbuf->vlan_tci = 0x6123;
    weftio_dev_packet packet = deliver(mbuf);
    EXPECT_EQ(packet.flags, WEFTIO_DEV_PACKET_VLAN_STRIPPED | l3_good | l4_good);
    EXPECT_EQ(packet.vlan_tci, 0x6123u);
}

TEST_F(Delivery, LeavesTagsInTheFrameWhereTheDriverHas)
{
    using frames::ethernet;
    for (bytes frame : {ethernet({{0x8100, 5}}, 0x0800, frames::ipv4({}, frames::udp(1, 2))),
                        ethernet({{0x88a8, 7}, {0x8100, 8}}, 0x86dd, frames::ipv6({}, frames::udp(1, 2)))}) {
        weftio_dev_packet packet = deliver(frame);
        EXPECT_EQ(content(packet), frame);
        EXPECT_EQ(packet.flags, l3_good | l4_good);
    }
}

TEST_F(Delivery, ForgetsTheFactsOfThePacketThatWasInTheSlotBefore)
{
    rte_mbuf* mbuf = port.make(frames::udp4());
    mbuf->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
    mbuf->vlan_tci = 99;
    EXPECT_NE(deliver(mbuf).flags, 0u);
    kernel.release(1);
    for (std::uint32_t number = 1; number <= queue.packets(); ++number) {
        weftio_dev_packet packet = deliver(numbered_frame(number));
        EXPECT_EQ(packet.flags, 0u);
        EXPECT_EQ(packet.vlan_tci, 0u);
        kernel.release(1);
    }
}

TEST_F(Delivery, GathersThePiecesOfAPacket)
{
    bytes whole = frames::ethernet({}, 0x0800, frames::ipv4({}, frames::udp(1, 2, 1000)));
    bytes first(whole.begin(), whole.begin() + 60), second(whole.begin() + 60, whole.begin() + 61);
    bytes third(whole.begin() + 61, whole.end());
    weftio_dev_packet packet = deliver(port.make({first, second, bytes{}, third}));
    EXPECT_EQ(content(packet), whole);
    EXPECT_EQ(packet.flags, l3_good | l4_good);
}

TEST_F(Delivery, GathersAPacketWhoseHeadersAreInPieces)
{
    bytes whole = frames::udp4();
    for (std::ptrdiff_t cut : {1, 13, 14, 20, 33, 34, 41}) {
        bytes head(whole.begin(), whole.begin() + cut), tail(whole.begin() + cut, whole.end());
        EXPECT_EQ(content(deliver(port.make({head, tail}))), whole) << "cut at " << cut;
    }
}

TEST_F(Delivery, CountsOnTheQueueWhatThePortCounts)
{
    deliver(numbered_frame(1, 100));
    deliver(numbered_frame(2, 200));
    EXPECT_EQ(queue.counters().delivered, 2u);
    EXPECT_EQ(queue.counters().delivered_bytes, 300u);
    EXPECT_EQ(everything.hits().packets, 2u);
    EXPECT_EQ(everything.hits().bytes, 300u);
}

/// A frame, and the checksums in it that are right.
struct checksum_case {
    const char* name;
    bytes frame;
    std::uint32_t good;
    std::uint64_t driver_flags = 0;
};

bytes damaged(bytes frame, std::size_t at)
{
    frame[at] = static_cast<std::uint8_t>(frame[at] ^ 0x40);
    return frame;
}

bytes without_checksum(bytes frame)
{
    frame[40] = frame[41] = 0;
    return frame;
}

bytes ipv6_frame(std::vector<frames::extension> extensions, bytes payload)
{
    return frames::ethernet({}, 0x86dd, frames::ipv6({.extensions = std::move(extensions)}, std::move(payload)));
}

std::vector<checksum_case> checksum_cases()
{
    using namespace frames;
    auto fragment4 = [](std::uint16_t bits) { return ethernet({}, 0x0800, ipv4({.fragment = bits}, udp(1, 2))); };
    return {
        {"udp4", udp4(), l3_good | l4_good},
        {"tcp4", tcp4(), l3_good | l4_good},
        {"udp6", udp6(), l3_good | l4_good},
        {"ipv4_header_bad", damaged(udp4(), 22), l4_good},
        {"udp4_bad", damaged(udp4(), 44), l3_good},
        {"tcp4_bad", damaged(tcp4(), 55), l3_good},
        {"udp6_bad", damaged(udp6(), 64), l3_good},
        {"udp4_sent_without", without_checksum(udp4()), l3_good},
        {"ipv4_options", ethernet({}, 0x0800, ipv4({.option_bytes = 12}, udp(1, 2))), l3_good | l4_good},
        {"first_fragment4", fragment4(0x2000), l3_good},
        {"later_fragment4", fragment4(0x0010), l3_good},
        {"extensions6", ipv6_frame({hop_by_hop(), destination_options(), authentication()}, udp(7, 8)),
         l3_good | l4_good},
        {"extensions6_bad", damaged(ipv6_frame({hop_by_hop(), destination_options()}, udp(7, 8)), 75), l3_good},
        {"fragment6", ipv6_frame({fragment(1)}, udp(7, 8)), l3_good},
        {"whole_in_fragment6", ipv6_frame({fragment(0)}, udp(7, 8)), l3_good | l4_good},
        {"not_ip", numbered_frame(1), 0},
        {"padded",
         [] {
             bytes frame = udp4();
             frame.resize(60);
             return frame;
         }(),
         l3_good | l4_good},
        {"driver_found_both", numbered_frame(1), l3_good | l4_good,
         RTE_MBUF_F_RX_IP_CKSUM_GOOD | RTE_MBUF_F_RX_L4_CKSUM_GOOD},
        {"driver_found_neither", numbered_frame(1), 0, RTE_MBUF_F_RX_IP_CKSUM_BAD | RTE_MBUF_F_RX_L4_CKSUM_BAD},
        {"driver_says_none", numbered_frame(1), 0, RTE_MBUF_F_RX_IP_CKSUM_NONE | RTE_MBUF_F_RX_L4_CKSUM_NONE},
    };
}

class Checksums : public Delivery, public testing::WithParamInterface<checksum_case> {};

TEST_P(Checksums, AreSaidToBeGoodWhenTheyAre)
{
    rte_mbuf* mbuf = port.make(GetParam().frame);
    mbuf->ol_flags |= GetParam().driver_flags;
    weftio_dev_packet packet = deliver(mbuf);
    EXPECT_EQ(packet.flags, GetParam().good);
    EXPECT_EQ(content(packet), GetParam().frame);
}

TEST_P(Checksums, AreTheDriversWhereTheQueueDoesNotVerify)
{
    eth_rxq unverified(port.get(), cpu, {.verify_checksums = false});
    flow first(port.get(), {}, flow_action::to(unverified));
    flow replaced = std::exchange(everything, std::move(first));
    {
        flow ended = std::move(replaced);
    }
    rte_mbuf* mbuf = port.make(GetParam().frame);
    mbuf->ol_flags |= GetParam().driver_flags;
    ASSERT_TRUE(port.send(mbuf));
    EXPECT_EQ(fake_kernel(unverified).receive_one().flags, GetParam().driver_flags ? GetParam().good : 0);
}

INSTANTIATE_TEST_SUITE_P(Frames, Checksums, testing::ValuesIn(checksum_cases()),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST(ReceiveSideScaling, SpreadsByTheHashThatThePacketTells)
{
    device cpu = device::open("cpu");
    injected_port port;
    std::vector<eth_rxq> queues;
    for (int i = 0; i < 3; ++i)
        queues.emplace_back(port.get(), cpu);
    flow spread(port.get(), {}, flow_action::rss({&queues[0], &queues[1], &queues[2]}));
    std::array<int, 3> arrived{};
    for (std::uint16_t source = 1; source <= 300; ++source) {
        bytes frame = frames::udp4(source);
        std::uint32_t hash = nic::soft::rss_hash(net::parse(frame, {}), rss_key::standard);
        std::size_t expected = hash % 128 % 3;
        ASSERT_TRUE(port.send(frame));
        weftio_dev_packet packet = fake_kernel(queues[expected]).receive_one();
        EXPECT_EQ(packet.rss_hash, hash);
        EXPECT_TRUE(packet.flags & WEFTIO_DEV_PACKET_RSS_HASH);
        ++arrived[expected];
    }
    for (int count : arrived)
        EXPECT_GT(count, 50);
}

TEST(ReceiveSideScaling, TellsNoHashWhereNoneWasMade)
{
    device cpu = device::open("cpu");
    injected_port port;
    eth_rxq first(port.get(), cpu), second(port.get(), cpu);
    flow spread(port.get(), {}, flow_action::rss({&second, &first}));
    ASSERT_TRUE(port.send(numbered_frame(5))); // not IP: to the first queue of the rule
    weftio_dev_packet packet = fake_kernel(second).receive_one();
    EXPECT_EQ(packet.flags, 0u);
    EXPECT_EQ(packet.rss_hash, 0u);
}

} // namespace
} // namespace weftio::test
