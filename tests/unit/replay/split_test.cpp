// Which of two ports frames go through.
#include <gtest/gtest.h>

#include <vector>

#include "capture_bytes.hpp"
#include "scratch.hpp"
#include "send/split.hpp"
#include "session.hpp"

namespace weftio::replay::test {
namespace {

/// Ethernet, IPv4, TCP or UDP, from 10.0.0.`from` to 10.0.0.`to`.
std::string packet(int from, int to, int from_port, int to_port, int protocol = 17, int flags = 0)
{
    bytes frame{.big = true};
    frame.raw(frame_of(12, 'm'))
        .u16(0x0800)
        .u16(0x4500)
        .u16(40)
        .u32(0)
        .u16(static_cast<std::uint16_t>(64 << 8 | protocol));
    frame.u16(0).u32(0x0a000000u + static_cast<std::uint32_t>(from)).u32(0x0a000000u + static_cast<std::uint32_t>(to));
    frame.u16(static_cast<std::uint16_t>(from_port)).u16(static_cast<std::uint16_t>(to_port));
    frame.u32(0).u32(0).u16(static_cast<std::uint16_t>(0x5000 | flags)).raw(frame_of(12, '\0'));
    return frame.text;
}

side side_in(splitter& by, const std::string& content)
{
    frame captured;
    captured.bytes = std::as_bytes(std::span(content.data(), content.size()));
    captured.captured_bytes = captured.original_bytes = static_cast<std::uint32_t>(content.size());
    captured.link_type = link_type_ethernet;
    return by.side_of(captured);
}

constexpr int tcp = 6, syn = 2, ack = 16;

TEST(Split, ByPortSendsWhatGoesToAServiceThroughTheFirst)
{
    splitter by(*parse_split("port"));
    EXPECT_EQ(side_in(by, packet(1, 2, 50'000, 53)), side::first);
    EXPECT_EQ(side_in(by, packet(2, 1, 53, 50'000)), side::second);
}

TEST(Split, ByCidrGoesByTheSource)
{
    splitter by(*parse_split("cidr=10.0.0.1/32,fd00::/8"));
    EXPECT_EQ(side_in(by, packet(1, 2, 1, 1)), side::first);
    EXPECT_EQ(side_in(by, packet(2, 1, 1, 1)), side::second);
}

TEST(Split, ByClientTakesWhoSendsFirstUnlessASynSaysOtherwise)
{
    for (const char* rule : {"client", "server"}) {
        splitter by(*parse_split(rule));
        EXPECT_EQ(side_in(by, packet(9, 2, 1, 1)), side::first);
        EXPECT_EQ(side_in(by, packet(2, 9, 1, 1)), side::second);
        EXPECT_EQ(side_in(by, packet(3, 2, 80, 5000, tcp, syn | ack)), side::second);
        EXPECT_EQ(side_in(by, packet(2, 3, 5000, 80, tcp, ack)), side::first);
        EXPECT_EQ(side_in(by, frame_of(60)), rule[0] == 'c' ? side::first : side::second);
    }
}

TEST(Split, RefusesOtherRules)
{
    for (const char* text : {"", "bridge", "cidr", "cidr=", "cidr=10.0.0.0/33", "cidr=10.0.0.0/8;11.0.0.0/8"})
        EXPECT_FALSE(parse_split(text)) << text;
}

TEST(Split, SendsThroughTwoPortsByOnePlan)
{
    scratch files;
    std::string file = pcap_header();
    for (std::uint32_t number = 0; number < 100; ++number)
        file += pcap_record(false, 1, 1000 + number * 300,
                            number % 3 == 0 ? packet(1, 2, 5000, 53) : packet(2, 1, 53, 5000));
    session_options options{.files = {files.write("a", file)},
                            .port = "pcap:tx=" + files.path("first"),
                            .feed = {.loops = 2, .split = *parse_split("client")}};
    std::atomic<bool> stop{false};
    std::uint64_t most = 0;
    auto reports = replay_split(options, "pcap:tx=" + files.path("second"), stop,
                                [&most](const progress& at) { most = std::max(most, at.sent); });
    ASSERT_EQ(reports.size(), 2u);
    EXPECT_EQ(worst_of(reports), outcome::as_planned);
    EXPECT_EQ(reports[0].total.frames.sent, 68u);
    EXPECT_EQ(reports[1].total.frames.sent, 132u);
    EXPECT_GT(most, 0u);
    EXPECT_EQ(read_all(files.read("first")).frames.at(0).bytes, packet(1, 2, 5000, 53));
    EXPECT_EQ(read_all(files.read("second")).frames.at(131).bytes, packet(2, 1, 53, 5000));
    // The first frame of the second port is the second of the capture; the last of both loops is one of the first port.
    const timing &first = reports[0].total.times, &second = reports[1].total.times;
    EXPECT_EQ(second.first_planned_ns - first.first_planned_ns, 300'000u);
    EXPECT_EQ(first.last_planned_ns - second.last_planned_ns, 300'000u);
}

TEST(Split, ThatIsStoppedStopsBothPorts)
{
    scratch files;
    std::string file = pcap_header() + pcap_record(false, 1, 0, packet(1, 2, 5000, 53)) +
                       pcap_record(false, 601, 0, packet(2, 1, 53, 5000));
    session_options options{.files = {files.write("a", file)}, .port = "null", .feed = {.split = *parse_split("port")}};
    std::atomic<bool> stop{false};
    auto reports = replay_split(options, "null", stop, [&stop](const progress& at) { stop = at.sent > 0; });
    EXPECT_EQ(worst_of(reports), outcome::not_sent);
    EXPECT_TRUE(reports[1].interrupted);
}

} // namespace
} // namespace weftio::replay::test
