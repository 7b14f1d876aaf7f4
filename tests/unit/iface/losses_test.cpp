// What an interface's driver had no room for is counted.
#include "dpdk/xdp_objects.hpp"
#include "taken.hpp"

namespace weftio::test {
namespace {

constexpr const char* missed = "packets that a driver has no room for";

/// The port takes nothing while they arrive: its driver keeps some and loses the others.
void expect_all_accounted_for(const char* spec, const char* driver, const char* from)
{
    constexpr unsigned sent = 6000;
    port opened = port::open(spec, {.mode = engine_mode::inline_worker});
    if (opened.driver() != driver)
        GTEST_SKIP() << "missed: " << missed << " of " << driver << "; it is unavailable here";
    const flow udp(opened, {.ip_protocol = 17}, flow_action::drop());
    const std::uint64_t before = opened.counters().driver_missed;
    const other_end sender(from);
    for (unsigned each = 0; each < sent; ++each)
        sender.send(udp_frame(4000));
    EXPECT_TRUE(eventually([&] {
        while (opened.turn() != 0) {
        }
        return udp.hits().packets + opened.counters().driver_missed - before >= sent;
    }));
    const std::uint64_t lost = opened.counters().driver_missed - before;
    EXPECT_GT(lost, 0u);
    EXPECT_EQ(udp.hits().packets + lost, sent) << udp.hits().packets << " received, " << lost << " lost";
    EXPECT_EQ(opened.counters().driver_missed - before, lost) << "asked again";
    std::uint64_t at_sockets = 0; // a veth counts them, too; other interfaces may not
    for (const int socket : dpdk::sockets_among(dpdk::xdp_objects_open()))
        at_sockets += dpdk::lost_at(socket);
    EXPECT_EQ(at_sockets, opened.driver() == "net_af_xdp" ? lost : 0);
}

/// Without IPv6, which would say something by itself.
void in_quiet_network(const std::function<void()>& body)
{
    in_own_network(missed, [&] {
        for (const char* each : {"v0", "v1"})
            shell(std::string("sysctl -q -w net.ipv6.conf.") + each + ".disable_ipv6=1");
        body();
    });
}

TEST(Losses, OfAfXdpAreCounted)
{
    in_quiet_network([] { expect_all_accounted_for("iface:v1", "net_af_xdp", "v0"); });
}

TEST(Losses, OfAfPacketAreCounted)
{
    in_quiet_network([] {
        expect_all_accounted_for("net_af_packet_losses,iface=v1,blocksz=4096,framesz=2048,framecnt=64", "net_af_packet",
                                 "v0");
    });
}

} // namespace
} // namespace weftio::test
