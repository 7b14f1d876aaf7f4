// What the user sees of the counters.
#include "report.hpp"

#include <cstring>

#include <gtest/gtest.h>

#include "names.hpp"

namespace weftio::packets {
namespace {

TEST(PacketsReport, AnswerTimesAreThoseOfTheirBuckets)
{
    for (std::uint64_t ns = 1; ns < 1'000'000'000; ns = ns * 5 / 4 + 1) {
        packets_counters counters{};
        ++counters.times[time_bucket(ns)];
        const double reported = answer_time(counters, 50).value();
        EXPECT_GE(reported, static_cast<double>(ns)) << "the upper end of its bucket";
        EXPECT_LE(reported, std::max(1.26 * static_cast<double>(ns), 320.0));
    }
    EXPECT_FALSE(answer_time(packets_counters{}, 50));
}

TEST(PacketsReport, APercentileIsThatOfAllAnswers)
{
    packets_counters counters{};
    counters.times[time_bucket(1'000)] = 99;
    counters.times[time_bucket(1'000'000)] = 1;
    EXPECT_LT(answer_time(counters, 99).value(), 2'000);
    EXPECT_GT(answer_time(counters, 99.5).value(), 900'000);
}

TEST(PacketsReport, EachFrameIsAccountedForOrNot)
{
    totals all;
    all.kernels.packets.frames = all.port.received = 7;
    all.kernels.packets.verdicts[VERDICT_ping] = 5;
    all.kernels.packets.verdicts[VERDICT_cut] = 2;
    all.kernels.packets.sent = all.sent = 5;
    EXPECT_TRUE(is_conserved(all));
    ++all.kernels.packets.verdicts[VERDICT_udp];
    EXPECT_FALSE(is_conserved(all)) << "a verdict without a frame";
    --all.kernels.packets.verdicts[VERDICT_udp];
    ++all.port.received;
    EXPECT_FALSE(is_conserved(all)) << "a frame that no kernel has seen";
    all.unread = 1;
    EXPECT_TRUE(is_conserved(all));
    --all.sent;
    EXPECT_FALSE(is_conserved(all)) << "an answer that was not sent";
}

TEST(PacketsReport, EachCounterHasItsOwnName)
{
    packets_report report{};
    report.tcp.bytes_acknowledged = 1;
    report.packets.connections = 2;
    report.packets.refused_requests = 3;
    report.packets.verdicts[VERDICT_no_room] = 4;
    std::uint64_t words[sizeof report / sizeof(std::uint64_t)];
    std::memcpy(words, &report, sizeof words);
    const auto value_of = [&](std::string_view name) {
        std::size_t each = 0;
        for (const counter_name& counter : counter_names()) {
            if (counter.name == name)
                return words[each];
            ++each;
        }
        return std::uint64_t{0};
    };
    EXPECT_EQ(value_of("tcp.bytes_acknowledged"), 1u);
    EXPECT_EQ(value_of("tcp.connections"), 2u);
    EXPECT_EQ(value_of("http.refused"), 3u);
    EXPECT_EQ(value_of("dropped.no_room"), 4u);
}

TEST(PacketsReport, ATableLeavesOutWhatDidNotHappen)
{
    totals now;
    now.kernels.packets.verdicts[VERDICT_ping] = 12;
    const std::string table = to_table(now, {}, 2);
    EXPECT_NE(table.find("pings answered, IPv4"), table.npos);
    EXPECT_EQ(table.find("fragments"), table.npos);
    EXPECT_EQ(table.find("HTTP"), table.npos);
}

} // namespace
} // namespace weftio::packets
