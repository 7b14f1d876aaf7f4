// How many engines a port can have, and what its driver must know of that.
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "dpdk/port_spec.hpp"
#include "unit/device/fixture.hpp"
#include "weftio/port.hpp"

namespace weftio::test {
namespace {

TEST(EngineCount, HasToBeOneThatAPortCanHave)
{
    for (unsigned engines : {0u, port_options::most_engines + 1}) {
        const error refusal = error_of([&] { port::open("null", {.engines = engines}); });
        EXPECT_EQ(refusal.code(), errc::invalid_argument);
        EXPECT_EQ(refusal.what(), "weftio: port null: engines is " + std::to_string(engines) + "; a port has 1 to 64");
    }
    EXPECT_EQ(port::open("null", {.mode = engine_mode::inline_worker, .engines = 8}).engines(), 8u);
}

TEST(EngineCount, IsRefusedWhereTheDriverHasFewerQueues)
{
    for (unsigned engines : {2u, port_options::most_engines}) {
        const error refusal = error_of([&] { port::open("pcap:builtin", {.engines = engines}); });
        EXPECT_EQ(refusal.code(), errc::not_supported);
        EXPECT_THAT(refusal.what(), testing::HasSubstr(fmt::format(
                                        "engines is {}, but net_pcap has 1 receive and 1 send queues here", engines)));
    }
}

TEST(EngineCount, SaysToTheDriversOfAnInterfaceHowManyQueues)
{
    auto of_xdp = [](unsigned queues) {
        return dpdk::parse_port_spec("iface:lo,xdp=only", queues).candidates.front().arguments;
    };
    auto of_packet = [](unsigned queues) {
        return dpdk::parse_port_spec("iface:lo", queues).candidates.back().arguments;
    };
    EXPECT_THAT(of_xdp(4), testing::EndsWith("iface=lo,queue_count=4"));
    EXPECT_THAT(of_packet(4), testing::EndsWith(",qpairs=4"));
    EXPECT_EQ(of_xdp(1), "iface=lo");
    EXPECT_THAT(of_packet(1), testing::Not(testing::HasSubstr("qpairs")));
}

} // namespace
} // namespace weftio::test
