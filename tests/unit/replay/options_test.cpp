// The command line and its help.
#include <gtest/gtest.h>

#include <sstream>

#include "options.hpp"

namespace weftio::replay::test {
namespace {

command parse(std::vector<const char*> words)
{
    words.insert(words.begin(), "weftio-replay");
    return parse_command_line(static_cast<int>(words.size()), words.data());
}

TEST(CommandLine, LastWordIsThePort)
{
    command made = parse({"-x", "2", "a.pcap", "b.pcap", "null"});
    ASSERT_EQ(made.what, command::action::replay) << made.text;
    EXPECT_EQ(made.session.port, "null");
    EXPECT_EQ(made.session.files, (std::vector<std::string>{"a.pcap", "b.pcap"}));
    EXPECT_EQ(made.session.feed.timing.multiplier, 2);
}

TEST(CommandLine, InterfaceMayBeNamedAsForTcpreplay)
{
    EXPECT_EQ(parse({"-i", "eth0", "a.pcap"}).session.port, "iface:eth0");
    EXPECT_EQ(parse({"-i", "pcap:tx=o", "a.pcap"}).session.port, "pcap:tx=o");
    EXPECT_EQ(parse({"a.pcap", "eth0"}).session.port, "iface:eth0");
    for (const char* spec : {"null", "loopback", "net_null0", "net_null0,size=64", "tap:t", "0000:3b:00.0"})
        EXPECT_EQ(parse({"a.pcap", spec}).session.port, spec);
}

TEST(CommandLine, WordsOfTcpreplayMeanWhatTheyMean)
{
    command made =
        parse({"-K", "--loop", "7", "--limit=9", "--duration", "3", "--pps=1000", "--stats=2", "-q", "a", "null"});
    ASSERT_EQ(made.what, command::action::replay) << made.text;
    EXPECT_TRUE(made.session.feed.preload);
    EXPECT_EQ(made.session.feed.loops, 7u);
    EXPECT_EQ(made.session.feed.limit, 9u);
    EXPECT_EQ(made.session.feed.duration_ns, 3'000'000'000u);
    EXPECT_EQ(made.session.feed.timing.by, pace::frames);
    EXPECT_EQ(made.stats_s, 2);
    EXPECT_TRUE(made.quiet);
    EXPECT_EQ(parse({"-M", "10", "a", "null"}).session.feed.timing.per_second, 1e7);
    EXPECT_EQ(parse({"-t", "a", "null"}).session.feed.timing.by, pace::top_speed);
}

TEST(CommandLine, AMapTakesOneWordAndLeavesTheNames)
{
    command made = parse({"--map", "10.0.0.0/8=11.0.0.0/8", "--map", "12.0.0.0/8=13.0.0.0/8", "a", "null"});
    ASSERT_EQ(made.what, command::action::replay) << made.text;
    EXPECT_EQ(made.session.edits.maps.size(), 2u);
    EXPECT_EQ(made.session.port, "null");
}

TEST(CommandLine, ARealTimePriorityMayBeLeftOutAndTakesNoWord)
{
    EXPECT_EQ(parse({"a", "null"}).session.realtime, 0);
    EXPECT_EQ(parse({"--realtime=80", "a", "null"}).session.realtime, 80);
    command made = parse({"--realtime", "a", "null"});
    EXPECT_EQ(made.session.realtime, 50);
    EXPECT_EQ(made.session.files, std::vector<std::string>{"a"});
}

const std::vector<std::vector<const char*>> mistakes{
    {},
    {"a.pcap"},
    {"-x", "0", "a", "null"},
    {"-x", "-1", "a", "null"},
    {"-x", "nan", "a", "null"},
    {"--core", "-1", "a", "null"},
    {"--core", "1000000", "a", "null"},
    {"--realtime=0", "a", "null"},
    {"--realtime=100", "a", "null"},
    {"-p", "1", "-t", "a", "null"},
    {"-x", "2", "-M", "1", "a", "null"},
    {"--duration", "3 parsecs", "a", "null"},
    {"--duration", "0", "a", "null"},
    {"--duration", "0.1ns", "a", "null"},
    {"--max-gap", "0s", "a", "null"},
    {"--max-gap", "1s", "--pps", "1", "a", "null"},
    {"--max-gap", "1s", "-M", "1", "a", "null"},
    {"--max-gap", "1s", "-t", "a", "null"},
    {"--start-at", "2030-02-30T00:00:00", "a", "null"},
    {"--map", "10.0.0.0", "a", "null"},
    {"--dst-mac", "here", "a", "null"},
    {"--vlan-push", "4096", "a", "null"},
    {"--start-at", "tomorrow", "a", "null"},
    {"--start-at", "1600000000", "a", "null"},
    {"--loop", "-1", "a", "null"},
    {"--limit", "-1", "a", "null"},
    {"--limit", "1.5", "a", "null"},
    {"--limit", "18446744073709551618", "a", "null"},
    {"--loop", "18446744073709551616", "a", "null"},
    {"--loop", "2", "-", "null"},
    {"-", "-", "null"},
    {"-K", "--unique-ip", "a", "null"},
    {"--mtu-trunc", "--mtu-skip", "a", "null"},
    {"-t", "--plot", "a.svg", "a", "null"},
    {"-t", "--start-at", "+5", "a", "null"},
    {"--port-map", "80", "a", "null"},
    {"--ttl", "256", "a", "null"},
    {"--ttl=--1", "a", "null"},
    {"--dscp", "64", "a", "null"},
    {"--split", "client", "a", "null"},
    {"--port2", "null", "a", "null"},
    {"--split", "left", "--port2", "null", "a", "null"},
    {"--split", "port", "--port2", "null", "-K", "a", "null"},
    {"--split", "port", "--port2", "null", "-", "null"},
    {"--no-such-option", "a", "null"},
};

TEST(CommandLine, MistakesAreRefusedWithExitCode1)
{
    for (const auto& words : mistakes) {
        command made = parse(words);
        EXPECT_EQ(made.what, command::action::say) << testing::PrintToString(words);
        EXPECT_EQ(made.exit_code, 1);
        EXPECT_EQ(made.text.rfind("weftio-replay: ", 0), 0u);
    }
}

TEST(CommandLine, RefusalsNameTheOptionAndTheValue)
{
    std::string text = parse({"--duration", "3 parsecs", "a", "null"}).text;
    EXPECT_NE(text.find("--duration 3 parsecs"), std::string::npos) << text;
    EXPECT_NE(text.find("1.5s"), std::string::npos) << text;
}

TEST(CommandLine, NumbersMayBeAsLargeAsTheyGetAndLatenessNone)
{
    command made = parse({"--limit", "18446744073709551615", "--loop", "0", "--late-after", "0", "a", "null"});
    ASSERT_EQ(made.what, command::action::replay) << made.text;
    EXPECT_EQ(made.session.feed.limit, ~std::uint64_t{0});
    EXPECT_EQ(made.session.feed.loops, 0u);
    EXPECT_EQ(made.session.late_after_ns, 0u);
}

TEST(CommandLine, LogTakesALevel)
{
    EXPECT_EQ(parse({"a", "null"}).log, std::nullopt);
    EXPECT_EQ(parse({"--log", "warning", "a", "null"}).log, log_level::warning);
    const command refused = parse({"--log", "loud", "a", "null"});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_NE(refused.text.find("--log: weftio: log level loud"), std::string::npos) << refused.text;
}

TEST(CommandLine, CheckTakesFilesOnly)
{
    command made = parse({"--check", "a", "b"});
    EXPECT_EQ(made.what, command::action::check);
    EXPECT_EQ(made.session.files.size(), 2u);
}

TEST(Help, FitsAScreenAndNamesEveryOption)
{
    std::istringstream help{std::string(help_text())};
    int lines = 0;
    for (std::string line; std::getline(help, line); ++lines)
        EXPECT_LE(line.size(), 80u) << line;
    EXPECT_LE(lines, 40);
    for (const char* option :
         {"--merge",    "--preload-pcap", "--strict",   "--check",    "--multiplier", "--pps",           "--mbps",
          "--topspeed", "--start-at",     "--max-gap",  "--loop",     "--limit",      "--duration",      "--dst-mac",
          "--src-mac",  "--vlan-push",    "--vlan-pop", "--map",      "--unique-ip",  "--fix-checksums", "--mtu-trunc",
          "--mtu-skip", "--stats",        "--quiet",    "--json",     "--plot",       "--late-after",    "--device",
          "--log",      "--split",        "--filter",   "--port-map", "--ttl",        "--dscp",          "--lanes",
          "--mtu",      "--core",         "--busy",     "--realtime", "--help"})
        EXPECT_NE(help_text().find(option), std::string_view::npos) << option;
    EXPECT_EQ(parse({"-h"}).exit_code, 0);
}

TEST(Duration, HasUnits)
{
    EXPECT_EQ(parse_duration("1.5"), 1'500'000'000u);
    EXPECT_EQ(parse_duration("20ms"), 20'000'000u);
    EXPECT_EQ(parse_duration("0.1us"), 100u);
    EXPECT_EQ(parse_duration("7ns"), 7u);
    for (const char* wrong : {"", "s", "-1", "1m", "1e300", "inf", "nan"})
        EXPECT_FALSE(parse_duration(wrong)) << wrong;
}

TEST(Time, IsSecondsADateOrADelay)
{
    EXPECT_EQ(parse_time("1700000000.000000001", 0), 1'700'000'000'000'000'001u);
    EXPECT_EQ(parse_time("2023-11-14T22:13:20.5Z", 0), 1'700'000'000'500'000'000u);
    EXPECT_EQ(parse_time("2024-02-29T00:00:00Z", 0), 1'709'164'800'000'000'000u);
    EXPECT_EQ(parse_time("+2.5", 1'000), 2'500'001'000u);
    for (const char* wrong : {"", "+", "now", "2023-11-14", "2023-11-14T22:13:20 CET", "-5", "99999999999999999999",
                              "2026-02-30T00:00:00", "2026-04-31T23:59:59", "2025-02-29T12:00:00Z"})
        EXPECT_FALSE(parse_time(wrong, 0)) << wrong;
}

} // namespace
} // namespace weftio::replay::test
