// Several rules made in one step: no packet meets some of them only.
#include <gmock/gmock.h>

#include "capture_files.hpp"
#include "injected_port.hpp"

namespace weftio::test {
namespace {

using testing::HasSubstr, testing::IsEmpty, testing::SizeIs;

constexpr std::uint16_t even = 0x88b5, odd = 0x88b6; // for experiments: IEEE 802

bytes frame_of(std::uint16_t ether_type)
{
    return frames::ethernet({}, ether_type, bytes(46));
}

std::vector<timed_frame> evens_and_odds(std::uint32_t pairs)
{
    std::vector<timed_frame> records;
    for (std::uint32_t at = 0; at < pairs; ++at)
        for (std::uint16_t type : {even, odd})
            records.push_back({at, 0, frame_of(type)});
    return records;
}

TEST(RulesAtOnce, AllMeetTheFirstPacketOfACapture)
{
    constexpr std::uint32_t pairs = 500;
    const scratch_folder folder;
    const std::string spec = "pcap:" + folder.write("pairs.pcap", pcap_file(evens_and_odds(pairs)));
    const device cpu = device::open("cpu");
    for (int round = 0; round < 10 && !testing::Test::HasFailure(); ++round) {
        const port port = port::open(spec);
        eth_rxq evens(port, cpu, {.packets = 512}), odds(port, cpu, {.packets = 512});
        const std::vector<flow> rules =
            flow::install(port, {{.match = {.ether_type = even}, .action = flow_action::to(evens)},
                                 {.match = {.ether_type = odd}, .action = flow_action::to(odds)}});
        ASSERT_TRUE(eventually([&] { return port.exhausted(); }));
        EXPECT_EQ(evens.counters().delivered, pairs);
        EXPECT_EQ(odds.counters().delivered, pairs);
        EXPECT_EQ(dropped(port.counters(), drop_reason::no_match), 0u);
        EXPECT_EQ(rules[0].hits().packets, pairs);
        EXPECT_EQ(rules[1].hits().packets, pairs);
    }
}

TEST(RulesAtOnce, AllMeetTheFirstPacketsOfEveryEngine)
{
    constexpr unsigned engines = 3, frames = 100;
    const device cpu = device::open("cpu");
    for (int round = 0; round < 10 && !testing::Test::HasFailure(); ++round) {
        injected_port port({.engines = engines});
        for (unsigned sent = 0; sent < frames; ++sent)
            for (unsigned engine = 0; engine < engines; ++engine)
                ASSERT_TRUE(port.send(frame_of(sent % 2 == 0 ? even : odd), engine));
        eth_rxq evens(port.get(), cpu);
        const std::vector<flow> rules =
            flow::install(port.get(), {{.match = {.ether_type = even}, .action = flow_action::to(evens)},
                                       {.match = {.ether_type = odd}, .action = flow_action::drop()}});
        EXPECT_TRUE(eventually([&] { return rules[1].hits().packets == engines * frames / 2; }));
        EXPECT_TRUE(eventually([&] { return evens.counters().delivered == engines * frames / 2; }));
        EXPECT_TRUE(all_accounted(port.counters(), engines * frames));
        EXPECT_EQ(dropped(port.counters(), drop_reason::no_match), 0u);
    }
}

std::string refused_text(const port& port, const std::vector<flow_rule>& rules)
{
    try {
        const std::vector<flow> made = flow::install(port, rules);
    } catch (const error& refused) {
        EXPECT_EQ(refused.code(), errc::invalid_argument);
        return refused.what();
    }
    return "accepted";
}

TEST(RulesAtOnce, AreNotMadeWhenOneIsWrong)
{
    const device cpu = device::open("cpu");
    injected_port port{port_options{}};
    eth_rxq queue(port.get(), cpu);
    ASSERT_TRUE(port.send(frame_of(even)));
    for (int round = 0; round < 50; ++round)
        EXPECT_THAT(
            refused_text(port.get(), {{.action = flow_action::to(queue)},
                                      {.match = {.destination_port = {{9, 7}}}, .action = flow_action::to(queue)},
                                      {.action = flow_action::drop()}}),
            HasSubstr("weftio: flow: rule 2 of 3: destination_port: the range 9 to 7"));
    EXPECT_EQ(port.counters().received, 0u) << "a rule of a list that was refused has started the traffic";
}

class RuleList : public testing::Test {
 protected:
    device cpu = device::open("cpu");
    injected_port port;
    eth_rxq first{port.get(), cpu}, second{port.get(), cpu};
};

TEST_F(RuleList, NamesNoNumberOfASingleRule)
{
    EXPECT_THAT(refused_text(port.get(), {{.action = flow_action::rss({})}}),
                HasSubstr("weftio: flow: the action has no queue"));
}

TEST_F(RuleList, MayBeEmpty)
{
    EXPECT_THAT(flow::install(port.get(), {}), IsEmpty());
}

TEST_F(RuleList, DecidesInItsOrderUnlessPrioritiesSayOtherwise)
{
    std::vector<flow> rules = flow::install(port.get(), {{.action = flow_action::to(first), .priority = 1},
                                                         {.action = flow_action::to(second), .priority = 1},
                                                         {.match = {.ether_type = odd}}});
    ASSERT_THAT(rules, SizeIs(3));
    for (std::uint16_t type : {even, odd, even})
        ASSERT_TRUE(port.send(frame_of(type)));
    port.run_dry();
    EXPECT_EQ(first.counters().delivered, 2u);
    EXPECT_EQ(dropped(port.counters(), drop_reason::dropped_by_flow), 1u);
    rules.erase(rules.begin());
    ASSERT_TRUE(port.send(frame_of(even)));
    port.run_dry();
    EXPECT_EQ(second.counters().delivered, 1u) << "each rule ends with its own flow";
}

} // namespace
} // namespace weftio::test
