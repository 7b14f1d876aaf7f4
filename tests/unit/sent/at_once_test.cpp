// Ports that are opened at the same time do not get in each other's way.
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "own_network.hpp"
#include "peer.hpp"
#include "sends.hpp"

namespace weftio::test {
namespace {

constexpr unsigned pairs = 4;

/// Opens a port on each pair, all at once, and has each send what Linux drops, and something behind it: this arrives
/// only where a port has the socket of its own driver.
void open_and_send(unsigned round, const std::vector<std::unique_ptr<peer>>& others)
{
    std::latch all_here(pairs);
    std::vector<std::unique_ptr<sends>> ports(pairs);
    {
        std::vector<std::jthread> openers;
        for (unsigned pair = 0; pair < pairs; ++pair)
            openers.emplace_back([&, pair] {
                all_here.arrive_and_wait();
                ports[pair] =
                    std::make_unique<sends>(fmt::format("net_af_packet_at_once{}_{},iface=b{}", round, pair, pair));
            });
    }
    for (unsigned pair = 0; pair < pairs; ++pair) {
        ports[pair]->run(1514, 5);
        ports[pair]->run(500, 3);
        EXPECT_EQ(others[pair]->heard(500, 3), 3u) << "round " << round << ", pair " << pair;
    }
}

TEST(PortsOpenedAtOnce, SendThroughTheirOwnSockets)
{
    in_own_network("ports that are opened at once", [] {
        std::vector<std::unique_ptr<peer>> others;
        for (unsigned pair = 0; pair < pairs; ++pair) {
            shell(fmt::format("ip link add a{0} mtu 600 type veth peer name b{0} mtu 1500 && ip link set a{0} up && ip "
                              "link set b{0} up",
                              pair));
            others.push_back(std::make_unique<peer>(fmt::format("a{}", pair)));
        }
        for (unsigned round = 0; round < 10 && !testing::Test::HasFailure(); ++round)
            open_and_send(round, others);
    });
}

} // namespace
} // namespace weftio::test
