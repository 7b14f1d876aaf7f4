// Which patterns a driver is given for a match, and which matches may meet in a packet.
#include <algorithm>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "dpdk/flow_pattern.hpp"
#include "fake_driver.hpp"
#include "nic/soft/overlap.hpp"
#include "random_rules.hpp"

namespace weftio::test {
namespace {

using dpdk::flow_pattern, nic::soft::may_overlap, dpdk::to_patterns;

/// The types of the items, those that compare something with a star: "eth ipv4* udp*".
std::string types(const flow_pattern& pattern)
{
    std::string text;
    for (const rte_flow_item& item : pattern.items()) {
        if (item.type == RTE_FLOW_ITEM_TYPE_END)
            break;
        text += fmt::format("{}{}{}", text.empty() ? "" : " ",
                            item.type == RTE_FLOW_ITEM_TYPE_ETH    ? "eth"
                            : item.type == RTE_FLOW_ITEM_TYPE_VLAN ? "vlan"
                            : item.type == RTE_FLOW_ITEM_TYPE_IPV4 ? "ipv4"
                            : item.type == RTE_FLOW_ITEM_TYPE_IPV6 ? "ipv6"
                            : item.type == RTE_FLOW_ITEM_TYPE_UDP  ? "udp"
                                                                   : "tcp",
                            item.spec ? "*" : "");
    }
    return text;
}

std::vector<std::string> words(const flow_match& match)
{
    std::vector<std::string> all;
    for (const flow_pattern& pattern : to_patterns(match).all)
        all.push_back(types(pattern));
    return all;
}

TEST(Pattern, HasTheHeadersThatAMatchNeeds)
{
    using testing::ElementsAre;
    EXPECT_THAT(words({}), ElementsAre("eth"));
    EXPECT_THAT(words({.ether_type = 0x0806}), ElementsAre("eth*"));
    EXPECT_THAT(words({.ether_type = 0x0800}), ElementsAre("eth ipv4"));
    EXPECT_THAT(words({.ether_type = 0x0806, .vlan = 5}), ElementsAre("eth vlan*"));
    EXPECT_THAT(words({.ipv4_source = {{{10, 0, 0, 1}, 32}}}), ElementsAre("eth ipv4*"));
    EXPECT_THAT(words({.ipv4_source = {{{10, 0, 0, 1}, 0}}}), ElementsAre("eth ipv4"));
    EXPECT_THAT(words({.ip_protocol = 17}), ElementsAre("eth ipv4*", "eth ipv6*"));
    EXPECT_THAT(words({.vlan = 5, .ip_protocol = 17, .destination_port = {{7, 7}}}),
                ElementsAre("eth vlan* ipv4 udp*", "eth vlan* ipv6 udp*"));
    EXPECT_THAT(words({.source_port = {{7, 7}}}),
                ElementsAre("eth ipv4 udp*", "eth ipv4 tcp*", "eth ipv6 udp*", "eth ipv6 tcp*"));
    EXPECT_THAT(words({.ether_type = 0x86dd, .tcp_flags = {{2, 2}}}), ElementsAre("eth ipv6 tcp*"));
}

TEST(Pattern, IsRefusedWithAReasonWhereADriverMightMatchMore)
{
    const auto why = [](const flow_match& match) {
        const dpdk::flow_patterns patterns = to_patterns(match);
        EXPECT_TRUE(patterns.all.empty());
        return patterns.why_none;
    };
    EXPECT_THAT(why({.vlan = 0xffff}), testing::HasSubstr("without a VLAN tag"));
    EXPECT_THAT(why({.ether_type = 0x8100}), testing::HasSubstr("0x8100 as a VLAN tag"));
    EXPECT_THAT(why({.ether_type = 0x05ff}), testing::HasSubstr("a length"));
    EXPECT_THAT(why({.ether_type = 0x0806, .ip_protocol = 17}), testing::HasSubstr("0x0806 has an IP header"));
    EXPECT_THAT(why({.source_port = {{1, 2}}}), testing::HasSubstr("the ports 1 to 2"));
    EXPECT_THAT(why({.source_port = {{8, 23}}}), testing::HasSubstr("the ports 8 to 23"));
    EXPECT_THAT(why({.source_port = {{0, 65535}}}), testing::HasSubstr("compared with 0 only"));
    EXPECT_THAT(why({.tcp_flags = {{1, 2}}}), testing::HasSubstr("compared with 0 only"));
    EXPECT_THAT(why({.ipv6_source = {{}}, .ip_protocol = 0}), testing::HasSubstr("no packet can match"));
}

TEST(Pattern, TakesAPortRangeThatAMaskDescribes)
{
    const dpdk::flow_patterns patterns = to_patterns({.ip_protocol = 17, .destination_port = {{1024, 2047}}});
    ASSERT_EQ(patterns.all.size(), 2u);
    const auto items = patterns.all[0].items();
    const auto matches_port = [&](std::uint16_t port) { return matches(items.data(), frames::udp4(1, port)); };
    EXPECT_TRUE(matches_port(1024) && matches_port(2047));
    EXPECT_FALSE(matches_port(1023) || matches_port(2048));
}

/// Frames that every NIC reads as the engine does.
bool is_plain(const net::packet_headers& headers)
{
    const bool has_extensions = headers.l3 == net::l3_kind::ipv6 && headers.l4_offset != headers.l3_offset + 40;
    return headers.vlan_tags <= 1 && !headers.fragment && !has_extensions;
}

TEST(Pattern, MatchesNoMoreThanTheEngineAndNoLessOfPlainFrames)
{
    random_rules random(11);
    unsigned given = 0, met = 0;
    for (unsigned round = 0; round < 20000; ++round) {
        const flow_match match = random.match();
        const bytes frame = random.frame();
        const dpdk::flow_patterns patterns = to_patterns(match);
        const auto by_driver = std::count_if(patterns.all.begin(), patterns.all.end(), [&](const flow_pattern& each) {
            return matches(each.items().data(), frame);
        });
        const bool by_engine = engine_matches(match, frame);
        ASSERT_LE(by_driver, by_engine) << "round " << round;
        if (!patterns.all.empty() && is_plain(net::parse(frame, {}))) {
            ASSERT_EQ(by_driver, by_engine) << "round " << round;
        }
        given += !patterns.all.empty();
        met += by_driver != 0;
    }
    EXPECT_GT(given, 5000u);
    EXPECT_GT(met, 500u);
}

TEST(Overlap, IsNeverMissed)
{
    random_rules random(12);
    unsigned met = 0, apart = 0;
    for (unsigned round = 0; round < 50000; ++round) {
        const flow_match a = random.match(), b = random.match();
        const bytes frame = random.frame();
        const bool both = engine_matches(a, frame) && engine_matches(b, frame);
        ASSERT_TRUE(!both || may_overlap(a, b)) << "round " << round;
        ASSERT_EQ(may_overlap(a, b), may_overlap(b, a));
        met += both;
        apart += !may_overlap(a, b);
    }
    EXPECT_GT(met, 1000u);
    EXPECT_GT(apart, 10000u);
}

TEST(Overlap, IsDeniedWhereAFieldTellsTwoRulesApart)
{
    const ipv6_prefix any6{};
    const std::pair<flow_match, flow_match> apart[] = {
        {{.ether_type = 0x0800}, {.ether_type = 0x0806}},
        {{.ether_type = 0x0806}, {.ipv4_source = {{{10, 0, 0, 0}, 8}}}},
        {{.ipv6_source = any6}, {.ipv4_source = {{{10, 0, 0, 0}, 8}}}},
        {{.vlan = 1}, {.vlan = 0xffff}},
        {{.ipv4_source = {{{10, 0, 0, 0}, 8}}}, {.ipv4_source = {{{11, 0, 0, 0}, 16}}}},
        {{.ipv4_destination = {{{10, 0, 0, 0}, 25}}}, {.ipv4_destination = {{{10, 0, 0, 128}, 25}}}},
        {{.ip_protocol = 1}, {.ip_protocol = 17}},
        {{.ip_protocol = 1}, {.source_port = {{1, 9}}}},
        {{.ip_protocol = 17}, {.tcp_flags = {{2, 2}}}},
        {{.source_port = {{1, 9}}}, {.source_port = {{10, 20}}}},
        {{.destination_port = {{10, 20}}}, {.destination_port = {{1, 9}}}},
        {{.tcp_flags = {{2, 3}}}, {.tcp_flags = {{1, 1}}}},
    };
    unsigned number = 0;
    for (const auto& [a, b] : apart) {
        EXPECT_FALSE(may_overlap(a, b)) << "pair " << number;
        EXPECT_TRUE(may_overlap(a, a) && may_overlap(b, b) && may_overlap(a, {})) << "pair " << number;
        ++number;
    }
}

} // namespace
} // namespace weftio::test
