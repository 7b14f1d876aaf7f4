// What a run came to.
#include <gtest/gtest.h>

#include "report/check.hpp"
#include "report/json.hpp"
#include "report/report.hpp"

namespace weftio::replay::test {
namespace {

run_report report_of(std::uint64_t planned, std::uint64_t sent)
{
    run_report made;
    made.files.resize(2);
    made.files[0].path = "a.pcap";
    made.files[0].frames.planned = planned;
    made.files[0].frames.sent = sent;
    add_up(made);
    return made;
}

TEST(Report, HasTheExitCodeOfTheWorst)
{
    run_report made = report_of(10, 10);
    EXPECT_EQ(made.result(), outcome::as_planned);
    made.files[1].frames.skipped[2] = 1;
    add_up(made);
    EXPECT_EQ(made.result(), outcome::not_sent);
    made.skipping_is_planned = true;
    EXPECT_EQ(made.result(), outcome::as_planned);
    EXPECT_EQ(report_of(10, 9).result(), outcome::not_sent);
    made.files[1].damaged = damage{7, "torn"};
    EXPECT_EQ(made.result(), outcome::damaged);
    made.failure = "gone";
    EXPECT_EQ(made.result(), outcome::port_failed);
}

TEST(Report, OfAnInterruptedRunIsAsPlannedOnlyWhenThePlanHadNoEnd)
{
    run_report made = report_of(10, 10);
    made.interrupted = true;
    EXPECT_EQ(made.result(), outcome::not_sent);
    made.endless = true;
    EXPECT_EQ(made.result(), outcome::as_planned);
}

TEST(Report, AddsUpFiles)
{
    run_report made = report_of(10, 9);
    made.files[1].frames.planned = 5;
    made.files[1].frames.first_seen_ns = 100;
    made.files[1].frames.last_seen_ns = 200;
    add_up(made);
    EXPECT_EQ(made.total.frames.planned, 15u);
    EXPECT_EQ(made.total.frames.sent, 9u);
    EXPECT_EQ(made.total.frames.first_seen_ns, 100u);
    EXPECT_EQ(made.not_sent(), 6u);
}

TEST(Report, SaysHowFramesThatAreTooLongCanBeSent)
{
    run_report made = report_of(10, 10);
    made.files[0].frames.skipped[static_cast<std::size_t>(skip_reason::oversize)] = 1;
    add_up(made);
    made.mtu = 1500;
    made.wanted_mtu = 9000;
    made.port = "iface:eth0";
    std::string table = to_table(made);
    EXPECT_NE(table.find("the MTU of the port is 1500, the longest frame needs 9000; raise it with --mtu 9000"),
              std::string::npos)
        << table;
    EXPECT_NE(table.find("--mtu-trunc"), std::string::npos) << table;
    made.wanted_mtu = 60'000; // of no interface
    EXPECT_EQ(to_table(made).find("--mtu 60000"), std::string::npos) << to_table(made);
    made.skipping_is_planned = true;
    EXPECT_EQ(to_table(made).find("--mtu-trunc"), std::string::npos) << to_table(made);
}

TEST(Json, QuotesWhatItMust)
{
    json_writer json;
    json.begin_object();
    json.value("text", "a\"b\\c\n\x01 \xc3\xa9 \xff \xed\xa0\x80.");
    json.begin_array("list");
    json.value("", 1);
    json.value("", -2.5);
    json.end_array();
    json.begin_object("empty");
    json.end_object();
    json.null("nothing");
    json.end_object();
    EXPECT_EQ(json.text(),
              "{\n  \"text\": \"a\\\"b\\\\c\\u000a\\u0001 \xc3\xa9 \\ufffd \\ufffd\\ufffd\\ufffd.\",\n  \"list\": "
              "[\n    1,\n    -2.5\n  ],\n"
              "  \"empty\": {},\n  \"nothing\": null\n}\n");
}

TEST(Json, OfARunNamesWhatTheIssueAsksFor)
{
    run_report made = report_of(10, 9);
    made.files[0].damaged = damage{7, "torn"};
    made.total.times.observe(1000, 1500, 100);
    std::string text = to_json(made);
    for (const char* wanted : {"\"exit_code\": 2", "\"planned\": 10", "\"sent\": 9", "\"not_sent\": 1", "\"offset\": 7",
                               "\"reason\": \"torn\"", "\"late\": 1", "\"drift_ns\": 500", "\"p99\": 500", "\"clock\"",
                               "\"path\": \"software\"", "\"oversize\": 0"})
        EXPECT_NE(text.find(wanted), std::string::npos) << wanted;
}

TEST(Timing, KnowsLateEarlyAndDrift)
{
    timing times;
    times.observe(1000, 1010, 50);
    times.observe(2000, 1990, 50);
    times.observe(3000, 3100, 50);
    EXPECT_EQ(times.late, 1u);
    EXPECT_EQ(times.early, 1u);
    EXPECT_EQ(times.drift_ns(), 100); // that the first was late as well makes it no smaller
    times.observe(4000, 3990, 50);
    EXPECT_EQ(times.drift_ns(), -10);
    EXPECT_EQ(times.errors.max_ns(), 100u);
}

TEST(Histogram, QuantilesAreWithinThreePercent)
{
    apps::histogram made;
    for (std::uint64_t value = 1; value <= 100'000; ++value)
        made.record(value);
    EXPECT_NEAR(static_cast<double>(made.quantile_ns(0.5)), 50'000, 1'600);
    EXPECT_NEAR(static_cast<double>(made.quantile_ns(0.99)), 99'000, 3'100);
    EXPECT_EQ(made.quantile_ns(1), 100'000u);
    EXPECT_EQ(made.value_at_rank_ns(0), 1u);
    EXPECT_EQ(made.value_at_rank_ns(7), 7u);
    made.record(~0ull);
    EXPECT_EQ(made.max_ns(), ~0ull);
    EXPECT_EQ(made.quantile_ns(1), ~0ull);
    EXPECT_EQ(apps::histogram{}.quantile_ns(0.5), 0u);
    EXPECT_EQ(apps::histogram{}.value_at_rank_ns(1), 0u);
}

TEST(Histogram, OfTwoHasTheRecordsOfBoth)
{
    apps::histogram made, both;
    made.record(10, 3);
    made.record(20, 2);
    both.add(made);
    both.add(made);
    EXPECT_EQ(both.count(), 10u);
    EXPECT_EQ(both.max_ns(), 20u);
    EXPECT_EQ(both.quantile_ns(0.6), 10u);
    EXPECT_EQ(both.quantile_ns(0.7), 20u);
}

TEST(ErrorSeries, StaysBoundedAndLosesNothing)
{
    error_series series;
    for (std::uint64_t second = 0; second < 5000; ++second)
        series.observe(second * 1'000'000'000, second == 4321 ? 77 : 5);
    EXPECT_LE(series.columns().size(), error_series::most_columns);
    std::uint64_t count = 0, worst = 0;
    for (const auto& column : series.columns()) {
        count += column.count;
        worst = std::max(worst, column.max_ns);
    }
    EXPECT_EQ(count, 5000u);
    EXPECT_EQ(worst, 77u);
}

TEST(Svg, IsDrawnAlsoOfNothing)
{
    run_report made = report_of(0, 0);
    EXPECT_NE(to_svg(made).find("</svg>"), std::string::npos);
    made.series.observe(0, 1'000'000);
    EXPECT_NE(to_svg(made).find("M"), std::string::npos);
}

TEST(Text, GroupsDigitsAndPicksUnits)
{
    EXPECT_EQ(grouped(0), "0");
    EXPECT_EQ(grouped(999), "999");
    EXPECT_EQ(grouped(1'234'567), "1,234,567");
    EXPECT_EQ(duration_text(999), "999 ns");
    EXPECT_EQ(duration_text(12'300), "12.3 us");
    EXPECT_EQ(duration_text(1'500'000'000), "1.500 s");
    EXPECT_EQ(duration_text(50'000), "50 us");
    EXPECT_EQ(duration_text(999'990), "1.0 ms");
    EXPECT_EQ(duration_text(7'500'000'000'000), "2 h 5 min");
    EXPECT_EQ(duration_text(~0ull), "584 y 343 d");
    EXPECT_EQ(signed_duration_text(-1'926'462), "-1.9 ms");
    EXPECT_EQ(signed_duration_text(308'600), "+308.6 us");
    EXPECT_EQ(signed_duration_text(0), "0 ns");
}

TEST(Text, RatesAndSizesHaveThreeDigitsAndAUnit)
{
    EXPECT_EQ(frame_rate_text(99.4504), "99.5 pps");
    EXPECT_EQ(frame_rate_text(0.05), "0.05 pps");
    EXPECT_EQ(frame_rate_text(999.7), "1.00 kpps");
    EXPECT_EQ(frame_rate_text(1'264'000), "1.26 Mpps");
    EXPECT_EQ(bit_rate_text(80'704), "80.7 kbit/s");
    EXPECT_EQ(bit_rate_text(9.9e9), "9.90 Gbit/s");
    EXPECT_EQ(bytes_text(512), "512 bytes");
    EXPECT_EQ(bytes_text(50'504), "50.5 kB");
    EXPECT_EQ(frames_text(1), "1 frame");
    EXPECT_EQ(frames_text(1234), "1,234 frames");
}

TEST(Text, OfADateIsThatOfStartAt)
{
    EXPECT_EQ(utc_text(1'700'000'000'000'000'001), "2023-11-14T22:13:20.000000001Z");
    EXPECT_EQ(utc_text(-1), "1969-12-31T23:59:59.999999999Z");
}

TEST(Table, HasUnitsForPeopleAndJsonTheNumbers)
{
    run_report made = report_of(10, 10);
    made.files[0].frames.sent_bytes = 50'504;
    add_up(made);
    made.actual_ns = 100'552'604'000;
    made.late_after_ns = 50'000;
    made.total.times.observe(1'700'000'000'000'000'000, 1'700'000'000'001'926'462, 50'000);
    std::string table = to_table(made), json = to_json(made);
    for (const char* wanted : {"50.5 kB", "0.10 pps", "4.02 kbit/s", "drift +1.9 ms", "1 frame by more than 50 us"})
        EXPECT_NE(table.find(wanted), std::string::npos) << wanted << " in\n" << table;
    for (const char* wanted :
         {"\"drift_ns\": 1926462", "\"late_after_ns\": 50000", "\"actual_duration_ns\": 100552604000"})
        EXPECT_NE(json.find(wanted), std::string::npos) << wanted << " in\n" << json;
}

TEST(Table, SaysWhatTheSnapshotLengthCutAndWhichTimesDoNotFit)
{
    run_report made = report_of(10, 10);
    made.files[0].frames.cut = 3;
    made.files[1].frames.clamped = 1;
    add_up(made);
    EXPECT_NE(to_table(made).find("cut       3 frames by the capture's snapshot length"), std::string::npos)
        << to_table(made);
    EXPECT_NE(to_table(made).find("times     1 frame with a time before 1677 or after 2262"), std::string::npos);
    EXPECT_NE(to_json(made).find("\"cut_by_capture\": 3"), std::string::npos);
}

TEST(Table, LeavesWhatWentWrongToTheComplaintsAndIsNotDrawnOfNothing)
{
    run_report made = report_of(10, 9);
    made.files[0].damaged = damage{7, "torn"};
    made.failure = "weftio-replay: interface eth7 is down";
    EXPECT_NE(to_table(made).find("9 of 10"), std::string::npos);
    for (const char* once : {"torn", "is down"}) {
        EXPECT_EQ(to_table(made).find(once), std::string::npos);
        EXPECT_NE(to_complaints(made).find(once), std::string::npos);
    }
    made.files[0].frames = {};
    add_up(made);
    EXPECT_EQ(to_table(made), "");
    made.files[0].damaged.reset();
    made.failure.clear();
    EXPECT_EQ(to_complaints(made), "");
    EXPECT_NE(to_table(made), "");
}

TEST(Svg, NamesFileAndPortAndDrawsTheLineOfLate)
{
    run_report made = report_of(10, 10);
    made.files[0].path = "/tmp/a<b>&\xff.pcap";
    made.port = "iface:veth0";
    made.late_after_ns = 50'000;
    made.series.observe(0, 1'000'000);
    std::string svg = to_svg(made);
    for (const char* wanted :
         {"a&#60;b&#62;&#38;&#xfffd;.pcap", "iface:veth0", "class=\"late\"", "late, by more than 50 us"})
        EXPECT_NE(svg.find(wanted), std::string::npos) << wanted << " in\n" << svg;
    made.late_after_ns = 0;
    EXPECT_EQ(to_svg(made).find("class=\"late\""), std::string::npos);
}

} // namespace
} // namespace weftio::replay::test
