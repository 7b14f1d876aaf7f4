#include "nic/soft/receive/steering.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "frames.hpp"

namespace {

using namespace frames;
using namespace weftio::net;
using namespace weftio::nic;
using namespace weftio::nic::soft;
using weftio::drop_reason;
using weftio::flow_action;
using weftio::flow_match;

std::shared_ptr<steering_rule> make_rule(const flow_match& match, std::vector<std::uint32_t> targets,
                                         std::uint32_t priority = 0, std::uint64_t sequence = 0)
{
    auto rule = std::make_shared<steering_rule>();
    rule->match = match;
    rule->action = targets.empty()      ? flow_action::kind::drop
                   : targets.size() > 1 ? flow_action::kind::rss
                                        : flow_action::kind::queue;
    rule->targets = std::move(targets);
    rule->priority = priority;
    rule->sequence = sequence;
    return rule;
}

decision decide(steering& table, const bytes& frame, packet_headers* headers = nullptr,
                std::optional<std::uint16_t> stripped_tci = {})
{
    return table.decide(
        {.start = frame, .bytes = static_cast<std::uint32_t>(frame.size()), .stripped_tci = stripped_tci}, headers);
}

/// A rule, frames it wants, and frames it does not.
struct field_case {
    std::string name;
    flow_match match;
    std::vector<bytes> wanted;
    std::vector<bytes> unwanted;
};

bytes from4(address4 source, address4 destination)
{
    return ethernet({}, 0x0800, ipv4({.source = source, .destination = destination}, udp(1, 2)));
}
bytes from6(std::uint8_t source_end, std::uint8_t destination_end)
{
    ipv6_fields fields;
    fields.source[15] = source_end;
    fields.destination[15] = destination_end;
    return ethernet({}, 0x86dd, ipv6(fields, udp(1, 2)));
}
bytes tagged(std::initializer_list<tag> tags)
{
    return ethernet(tags, 0x0800, ipv4({}, udp(1, 2)));
}
bytes fragment4(std::uint16_t field)
{
    return ethernet({}, 0x0800, ipv4({.fragment = field}, udp(1000, 2000)));
}
const bytes arp = ethernet({}, 0x0806, bytes(28));
const bytes icmp = ethernet({}, 0x0800, ipv4({.protocol = 1}, bytes(16)));

std::vector<field_case> link_cases()
{
    const address6 base = ipv6_fields{}.source;
    return {
        {"EtherType", {.ether_type = 0x0806}, {arp, ethernet({{0x8100, 5}}, 0x0806, bytes(28))}, {udp4(), udp6()}},
        {"Vlan", {.vlan = 5}, {tagged({{0x8100, 5}}), tagged({{0x8100, 0xe005}})}, {udp4(), tagged({{0x8100, 6}})}},
        {"VlanZero", {.vlan = 0}, {tagged({{0x8100, 0x2000}})}, {udp4(), tagged({{0x8100, 6}})}},
        {"VlanOfQinQIsTheOuter",
         {.vlan = 7},
         {tagged({{0x88a8, 7}, {0x8100, 8}})},
         {tagged({{0x88a8, 8}, {0x8100, 7}})}},
        {"Untagged", {.vlan = 0xffff}, {udp4(), arp}, {tagged({{0x8100, 0}}), tagged({{0x8100, 0x0fff}})}},
        {"Ipv6Source", {.ipv6_source = {{base, 128}}}, {from6(1, 9)}, {from6(2, 9), udp4()}},
        {"Ipv6Prefix", {.ipv6_source = {{base, 127}}}, {from6(1, 9), from6(0, 9)}, {from6(2, 9), udp4()}},
        {"Ipv6PrefixOfNoBits", {.ipv6_source = {{base, 0}}}, {from6(1, 9), from6(77, 9)}, {udp4(), arp}},
        {"Ipv6Destination",
         {.ipv6_destination = {{ipv6_fields{}.destination, 128}}},
         {from6(1, 2)},
         {from6(2, 1), udp4()}},
    };
}

std::vector<field_case> ipv4_cases()
{
    return {
        {"Ipv4Source",
         {.ipv4_source = {{{10, 0, 0, 1}, 32}}},
         {from4({10, 0, 0, 1}, {1, 1, 1, 1})},
         {from4({10, 0, 0, 2}, {10, 0, 0, 1}), udp6(), arp}},
        {"Ipv4PrefixOfWholeBytes",
         {.ipv4_source = {{{10, 9, 8, 7}, 8}}},
         {from4({10, 0, 0, 2}, {1, 1, 1, 1})},
         {from4({11, 9, 8, 7}, {10, 0, 0, 1})}},
        {"Ipv4PrefixOfOddBits",
         {.ipv4_destination = {{{192, 168, 96, 0}, 19}}},
         {from4({1, 1, 1, 1}, {192, 168, 127, 255})},
         {from4({1, 1, 1, 1}, {192, 168, 128, 0}), from4({1, 1, 1, 1}, {192, 168, 95, 1})}},
        {"Ipv4PrefixOfNoBits", {.ipv4_destination = {{{1, 2, 3, 4}, 0}}}, {udp4(), icmp}, {udp6(), arp}},
        {"BothAddresses",
         {.ipv4_source = {{{1, 0, 0, 1}, 32}}, .ipv4_destination = {{{2, 0, 0, 2}, 32}}},
         {from4({1, 0, 0, 1}, {2, 0, 0, 2})},
         {from4({1, 0, 0, 1}, {2, 0, 0, 3}), from4({2, 0, 0, 2}, {1, 0, 0, 1})}},
    };
}

std::vector<field_case> l4_cases()
{
    const bytes behind_extensions =
        ethernet({}, 0x86dd, ipv6({.extensions = {hop_by_hop(), destination_options()}}, udp(1000, 2000)));
    return {
        {"Protocol", {.ip_protocol = 17}, {udp4(), udp6(), behind_extensions, fragment4(5)}, {tcp4(), icmp, arp}},
        {"ProtocolZeroIsNotAnyPacket",
         {.ip_protocol = 0},
         {ethernet({}, 0x0800, ipv4({.protocol = 0}, bytes(8)))},
         {arp, udp4(), behind_extensions}},
        {"SourcePort",
         {.source_port = {{1000, 1000}}},
         {udp4(), tcp4(), udp6(), behind_extensions, fragment4(0x2000)},
         {udp4(999), udp4(2000, 1000), fragment4(5), icmp, arp}},
        {"DestinationPortRange",
         {.destination_port = {{1999, 2001}}},
         {udp4(1, 1999), udp4(1, 2000), tcp4(1, 2001)},
         {udp4(1, 1998), udp4(1, 2002), fragment4(5)}},
        {"PortRangeOfAll", {.source_port = {{0, 65535}}}, {udp4(0), udp4(65535), tcp4()}, {icmp, arp, fragment4(5)}},
        {"PortZero", {.destination_port = {{0, 0}}}, {udp4(5, 0)}, {icmp, arp, udp4(), fragment4(5)}},
        {"TcpFlags", {.tcp_flags = {{0x02, 0x12}}}, {tcp4(1, 2, 0x02), tcp4(1, 2, 0x2a)}, {tcp4(1, 2, 0x12), udp4()}},
        {"TcpFlagsOfNoBits", {.tcp_flags = {{0xff, 0}}}, {tcp4(1, 2, 0), tcp4(1, 2, 0x3f)}, {udp4(), arp, icmp}},
    };
}

std::vector<field_case> all_cases()
{
    std::vector<field_case> all = link_cases();
    for (const auto& more : {ipv4_cases(), l4_cases()})
        all.insert(all.end(), more.begin(), more.end());
    return all;
}

class SteeringField : public testing::TestWithParam<field_case> {};

TEST_P(SteeringField, WantsItsOwnFramesOnly)
{
    steering table;
    table.add(make_rule(GetParam().match, {3}));
    for (const bytes& frame : GetParam().wanted)
        EXPECT_EQ(decide(table, frame).target, rx_target{3});
    for (const bytes& frame : GetParam().unwanted)
        EXPECT_EQ(decide(table, frame).reason, drop_reason::no_match);
}

INSTANTIATE_TEST_SUITE_P(Every, SteeringField, testing::ValuesIn(all_cases()),
                         [](const auto& tested) { return tested.param.name; });

TEST(Steering, MatchesNothingWithoutRules)
{
    steering table;
    EXPECT_TRUE(decide(table, udp4()).dropped());
    EXPECT_EQ(decide(table, udp4()).reason, drop_reason::no_match);
}

TEST(Steering, GivesEveryFrameToARuleWithoutFields)
{
    steering table;
    table.add(make_rule({}, {0}));
    for (const bytes& frame : {udp4(), udp6(), arp, bytes{}}) {
        EXPECT_FALSE(decide(table, frame).dropped());
        EXPECT_EQ(decide(table, frame).target, rx_target{0});
    }
}

TEST(Steering, ParsesOnlyWhereTheFirstRuleLooksAtSomething)
{
    steering table;
    packet_headers headers;
    table.add(make_rule({}, {0}, 5));
    EXPECT_FALSE(decide(table, udp4(), &headers).parsed);
    EXPECT_EQ(headers.l3, l3_kind::none);

    table.add(make_rule({.ip_protocol = 6}, {1}, 4));
    EXPECT_TRUE(decide(table, udp4(), &headers).parsed);
    EXPECT_EQ(headers.l4, l4_kind::udp);
    EXPECT_FALSE(decide(table, udp4()).parsed) << "there was nowhere to put them";
}

TEST(Steering, MatchesTheStrippedTag)
{
    steering table;
    table.add(make_rule({.vlan = 9}, {1}));
    EXPECT_EQ(decide(table, udp4(), nullptr, std::uint16_t{0x6009}).target, rx_target{1});
    EXPECT_EQ(decide(table, tagged({{0x8100, 9}}), nullptr, std::uint16_t{8}).reason, drop_reason::no_match);
}

TEST(Steering, LetsTheLowestPriorityNumberDecideInWhateverOrderRulesCome)
{
    for (const bool low_first : {true, false}) {
        steering table;
        const auto low = make_rule({.ip_protocol = 17}, {1}, 1, low_first ? 0 : 1);
        const auto high = make_rule({}, {2}, 2, low_first ? 1 : 0);
        table.add(low_first ? low : high);
        table.add(low_first ? high : low);
        EXPECT_EQ(decide(table, udp4()).target, rx_target{1});
        EXPECT_EQ(decide(table, tcp4()).target, rx_target{2});
    }
}

TEST(Steering, LetsTheRuleMadeFirstDecideAmongEqualPriorities)
{
    steering table;
    table.add(make_rule({.ip_protocol = 17}, {2}, 0, 11));
    table.add(make_rule({.ether_type = 0x0800}, {1}, 0, 10));
    table.add(make_rule({.ip_protocol = 17}, {3}, 0, 11));
    EXPECT_EQ(decide(table, udp4()).target, rx_target{1}) << "sequence 10, although added later";
    EXPECT_EQ(decide(table, udp6()).target, rx_target{2}) << "of equal sequences the one added first";
}

TEST(Steering, RemovesARuleAndNoOther)
{
    steering table;
    const auto first = make_rule({.ip_protocol = 17}, {1}, 0);
    table.add(first);
    table.add(make_rule({.ether_type = 0x0800}, {2}, 1));
    EXPECT_TRUE(table.remove(first.get()));
    EXPECT_FALSE(table.remove(first.get()));
    EXPECT_EQ(table.size(), 1u);
    EXPECT_EQ(first.use_count(), 1);
    EXPECT_EQ(decide(table, udp4()).target, rx_target{2});
    EXPECT_EQ(decide(table, udp6()).reason, drop_reason::no_match);
}

TEST(Steering, CountsPacketsAndBytesOfTheRuleThatDecided)
{
    steering table;
    const auto udp_rule = make_rule({.ip_protocol = 17}, {1}, 0);
    const auto drop_rule = make_rule({}, {}, 1);
    table.add(udp_rule);
    table.add(drop_rule);
    const bytes frame = udp4();
    decide(table, frame);
    table.decide({.start = frame, .bytes = 9000}, nullptr); // more segments follow
    EXPECT_EQ(decide(table, arp).reason, drop_reason::dropped_by_flow);
    EXPECT_EQ(udp_rule->packets.value(), 2u);
    EXPECT_EQ(udp_rule->bytes.value(), frame.size() + 9000);
    EXPECT_EQ(drop_rule->packets.value(), 1u);
    EXPECT_EQ(drop_rule->bytes.value(), arp.size());
}

TEST(Steering, DropsWhatGoesToAForgottenQueueAndStillCountsTheHit)
{
    steering table;
    const auto rule = make_rule({.ip_protocol = 17}, {4});
    table.add(rule);
    table.add(make_rule({}, {5}, 1));
    table.forget_queue(4);
    EXPECT_EQ(decide(table, udp4()).reason, drop_reason::queue_closed);
    EXPECT_EQ(rule->packets.value(), 1u);
    EXPECT_EQ(decide(table, tcp4()).target, rx_target{5});

    table.add(make_rule({.ip_protocol = 6}, {4}, 0, 1));
    EXPECT_EQ(decide(table, tcp4()).target, rx_target{4}) << "the number has a new owner";
    EXPECT_EQ(decide(table, udp4()).reason, drop_reason::queue_closed) << "the old rule does not follow it";
}

TEST(SteeringRss, TakesTheEntryOfTheHashAmong128)
{
    steering table;
    table.add(make_rule({}, {10, 11, 12}));
    std::map<std::uint32_t, unsigned> shares;
    for (std::uint16_t source = 1; source <= 3000; ++source) {
        packet_headers headers;
        const decision result = decide(table, udp4(source), &headers);
        ASSERT_TRUE(result.has_hash);
        ASSERT_EQ(result.rss_hash, rss_hash(headers, weftio::rss_key::standard));
        ASSERT_EQ(result.target.queue, 10 + result.rss_hash % 128 % 3);
        ++shares[result.target.queue];
    }
    for (const auto& [slot, packets] : shares)
        EXPECT_NEAR(packets, 1000, 150) << slot;
}

TEST(SteeringRss, UsesTheKeyOfItsRule)
{
    steering table;
    const auto rule = make_rule({}, {0, 1, 2, 3});
    rule->key = weftio::rss_key::symmetric;
    table.add(rule);
    packet_headers headers;
    const decision result = decide(table, udp4(), &headers);
    EXPECT_EQ(result.rss_hash, rss_hash(headers, weftio::rss_key::symmetric));
    EXPECT_NE(result.rss_hash, rss_hash(headers, weftio::rss_key::standard));
}

TEST(SteeringRss, GivesPacketsWithoutAnIpHeaderToTheFirstQueue)
{
    steering table;
    table.add(make_rule({}, {7, 8}));
    EXPECT_EQ(decide(table, arp).target, rx_target{7});
    EXPECT_FALSE(decide(table, arp).has_hash);
}

TEST(SteeringRss, DropsTheShareOfAForgottenQueueOnly)
{
    steering table;
    table.add(make_rule({}, {7, 8}));
    table.forget_queue(8);
    unsigned closed = 0;
    for (std::uint16_t source = 0; source < 400; ++source) {
        const decision result = decide(table, udp4(source));
        ASSERT_TRUE(result.dropped() ? result.reason == drop_reason::queue_closed : result.target == rx_target{7});
        ASSERT_TRUE(result.has_hash);
        closed += result.dropped();
    }
    EXPECT_GT(closed, 100u);
    EXPECT_LT(closed, 300u);
}

TEST(Steering, AgreesWithARuleByRuleSearchOnRandomTables)
{
    std::minstd_rand random(99);
    const std::vector<field_case> cases = all_cases();
    std::vector<bytes> traffic = whole_frames();
    for (const field_case& one : cases)
        traffic.insert(traffic.end(), one.wanted.begin(), one.wanted.end());
    for (unsigned round = 0; round < 200; ++round) {
        steering table;
        std::vector<std::pair<std::pair<std::uint32_t, std::uint32_t>, flow_match>> rules;
        for (std::uint32_t i = 0; i < 10; ++i) {
            rules.push_back({{static_cast<std::uint32_t>(random() % 3), i}, cases[random() % cases.size()].match});
            table.add(make_rule(rules.back().second, {i}, rules.back().first.first, i));
        }
        std::sort(rules.begin(), rules.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        const bytes& frame = traffic[random() % traffic.size()];
        const auto first = std::find_if(rules.begin(), rules.end(), [&](const auto& rule) {
            steering alone;
            alone.add(make_rule(rule.second, {0}));
            return !decide(alone, frame).dropped();
        });
        const std::uint32_t expected = first == rules.end() ? rx_target::closed : first->first.second;
        EXPECT_EQ(decide(table, frame).target.queue, expected);
    }
}

} // namespace
