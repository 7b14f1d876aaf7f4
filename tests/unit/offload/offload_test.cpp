// Rules that the driver executes: when it does, what is counted, and what happens when it refuses.
#include <atomic>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rte_dev.h>

#include "unit/telemetry/ask.hpp"
#include "unit/txq/log_lines.hpp"
#include "world.hpp"

namespace weftio::test {
namespace {

using frames::tcp4, frames::udp4, frames::udp6;
using testing::HasSubstr, testing::SizeIs;

constexpr auto by_driver = flow_place::driver, by_engine = flow_place::software;

flow_match udp_to(std::uint16_t port)
{
    return {.ip_protocol = 17, .destination_port = {{port, port}}};
}

class Offload : public testing::Test {
 protected:
    ~Offload() override { EXPECT_TRUE(conserves(get().counters())); }
    const port& get() const { return world.get(); }
    flow drop(const flow_match& match, std::uint32_t priority = 0)
    {
        return {get(), match, flow_action::drop(), priority};
    }
    flow take(const flow_match& match, std::uint32_t priority = 0)
    {
        return {get(), match, flow_action::to(queue), priority};
    }
    std::uint64_t delivered() const { return get().counters().delivered; }
    std::uint64_t dropped_by_engine() const { return dropped(get().counters(), drop_reason::dropped_by_flow); }

