#include "flows/validate.hpp"

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weftio/error.hpp"

namespace {

using testing::HasSubstr;
using weftio::flow_action;
using weftio::flow_match;
using weftio::ipv4_prefix;
using weftio::ipv6_prefix;
using weftio::flows::validate;

constexpr const char* who = "weftio: flow";

/// Only its address is looked at.
const weftio::nic::backend& some_port()
{
    static int place;
    return reinterpret_cast<const weftio::nic::backend&>(place);
}

/// The text of the invalid_argument error that `call` throws.
std::string refusal(const std::function<void()>& call)
{
    try {
        call();
    } catch (const weftio::error& error) {
        EXPECT_EQ(error.code(), weftio::errc::invalid_argument);
        return error.what();
    }
    return "accepted";
}
std::string refusal(const flow_match& match)
{
    return refusal([&] { validate(who, match); });
}
std::string refusal(const flow_action& action)
{
    return refusal([&] { validate(who, action, some_port()); });
}

TEST(FlowMatch, AcceptsTheLimitsOfEveryField)
{
    EXPECT_NO_THROW(validate(who, flow_match{}));
    EXPECT_NO_THROW(
        validate(who, {.ether_type = 0x0800, .vlan = 4095, .ipv4_source = {{{}, 0}}, .ipv4_destination = {{{}, 32}}}));
    EXPECT_NO_THROW(validate(
        who, {.ether_type = 0x86dd, .vlan = 0xffff, .ipv6_source = {{{}, 0}}, .ipv6_destination = {{{}, 128}}}));
    EXPECT_NO_THROW(validate(who, {.ip_protocol = 17, .source_port = {{0, 65535}}, .destination_port = {{7, 7}}}));
    EXPECT_NO_THROW(validate(who, {.ip_protocol = 6, .destination_port = {{7, 8}}, .tcp_flags = {{2, 2}}}));
    EXPECT_NO_THROW(validate(who, {.ip_protocol = 1}));
}

TEST(FlowMatch, RefusesAPrefixLongerThanItsAddress)
{
    EXPECT_THAT(refusal({.ipv4_source = {{{}, 33}}}), HasSubstr("ipv4_source: prefix length 33"));
    EXPECT_THAT(refusal({.ipv4_destination = {{{}, 128}}}), HasSubstr("ipv4_destination: prefix length 128"));
    EXPECT_THAT(refusal({.ipv6_source = {{{}, 129}}}), HasSubstr("set 0 to 128"));
    EXPECT_THAT(refusal({.ipv6_destination = {{{}, 255}}}), HasSubstr("ipv6_destination: prefix length 255"));
}

TEST(FlowMatch, RefusesARangeThatEndsBeforeItStarts)
{
    EXPECT_THAT(refusal({.source_port = {{2, 1}}}), HasSubstr("source_port: the range 2 to 1"));
    EXPECT_THAT(refusal({.destination_port = {{65535, 0}}}), HasSubstr("destination_port: the range 65535 to 0"));
}

TEST(FlowMatch, RefusesAVlanIdOfMoreThanTwelveBits)
{
    EXPECT_THAT(refusal({.vlan = 4096}), HasSubstr("vlan: id 4096"));
    EXPECT_THAT(refusal({.vlan = 0xfffe}), HasSubstr("0xffff for untagged"));
}

TEST(FlowMatch, RefusesIpv4AndIpv6InOneRule)
{
    const ipv4_prefix any_v4{}; // by name: GCC 14 makes an empty optional from {{}}, GCC 12 one that holds a prefix
    const ipv6_prefix any_v6{};
    EXPECT_THAT(refusal({.ipv4_source = any_v4, .ipv6_source = any_v6}), HasSubstr("both IPv4 and IPv6"));
    EXPECT_THAT(refusal({.ipv4_destination = any_v4, .ipv6_source = any_v6}), HasSubstr("both IPv4 and IPv6"));
    EXPECT_THAT(refusal({.ether_type = 0x86dd, .ipv4_source = any_v4}),
                HasSubstr("ether_type 0x86dd does not carry IPv4"));
    EXPECT_THAT(refusal({.ether_type = 0x0800, .ipv6_destination = any_v6}), HasSubstr("0x0800 does not carry IPv6"));
}

TEST(FlowMatch, RefusesPortsAndFlagsOfAProtocolWithoutThem)
{
    EXPECT_THAT(refusal({.ip_protocol = 1, .source_port = {{1, 1}}}), HasSubstr("ip_protocol 1"));
    EXPECT_THAT(refusal({.ip_protocol = 17, .tcp_flags = {{2, 2}}}), HasSubstr("ip_protocol 17 has no TCP flags"));
}

TEST(FlowAction, AcceptsADropWithoutQueues)
{
    EXPECT_NO_THROW(validate(who, flow_action::drop(), some_port()));
}

TEST(FlowAction, RefusesNoQueueAndNullQueues)
{
    EXPECT_THAT(refusal(flow_action{flow_action::kind::queue, {}}), HasSubstr("has no queue"));
    EXPECT_THAT(refusal(flow_action::rss({})), HasSubstr("has no queue"));
    EXPECT_THAT(refusal(flow_action::rss({nullptr})), HasSubstr("null queue"));
}

TEST(FlowAction, RefusesMoreQueuesThanItsKindTakes)
{
    const std::vector<const weftio::eth_rxq*> two(2);
    const std::vector<const weftio::eth_rxq*> many(129);
    EXPECT_THAT(refusal(flow_action{flow_action::kind::queue, two}), HasSubstr("has 2 queues"));
    EXPECT_THAT(refusal(flow_action{flow_action::kind::drop, two}), HasSubstr("at most 0"));
    EXPECT_THAT(refusal(flow_action::rss(many)), HasSubstr("at most 128"));
}

TEST(FlowAction, RefusesAKindThatIsNone)
{
    EXPECT_THAT(refusal(flow_action{static_cast<weftio::flow_kind>(9), {}}), HasSubstr("action 9"));
}

} // namespace
