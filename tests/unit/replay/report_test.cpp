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
    EXPECT_EQ(json.text(), "{\n  \"text\": \"a\\\"b\\\\c\\u000a\\u0001 \xc3\xa9 \\ufffd \\ufffd\\ufffd\\ufffd.\",\n  \"list\": "
                           "[\n    1,\n    -2.5\n  ],\n"
                           "  \"empty\": {},\n  \"nothing\": null\n}\n");
}

TEST(Json, OfARunNamesWhatTheIssueAsksFor)
{
    run_report made = report_of(10, 9);
    made.files[0].damaged = damage{7, "torn"};
    made.total.times.observe(1000, 1500, 100);
    std::string text = to_json(made);
    for (const char* wanted :
         {"\"exit_code\": 2", "\"planned\": 10", "\"sent\": 9", "\"not_sent\": 1", "\"offset\": 7", "\"reason\": \"torn\"",
          "\"late\": 1", "\"drift_ns\": 500", "\"p99\": 500", "\"clock\"", "\"path\": \"software\"", "\"oversize\": 0"})
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
    histogram made;
    for (std::uint64_t value = 1; value <= 100'000; ++value)
        made.record(value);
    EXPECT_NEAR(static_cast<double>(made.quantile_ns(0.5)), 50'000, 1'600);
    EXPECT_NEAR(static_cast<double>(made.quantile_ns(0.99)), 99'000, 3'100);
    EXPECT_EQ(made.quantile_ns(1), 100'000u);
    EXPECT_EQ(histogram{}.quantile_ns(0.5), 0u);
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
}

} // namespace
} // namespace weftio::replay::test
