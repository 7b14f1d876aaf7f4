// What a port does to Linux's own use of an interface, and what its way alters.
#include "taken.hpp"

namespace weftio::test {
namespace {

using testing::AllOf, testing::Contains, testing::HasSubstr;

constexpr const char* missed = "what a port does to Linux's use of an interface";

TEST(InterfaceWithAnAddress, IsSharedWithLinuxUnlessXdpIsAskedFor)
{
    in_own_network(missed, [] {
        if (port::open("iface:v1").driver() != "net_af_xdp")
            GTEST_SKIP() << "missed: " << missed << "; AF_XDP is unavailable here";
        for (const char* address : {"10.9.8.1/24", "fd77::1/64"}) {
            shell(std::string("ip address add ") + address + " dev v1");
            {
                const lines_logged told(log_level::info);
                EXPECT_EQ(port::open("iface:v1").driver(), "net_af_packet") << address;
                EXPECT_THAT(told.of_weftio(), Contains(AllOf(HasSubstr("v1 has the address"), HasSubstr("xdp=only"))));
            }
            const lines_logged told(log_level::warning);
            EXPECT_EQ(port::open("iface:v1,xdp=only").driver(), "net_af_xdp") << address;
            EXPECT_THAT(told.of_weftio(), Contains(HasSubstr("Linux receives nothing there")));
            shell("ip address flush dev v1 scope global");
        }
    });
}

TEST(InterfaceOfABridge, IsSharedWithLinux)
{
    in_own_network(missed, [] {
        shell("ip link add br0 type bridge && ip link set v1 master br0");
        EXPECT_EQ(port::open("iface:v1").driver(), "net_af_packet");
    });
}

/// Receives into a queue of an inline port.
class taker {
 public:
    explicit taker(port& port) : queue_(port, device_, {.packets = 64}), all_(port, {}, flow_action::to(queue_)) {}
    /// The next frame; empty if none comes.
    std::vector<std::uint8_t> next(std::uint64_t within_ns = patience_ns)
    {
        weftio_u32 count = 0, first = 0;
        weftio_dev_packet packet;
        if (weftio_dev_eth_rxq_receive_thread(queue_.handle(), 1, within_ns, &count, &first) != WEFTIO_DEV_OK ||
            weftio_dev_eth_rxq_packet(queue_.handle(), first, &packet) != WEFTIO_DEV_OK)
            return {};
        const auto* bytes = static_cast<const std::uint8_t*>(packet.address);
        std::vector<std::uint8_t> frame(bytes, bytes + packet.bytes);
        weftio_dev_eth_rxq_release(queue_.handle(), first, 1);
        return frame;
    }
    /// The frame as it arrives. Sent again until it does: Linux may drop what comes while it attaches a program to an
    /// interface that is up.
    template <class Send>
    std::vector<std::uint8_t> first_of(Send&& send)
    {
        constexpr std::uint64_t second = 1'000'000'000;
        std::vector<std::uint8_t> arrived;
        for (std::uint64_t tries = 0; arrived.empty() && tries * second < patience_ns; ++tries) {
            send();
            arrived = next(second);
        }
        while (!next(second / 10).empty()) // copies
            ;
        return arrived;
    }

 private:
    device device_ = device::open("cpu");
    eth_rxq queue_;
    flow all_;
};

class Alterations : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Of, Alterations, testing::Values("iface:v1,xdp=only", "net_af_packet_alters,iface=v1"),
                         [](const auto& info) { return std::string(info.index == 0 ? "AfXdp" : "AfPacket"); });

TEST_P(Alterations, AreThoseThatPortInfoReports)
{
    in_own_network(missed, [] {
        for (const char* each : {"v0", "v1"})
            shell(std::string("sysctl -q -w net.ipv6.conf.") + each + ".disable_ipv6=1");
        port opened = port::open(GetParam(), {.mode = engine_mode::inline_worker});
        const port_info info = opened.info();
        EXPECT_EQ(info.driver, opened.driver());
        EXPECT_EQ(info.linux_receives_too, opened.driver() == "net_af_packet");
        taker taken(opened);
        const other_end sender("v0");
        const std::vector<std::uint8_t> tagged = frame_of({0x88, 0xa8, 0, 5, 0x88, 0xb5, 1, 2, 3});
        std::vector<std::uint8_t> expected = tagged;
        if (info.rewrites_service_tags)
            expected[12] = 0x81, expected[13] = 0x00;
        EXPECT_EQ(taken.first_of([&] { sender.send(tagged); }), expected);
        const std::vector<std::uint8_t> first = ipv4_frame(std::vector<std::uint8_t>(64, 1), 0x2000),
                                        last = ipv4_frame(std::vector<std::uint8_t>(64, 2), 64 / 8);
        sender.send(first);
        sender.send(last);
        if (info.joins_fragments) {
            EXPECT_EQ(taken.next().size(), 14u + 20 + 64 + 64);
        } else {
            EXPECT_EQ(taken.next(), first);
            EXPECT_EQ(taken.next(), last);
        }
    });
}

TEST(PortInfo, AltersNothingOfAPortWithoutAnInterface)
{
    const port_info info = port::open("null").info();
    EXPECT_EQ(info.driver, "net_null");
    EXPECT_FALSE(info.linux_receives_too || info.joins_fragments || info.rewrites_service_tags);
}

} // namespace
} // namespace weftio::test
