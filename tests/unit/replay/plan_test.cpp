// Offsets from the anchor.
#include <gtest/gtest.h>

#include <limits>

#include "send/plan.hpp"

namespace weftio::replay::test {
namespace {

constexpr std::int64_t second = 1'000'000'000;

TEST(Plan, OfACaptureKeepsItsGapsToTheNanosecond)
{
    plan by({});
    EXPECT_EQ(by.next(1'700'000'000'123'456'789, true, 60), 0u);
    EXPECT_EQ(by.next(1'700'000'000'123'456'790, true, 60), 1u);
    EXPECT_EQ(by.next(1'700'000'001'123'456'789, true, 60), 1'000'000'000u);
}

TEST(Plan, WithAMultiplierDividesEveryOffsetAfresh)
{
    plan by({.multiplier = 3});
    std::uint64_t last = 0;
    for (std::int64_t number = 0; number <= 3'000'000; ++number)
        last = by.next(number * 100'000, true, 60);
    EXPECT_EQ(last, 100'000'000'000u); // no rounding has added up over three million frames
}

TEST(Plan, ByFramesASecondIgnoresCaptureTimes)
{
    plan by({.by = pace::frames, .per_second = 3});
    std::uint64_t last = 0;
    for (int number = 0; number <= 3'000'000; ++number)
        last = by.next(0, true, 60);
    EXPECT_EQ(last, 1'000'000'000'000'000u);
}

TEST(Plan, ByBitsASecondCountsTheFramesBefore)
{
    plan by({.by = pace::bits, .per_second = 8e6});
    EXPECT_EQ(by.next(0, true, 1000), 0u);
    EXPECT_EQ(by.next(0, true, 60), 1'000'000u);
    EXPECT_EQ(by.next(0, true, 60), 1'060'000u);
}

TEST(Plan, SendsAnOlderFrameAtTheLatestTimeAndCountsIt)
{
    plan by({});
    by.next(1000, true, 60);
    EXPECT_EQ(by.next(3000, true, 60), 2000u);
    EXPECT_EQ(by.next(2000, true, 60), 2000u);
    EXPECT_EQ(by.next(4000, true, 60), 3000u); // what follows is where it was
    EXPECT_EQ(by.out_of_order(), 1u);
}

TEST(Plan, CountsFromAClockThatWasSetBack)
{
    plan by({});
    by.next(100 * second, true, 60);
    EXPECT_EQ(by.next(101 * second, true, 60), 1'000'000'000u);
    EXPECT_EQ(by.next(5 * second, true, 60), 1'000'000'000u);
    EXPECT_EQ(by.next(6 * second, true, 60), 2'000'000'000u);
}

TEST(Plan, CutsGapsOfThePlanNotOfTheCapture)
{
    plan by({.multiplier = 2, .max_gap_ns = 1'000'000'000});
    by.next(0, true, 60);
    EXPECT_EQ(by.next(2 * second, true, 60), 1'000'000'000u);
    EXPECT_EQ(by.next(365 * 86400 * second, true, 60), 2'000'000'000u);
    EXPECT_EQ(by.next(365 * 86400 * second + 10, true, 60), 2'000'000'005u);
}

TEST(Plan, BeginsAFileWhereTheOneBeforeEnded)
{
    plan by({});
    by.next(5 * second, true, 60);
    by.next(6 * second, true, 60);
    by.next_file();
    EXPECT_EQ(by.next(5 * second, true, 60), 1'000'000'000u);
    EXPECT_EQ(by.next(6 * second, true, 60), 2'000'000'000u);
    EXPECT_EQ(by.out_of_order(), 0u);
}

TEST(Plan, SendsAFrameWithoutTimeWithTheOneBefore)
{
    plan by({});
    by.next(0, true, 60);
    by.next(7000, true, 60);
    EXPECT_EQ(by.next(0, false, 60), 7000u);
    EXPECT_EQ(by.out_of_order(), 0u);
}

TEST(Plan, OfTimesAtTheEndsOfTheRangeDoesNotOverflow)
{
    plan by({.multiplier = 0.001});
    by.next(std::numeric_limits<std::int64_t>::min(), true, 60);
    std::uint64_t last = by.next(std::numeric_limits<std::int64_t>::max(), true, 60);
    EXPECT_EQ(last, static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
    by.next(std::numeric_limits<std::int64_t>::min(), true, 60);
    EXPECT_EQ(by.next(std::numeric_limits<std::int64_t>::max(), true, 60), last);
}

TEST(Plan, AtTopSpeedHasNoTimes)
{
    plan by({.by = pace::top_speed});
    by.next(0, true, 60);
    EXPECT_EQ(by.next(second, true, 60), 0u);
}

} // namespace
} // namespace weftio::replay::test
