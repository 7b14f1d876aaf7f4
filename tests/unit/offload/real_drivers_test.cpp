// The drivers at hand refuse to drop and count, and the engine does.
#include <cstdlib>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "own_network.hpp"
#include "unit/device/fixture.hpp"
#include "unit/nic/injected_port.hpp"
#include "unit/txq/log_lines.hpp"

namespace weftio::test {
namespace {

using testing::Contains, testing::HasSubstr;

struct real_driver {
    const char* spec;
    const char* driver;
    const char* interface; ///< where the kernel's pings leave for the port; nullptr: the port has packets of its own
    const char* reason;
};

void PrintTo(const real_driver& which, std::ostream* out)
{
    *out << which.spec;
}

bool ping_leaves(const std::string& interface)
{
    return std::system(fmt::format("ip link set {0} up && ip address add 10.9.9.1/24 dev {0} && ip neighbor add "
                                   "10.9.9.2 lladdr 02:00:00:00:00:02 dev {0} && {{ ping -q -c 3 -i 0.2 -W 1 10.9.9.2 "
                                   ">/dev/null; true; }}",
                                   interface)
                           .c_str()) == 0;
}

/// What the kernel steers by on an interface.
std::string kernel_rules(const char* interface)
{
    const std::string command = fmt::format("tc qdisc show dev {0} 2>&1; tc filter show dev {0} 2>&1", interface);
    std::string said;
    FILE* pipe = ::popen(command.c_str(), "r");
    for (int letter = 0; pipe && (letter = std::fgetc(pipe)) != EOF;)
        said += static_cast<char>(letter);
    if (pipe)
        ::pclose(pipe);
    return said;
}

class RealDriver : public testing::TestWithParam<real_driver> {};

TEST_P(RealDriver, RefusesAndTheEngineDrops)
{
    in_own_network("offload by the drivers of interfaces", [] {
        const auto [spec, driver, interface, reason] = GetParam();
        log_lines log;
        port port = port::open(spec);
        ASSERT_EQ(port.driver(), driver);
        const std::string before = interface ? kernel_rules(interface) : "";
        const flow_match wanted = interface ? flow_match{.ether_type = 0x0800, .ip_protocol = 1} : flow_match{};
        const flow drops(port, wanted, flow_action::drop());
        EXPECT_EQ(drops.where(), flow_place::software);
        EXPECT_THAT(log.lines,
                    Contains(HasSubstr(fmt::format("{} does not: it rejects the rule: {}", driver, reason))));
        EXPECT_TRUE(!interface || ping_leaves(interface));
        EXPECT_TRUE(eventually([&] { return drops.hits().packets >= 3; }));
        const port_counters counters = port.counters();
        EXPECT_GE(dropped(counters, drop_reason::dropped_by_flow), 3u);
        EXPECT_TRUE(conserves(counters));
        EXPECT_EQ(interface ? kernel_rules(interface) : "", before);
    });
}

INSTANTIATE_TEST_SUITE_P(
    Of, RealDriver,
    testing::Values(real_driver{"null", "net_null", nullptr, "Function not implemented"},
                    real_driver{"pcap:builtin", "net_pcap", nullptr, "Function not implemented"},
                    real_driver{"net_af_packet_o,iface=v1", "net_af_packet", "v0", "Function not implemented"},
                    real_driver{"net_af_xdp_o,iface=v1", "net_af_xdp", "v0", "Function not implemented"},
                    real_driver{"tap:weftap0", "net_tap", "weftap0", "action not supported"}),
    [](const auto& info) { return std::string(info.param.driver); });

TEST(RealDriverOfARing, Refuses)
{
    injected_port port;
    const flow drops(port.get(), {}, flow_action::drop());
    EXPECT_EQ(drops.where(), flow_place::software);
    EXPECT_TRUE(port.send(numbered_frame(1)));
    port.run_dry();
    EXPECT_EQ(drops.hits().packets, 1u);
}

} // namespace
} // namespace weftio::test
