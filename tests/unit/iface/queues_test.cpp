// Every receive queue of an interface is served, or a word says why not.
#include "taken.hpp"

namespace weftio::test {
namespace {

using testing::ElementsAre, testing::AllOf, testing::HasSubstr;

constexpr const char* missed = "interfaces with several receive queues";

void make_pair_of_four_queues()
{
    shell("ip link add m1 numrxqueues 4 numtxqueues 4 type veth peer name m0 numrxqueues 4 numtxqueues 4 && "
          "ip link set m0 up && ip link set m1 up");
}

void expect_all_of_400_datagrams(port& port)
{
    const flow udp(port, {.ip_protocol = 17}, flow_action::drop());
    const other_end sender("m0");
    for (unsigned each = 0; each < 400; ++each)
        sender.send(udp_frame(4000 + each % 97));
    EXPECT_EQ(met(port, udp, 400), 400u) << port.driver();
}

TEST(InterfaceOfFourQueues, IsServedWholeByAfPacketAndALineSaysWhy)
{
    in_own_network(missed, [] {
        make_pair_of_four_queues();
        const lines_logged warnings(log_level::warning);
        port opened = port::open("iface:m1", {.mode = engine_mode::inline_worker});
        EXPECT_EQ(opened.driver(), "net_af_packet");
        EXPECT_THAT(warnings.of_weftio(),
                    ElementsAre(AllOf(HasSubstr("port iface:m1: AF_PACKET"), HasSubstr("m1 has 4 receive queues"),
                                      HasSubstr("ethtool -L m1 rx 1 tx 1"), HasSubstr("joins IPv4 fragments"))));
        expect_all_of_400_datagrams(opened);
    });
}

TEST(InterfaceOfFourQueues, IsRefusedUnderXdpOnlyUntilItHasOne)
{
    in_own_network(missed, [] {
        make_pair_of_four_queues();
        try {
            port::open("iface:m1,xdp=only");
            FAIL() << "it was opened";
        } catch (const error& refused) {
            EXPECT_EQ(refused.code(), errc::not_supported);
            EXPECT_THAT(refused.what(), AllOf(HasSubstr("4 receive queues"), HasSubstr("ethtool -L m1 rx 1 tx 1")));
        }
        shell("ethtool -L m1 rx 1 tx 1 && ethtool -L m0 rx 1 tx 1");
        port opened = port::open("iface:m1,xdp=only", {.mode = engine_mode::inline_worker});
        EXPECT_EQ(opened.driver(), "net_af_xdp");
        expect_all_of_400_datagrams(opened);
    });
}

TEST(InterfaceOfFourQueues, IsServedByFourEngines)
{
    in_own_network(missed, [] {
        make_pair_of_four_queues();
        port opened = port::open("iface:m1", {.mode = engine_mode::inline_worker, .engines = 4});
        expect_all_of_400_datagrams(opened);
    });
}

/// Opens m1 with one queue, which then gets four.
void with_more_queues(const char* spec, const char* driver, const std::function<void(port&)>& body)
{
    in_own_network(missed, [&] {
        make_pair_of_four_queues();
        shell("ethtool -L m1 rx 1 tx 1 && ethtool -L m0 rx 1 tx 1");
        port opened = port::open(spec, {.mode = engine_mode::inline_worker});
        if (opened.driver() != driver)
            GTEST_SKIP() << "missed: more queues under " << driver << "; it is unavailable here";
        expect_all_of_400_datagrams(opened);
        shell("ethtool -L m1 rx 4 && ethtool -L m0 tx 4");
        body(opened);
    });
}

TEST(InterfaceThatGetsMoreQueues, EndsAPortOfAfXdp)
{
    const lines_logged errors(log_level::error);
    with_more_queues("iface:m1", "net_af_xdp", [&](port& opened) {
        EXPECT_TRUE(eventually([&] {
            opened.turn();
            return opened.gone();
        }));
        EXPECT_THAT(errors.of_weftio(), ElementsAre(HasSubstr("more receive queues now (ethtool -L)")));
    });
}

TEST(InterfaceThatGetsMoreQueues, IsServedWholeByAfPacket)
{
    with_more_queues("net_af_packet_queues,iface=m1", "net_af_packet", [](port& opened) {
        expect_all_of_400_datagrams(opened);
        EXPECT_FALSE(opened.gone());
    });
}

TEST(InterfaceSpec, RefusesOptionsThatItDoesNotKnow)
{
    in_own_network(missed, [] {
        try {
            port::open("iface:v1,xdp=never");
            FAIL() << "it was opened";
        } catch (const error& refused) {
            EXPECT_EQ(refused.code(), errc::invalid_argument);
            EXPECT_THAT(refused.what(), HasSubstr("\"xdp=never\" is not an option of an interface"));
        }
    });
}

} // namespace
} // namespace weftio::test
