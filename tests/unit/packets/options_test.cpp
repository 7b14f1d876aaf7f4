// The command line of weftio-packets, and its addresses.
#include "options.hpp"

#include <gtest/gtest.h>

namespace weftio::packets {
namespace {

command parse(std::vector<const char*> words)
{
    words.insert(words.begin(), "weftio-packets");
    return parse_command_line(static_cast<int>(words.size()), words.data());
}

struct refused_case {
    const char* name;
    std::vector<const char*> words;
    const char* sentence;
};

class RefusedWords : public testing::TestWithParam<refused_case> {};

TEST_P(RefusedWords, GetOneSentence)
{
    const command refused = parse(GetParam().words);
    EXPECT_EQ(refused.what, command::action::say);
    EXPECT_EQ(refused.exit_code, usage);
    EXPECT_EQ(refused.text.substr(0, refused.text.find('\n')), std::string("weftio-packets: ") + GetParam().sentence);
}

INSTANTIATE_TEST_SUITE_P(
    Of, RefusedWords,
    testing::Values(
        refused_case{"NoPort", {"--address", "10.9.0.1"}, "name a port, for example -n tap:w0"},
        refused_case{"NoAddress", {"-n", "tap:w0"}, "name an address of the port, for example --address 10.9.0.1/24"},
        refused_case{"NoNumber",
                     {"-n", "null", "--address", "10.9.0.1/24", "-q", "17"},
                     "--queues 17: not a number from 1 to 16"},
        refused_case{"ANegativeNumber",
                     {"-n", "null", "--address", "10.9.0.1/24", "--http=-1"},
                     "--http -1: not a number from 0 to 65535"},
        refused_case{"TheSameAddressTwice",
                     {"-n", "null", "--address", "10.9.0.1/24", "--address", "10.9.0.1/24"},
                     "--address 10.9.0.1/24: given twice"},
        refused_case{"APeerWithoutTap",
                     {"-n", "null", "--address", "10.9.0.1/24", "--peer", "10.9.0.2"},
                     "--peer 10.9.0.2: needs -n tap:NAME, whose interface gets the address"},
        refused_case{"APeerOfTheOtherVersion",
                     {"-n", "tap:w0", "--address", "10.9.0.1/24", "--peer", "fd00::2"},
                     "--peer fd00::2: needs an --address of IPv6"},
        refused_case{"APeerOfAnotherNetwork",
                     {"-n", "tap:w0", "--address", "10.9.0.1/24", "--peer", "10.8.0.2"},
                     "--peer 10.8.0.2: is not in the network of 10.9.0.1/24; give an address of that network"},
        refused_case{"ThePortAsItsOwnPeer",
                     {"-n", "tap:w0", "--address", "10.9.0.1/24", "--peer", "10.9.0.1"},
                     "--peer 10.9.0.1: is the address of the port itself; give the peer another one"}),
    [](const testing::TestParamInfo<refused_case>& info) { return info.param.name; });

TEST(PacketsOptions, APeerHasThePrefixOfThePort)
{
    const command taken = parse({"-n", "tap:w0", "--address", "10.9.0.1/16", "--peer", "10.9.0.2"});
    ASSERT_EQ(taken.what, command::action::serve) << taken.text;
    EXPECT_EQ(with_prefix(taken.peer.value()), "10.9.0.2/16");
}

TEST(PacketsOptions, HelpFitsAScreen)
{
    const command help = parse({"--help"});
    EXPECT_EQ(help.exit_code, ended);
    EXPECT_LE(std::count(help.text.begin(), help.text.end(), '\n'), 24);
}

TEST(PacketsAddress, IsThatOfAHost)
{
    EXPECT_EQ(with_prefix(parse_address("10.9.0.1")), "10.9.0.1/24");
    EXPECT_EQ(with_prefix(parse_address("fd00::1")), "fd00::1/64");
    EXPECT_EQ(with_prefix(parse_address("10.9.0.255/16")), "10.9.0.255/16");
    for (const char* const text : {"", "10.9.0", "10.9.0.1/", "10.9.0.1/33", "10.9.0.1/0", "10.9.0.1/-1",
                                   "10.9.0.1/24x", "127.0.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255",
                                   "10.9.0.0/24", "10.9.0.255/24", "::", "::1", "ff02::1", "fd00::1/129", "eth0"})
        EXPECT_THROW(parse_address(text), std::invalid_argument) << text;
}

TEST(PacketsAddress, OfTheLinkComesFromTheMac)
{
    EXPECT_EQ(with_prefix(link_local({0x02, 0x11, 0x22, 0x33, 0x44, 0x55})), "fe80::11:22ff:fe33:4455/64");
    EXPECT_EQ(in_url(parse_address("fd00::1")), "[fd00::1]");
}

TEST(PacketsAddress, HasANeighborInItsNetwork)
{
    EXPECT_EQ(with_prefix(neighbor_of(parse_address("10.9.0.1/24"))), "10.9.0.2/24");
    EXPECT_EQ(with_prefix(neighbor_of(parse_address("10.9.0.254/24"))), "10.9.0.253/24");
}

} // namespace
} // namespace weftio::packets