    device cpu = device::open("cpu");
    offload_world world;
    fake_driver& driver = world.driver();
    eth_rxq queue{world.get(), cpu};
};

TEST_F(Offload, DropsInTheDriverAndCountsThere)
{
    const flow echo = drop(udp_to(7));
    const flow rest = take({}, 1);
    EXPECT_EQ(echo.where(), by_driver);
    EXPECT_EQ(rest.where(), by_engine);
    world.arrive(udp4(1, 7), 3);
    world.arrive(udp6(1, 7));
    world.arrive(udp4(1, 8), 2);
    EXPECT_EQ(echo.hits().packets, 4u);
    EXPECT_EQ(echo.hits().bytes, 3 * udp4().size() + udp6().size());
    EXPECT_EQ(rest.hits().packets, 2u);
    EXPECT_EQ(get().counters().received, 2u);
    EXPECT_EQ(dropped_by_engine(), 0u);
}

TEST_F(Offload, LeavesToTheEngineWhatTheDriverPassesOn)
{
    const flow echo = drop(udp_to(7));
    world.arrive(udp6(1, 7));
    const bytes behind =
        frames::ethernet({}, 0x86dd, frames::ipv6({.extensions = {frames::hop_by_hop()}}, frames::udp(1, 7)));
    world.arrive(behind);
    EXPECT_EQ(driver.dropped(), 1u);
    EXPECT_EQ(dropped_by_engine(), 1u);
    EXPECT_EQ(echo.hits().packets, 2u);
    EXPECT_EQ(echo.hits().bytes, udp6().size() + behind.size());
}

TEST_F(Offload, IsShownByTelemetry)
{
    const flow echo = drop(udp_to(7)), rest = take({}, 1);
    world.arrive(udp4(1, 7), 3);
    std::string shown = ask(fmt::format("/weftio/flow,{}", software_nic(get()).device().id()));
    std::erase(shown, ' ');
    EXPECT_THAT(shown, HasSubstr(fmt::format(R"("0":{{"priority":0,"packets":3,"bytes":{},"executed_by_driver":1}})",
                                             3 * udp4().size())));
    EXPECT_THAT(shown, HasSubstr(R"("1":{"priority":1,"packets":0,"bytes":0,"executed_by_driver":0})"));
}

TEST_F(Offload, EndsInTheDriverWithTheRule)
{
    flow all = take({}, 1);
    {
        const flow echo = drop({.destination_port = {{7, 7}}});
        EXPECT_EQ(driver.rules(), 4u) << "IPv4 and IPv6, UDP and TCP";
    }
    EXPECT_EQ(driver.rules(), 0u);
    world.arrive(udp4(1, 7));
    EXPECT_EQ(delivered(), 1u);
}

TEST_F(Offload, IsForRulesThatDrop)
{
    eth_rxq other(get(), cpu);
    EXPECT_EQ(take(udp_to(7)).where(), by_engine);
    EXPECT_EQ(flow(get(), {}, flow_action::rss({&queue, &other})).where(), by_engine);
    EXPECT_EQ(driver.made(), 0u);
}

struct refusal {
    const char* name;
    fake_driver::abilities can;
    const char* reason;
};

void PrintTo(const refusal& which, std::ostream* out)
{
    *out << which.name;
}

class Refused : public Offload, public testing::WithParamInterface<refusal> {};

TEST_P(Refused, RulesStayWithTheEngineAndNothingOfThemWithTheDriver)
{
    log_lines log;
    driver.can = GetParam().can;
    const flow echo = drop(udp_to(7)), discard = drop(udp_to(9)), rest = take({}, 1);
    EXPECT_EQ(echo.where(), by_engine);
    EXPECT_EQ(driver.rules(), 0u);
    world.arrive(udp4(1, 7), 2);
    world.arrive(udp4(1, 8));
    EXPECT_EQ(echo.hits().packets, 2u);
    EXPECT_EQ(delivered(), 1u);
    EXPECT_EQ(dropped_by_engine(), 2u);
    ASSERT_THAT(log.lines, SizeIs(1)) << "the reason is told once";
    EXPECT_THAT(log.lines[0], HasSubstr(GetParam().reason));
    EXPECT_THAT(log.lines[0], HasSubstr(get().spec()));
}

INSTANTIATE_TEST_SUITE_P(
    For, Refused,
    testing::Values(refusal{"Pattern", {.unknown_items = {RTE_FLOW_ITEM_TYPE_UDP}}, "does not know this item"},
                    refusal{
                        "OneOfTwoPatterns", {.unknown_items = {RTE_FLOW_ITEM_TYPE_IPV6}}, "does not know this item"},
                    refusal{"Action", {.unknown_actions = {RTE_FLOW_ACTION_TYPE_DROP}}, "does not know this action"},
                    refusal{"Count", {.unknown_actions = {RTE_FLOW_ACTION_TYPE_COUNT}}, "does not know this action"},
                    refusal{"WantOfRoom", {.makes = false}, "the fake driver is full"},
                    refusal{"WantOfAnswers", {.answers = false}, "how many packets and bytes"},
                    refusal{"WantOfPackets", {.tells_packets = false}, "how many packets and bytes"},
                    refusal{"WantOfBytes", {.tells_bytes = false}, "how many packets and bytes"}),
    [](const auto& info) { return info.param.name; });

TEST_F(Offload, IsForRulesBeforeWhichNoOtherTakesTheirPackets)
{
    const flow first = take(udp_to(7), 1);
    EXPECT_EQ(drop({}, 2).where(), by_engine);
    EXPECT_EQ(drop({}, 1).where(), by_engine) << "of equal priorities the older decides";
    EXPECT_EQ(drop({}, 0).where(), by_driver);
    EXPECT_EQ(drop(udp_to(8), 2).where(), by_driver) << "no packet goes to both";
    const flow drops = drop(udp_to(8), 1);
    EXPECT_EQ(drop({.ip_protocol = 17}, 2).where(), by_engine) << "the hits of the first would be lost";
}

TEST_F(Offload, EndsWhenAnEarlierRuleComesAndBeginsWhenItEnds)
{
    const flow everything = drop({}, 5);
    world.arrive(udp4(1, 7), 3);
    EXPECT_EQ(everything.where(), by_driver);
    {
        const flow echo = take(udp_to(7), 4);
        EXPECT_EQ(everything.where(), by_engine);
        EXPECT_EQ(everything.hits().packets, 3u) << "what the driver dropped before";
        world.arrive(udp4(1, 7), 2);
        world.arrive(tcp4(), 4);
        EXPECT_EQ(echo.hits().packets, 2u);
        EXPECT_EQ(everything.hits().packets, 7u);
    }
    EXPECT_EQ(everything.where(), by_driver);
    world.arrive(udp4(1, 7), 10);
    EXPECT_EQ(everything.hits().packets, 17u);
    EXPECT_EQ(everything.hits().bytes, 13 * udp4().size() + 4 * tcp4().size());
    EXPECT_EQ(driver.dropped(), 13u);
    EXPECT_EQ(delivered(), 2u);
}

TEST_F(Offload, StaysWhileOneOfTwoEarlierRulesIsThere)
{
    const flow everything = drop({}, 5);
    auto a = std::make_unique<flow>(take(udp_to(7), 4)), b = std::make_unique<flow>(take(udp_to(8), 4));
    a.reset();
    EXPECT_EQ(everything.where(), by_engine);
    b.reset();
    EXPECT_EQ(everything.where(), by_driver);
}

TEST_F(Offload, KeepsTheLastCountWhenTheDriverHasNoBetterOne)
{
    const flow echo = drop(udp_to(7));
    world.arrive(udp4(1, 7), 3);
    EXPECT_EQ(echo.hits().packets, 3u);
    world.arrive(udp4(1, 7));
    driver.can.answers = false;
    EXPECT_EQ(echo.hits().packets, 3u);
    driver.can.answers = true;
    EXPECT_EQ(echo.hits().packets, 4u);
    driver.forget_counts();
    EXPECT_EQ(echo.hits().packets, 4u);
}

TEST_F(Offload, RefusesARuleWhosePacketsTheDriverGoesOnDropping)
{
    const flow everything = drop({}, 5);
    driver.can.ends = false;
    try {
        take(udp_to(7), 4);
        ADD_FAILURE() << "the driver drops its packets";
    } catch (const error& refused) {
        EXPECT_EQ(refused.code(), errc::device_error);
        EXPECT_THAT(refused.what(), HasSubstr("the fake driver keeps its rules"));
    }
    EXPECT_EQ(everything.where(), by_driver);
    world.arrive(udp4(1, 7));
    EXPECT_EQ(everything.hits().packets, 1u);
    EXPECT_EQ(take({}, 6).where(), by_engine) << "a later rule disturbs nobody";
    driver.can.ends = true;
    const flow echo = take(udp_to(7), 4);
    world.arrive(udp4(1, 7));
    EXPECT_EQ(echo.hits().packets, 1u);
    EXPECT_EQ(everything.hits().packets, 1u);
}

TEST_F(Offload, RefusesEveryRuleOfAListWithOneWhosePacketsTheDriverGoesOnDropping)
{
    const flow everything = drop({.ether_type = 0x0800}, 5);
    driver.can.ends = false;
    EXPECT_THROW(static_cast<void>(flow::install(get(), {{.match = {.ether_type = 0x0806}},
                                                         {.match = udp_to(7), .action = flow_action::to(queue)}})),
                 error);
    EXPECT_EQ(driver.rules(), 1u);
    EXPECT_EQ(everything.where(), by_driver);
    driver.can.ends = true;
    const std::vector<flow> made = flow::install(
        get(), {{.match = {.ether_type = 0x0806}}, {.match = udp_to(7), .action = flow_action::to(queue)}});
    EXPECT_EQ(made[0].where(), by_driver);
    EXPECT_EQ(everything.where(), by_engine);
    world.arrive(udp4(1, 7));
    EXPECT_EQ(made[1].hits().packets, 1u);
}

TEST_F(Offload, KeepsFromTheDriverWhatAnEarlierRuleOfTheListMightMatch)
{
    const std::vector<flow> made =
        flow::install(get(), {{.priority = 1}, {.match = udp_to(7), .action = flow_action::to(queue)}});
    EXPECT_EQ(made[0].where(), by_engine);
    EXPECT_EQ(driver.made(), 0u) << "not even for a moment";
    world.arrive(udp4(1, 7));
    world.arrive(udp4(1, 8));
    EXPECT_EQ(delivered(), 1u);
    EXPECT_EQ(dropped_by_engine(), 1u);
}

TEST_F(Offload, SaysThatTheDriverGoesOnDroppingForARuleThatHasEnded)
{
    log_lines log;
    driver.can.ends = false;
    EXPECT_EQ(drop({.ether_type = 0x0800}).where(), by_driver);
    ASSERT_THAT(log.lines, SizeIs(1));
    EXPECT_THAT(log.lines[0], HasSubstr("still drops its packets"));
    EXPECT_THROW(take(udp_to(7)), error);
    const flow apart = take({.ether_type = 0x0806});
    driver.can.ends = true;
    const flow echo = take(udp_to(7));
    EXPECT_EQ(driver.rules(), 0u);
    world.arrive(udp4(1, 7));
    EXPECT_EQ(echo.hits().packets, 1u);
}

TEST_F(Offload, EndsWithTheDeviceAndCallsNoDriverAfterwards)
{
    const flow echo = drop(udp_to(7));
    auto unasked = std::make_unique<flow>(drop(udp_to(9)));
    world.arrive(udp4(1, 7), 3);
    EXPECT_EQ(echo.hits().packets, 3u);
    const std::string device = get().spec();
    software_nic(get()).engine().between_turns([&] { EXPECT_EQ(rte_eal_hotplug_remove("vdev", device.c_str()), 0); });
    driver.can.ends = false; // the number of the device may be that of another by now
    log_lines log;
    unasked.reset();
    EXPECT_THAT(log.lines, testing::Not(testing::Contains(HasSubstr("still drops its packets"))));
    EXPECT_EQ(echo.hits().packets, 3u);
    EXPECT_EQ(echo.where(), by_engine);
    EXPECT_EQ(drop(udp_to(8)).where(), by_engine);
    EXPECT_EQ(driver.rules(), 4u) << "and it was not asked to end them";
}

TEST(OffloadOfSeveralEngines, IsOneForAllOfThem)
{
    device cpu = device::open("cpu");
    offload_world world({.mode = engine_mode::inline_worker, .engines = 2});
    const eth_rxq queue(world.get(), cpu);
    const flow echo(world.get(), udp_to(7), flow_action::drop()), all(world.get(), {}, flow_action::to(queue), 1);
    EXPECT_EQ(world.driver().rules(), 2u);
    world.arrive(udp4(1, 7), 3);
    EXPECT_TRUE(world.wire().send(udp4(1, 7), 1)) << "the second engine receives what the driver has passed on";
    world.wire().run_dry();
    EXPECT_EQ(echo.hits().packets, 4u);
}

TEST(OffloadBeforeOtherDrivers, IsNotAskedFor)
{
    const port port = port::open("net_failsafe_o,dev(net_null_o)");
    ASSERT_EQ(port.driver(), "net_failsafe");
    const fake_driver driver(software_nic(port).device().id());
    EXPECT_EQ(flow(port, {}, flow_action::drop()).where(), by_engine);
    EXPECT_EQ(driver.made(), 0u);
}

/// Threads race for the driver: one sends, one makes and ends a rule that takes the driver's packets away, one asks.
TEST(OffloadUnderTraffic, LosesNoPacketWhileARuleGoesToTheEngineAndBack)
{
    device cpu = device::open("cpu");
    offload_world world{{}};
    fake_driver& driver = world.driver();
    const eth_rxq queue(world.get(), cpu, {.packets = 64});
    const flow everything(world.get(), {}, flow_action::drop(), 5);
    std::atomic<std::uint64_t> sent = 0;
    std::jthread sends([&](const std::stop_token& end) {
        for (const bytes frame = udp4(1, 7); !end.stop_requested();
             sent += driver.drops(frame) || world.wire().send(frame))
            std::this_thread::yield();
    });
    std::jthread asks([&](const std::stop_token& end) {
        for (std::uint64_t before = 0, now = 0; !end.stop_requested(); before = now)
            EXPECT_GE(now = everything.hits().packets, before);
    });
    for (unsigned round = 0; round < 100; ++round) {
        const std::uint64_t before = driver.dropped();
        ASSERT_TRUE(eventually([&] { return driver.dropped() > before; }));
        const flow echo(world.get(), udp_to(7), flow_action::to(queue), 4);
        ASSERT_EQ(everything.where(), by_engine);
        ASSERT_TRUE(eventually([&] { return echo.hits().packets != 0; }));
    }
    EXPECT_EQ(everything.where(), by_driver);
    sends = {};
    asks = {};
    EXPECT_TRUE(eventually([&] { return bool(all_accounted(world.get().counters(), sent - driver.dropped())); }));
    const std::uint64_t before = everything.hits().packets;
    world.arrive(udp4(1, 7), 100);
    EXPECT_EQ(everything.hits().packets, before + 100);
}

} // namespace
} // namespace weftio::test
