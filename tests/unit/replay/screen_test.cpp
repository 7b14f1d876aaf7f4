// What is shown while a run goes on, and what is said when it cannot be shown.
#include <gtest/gtest.h>

#include <algorithm>

#include "output.hpp"
#include "report/screen.hpp"

namespace weftio::replay::test {
namespace {

constexpr std::uint64_t s = 1'000'000'000;

progress quarter_done()
{
    return {.elapsed_ns = 10 * s,
            .sent = 1'234'567,
            .sent_bytes = 98'765'432,
            .late = 12,
            .planned_ns = 10 * s,
            .actual_ns = 10 * s + 12'300,
            .share = 0.25};
}

TEST(Progress, SaysPercentTimeLeftAndRates)
{
    EXPECT_EQ(progress_text(quarter_done(), {}, 200),
              " 25 %  30.0 s left  10.0 s  1,234,567 frames  123 kpps  79.0 Mbit/s  12 late  error +12.3 us");
}

TEST(Progress, WithoutAKnownEndHasNoPercent)
{
    progress at = quarter_done();
    at.share = 0;
    EXPECT_EQ(progress_text(at, {}, 200).find("10.0 s  1,234,567"), 0u);
}

TEST(Progress, FitsEveryWidthAndCutsNoNumber)
{
    std::string whole = progress_text(quarter_done(), {}, 200);
    for (std::size_t columns = 0; columns <= whole.size(); ++columns) {
        std::string text = progress_text(quarter_done(), {}, columns);
        EXPECT_LE(text.size(), columns);
        EXPECT_EQ(whole.rfind(text, 0), 0u);
        EXPECT_TRUE(text.empty() || text.size() == whole.size() || whole.substr(text.size(), 2) == "  ") << text;
    }
    EXPECT_FALSE(progress_text(quarter_done(), {}, 6).empty());
}

TEST(Progress, SaysThatTheNextFrameIsLongInComing)
{
    progress at = quarter_done();
    at.next_in_ns = 7'500 * s;
    EXPECT_NE(progress_text(at, {}, 79).find("next frame in 2 h 5 min"), std::string::npos);
}

TEST(Screen, RemarksOnALongWaitOnce)
{
    screen shown({});
    progress at = quarter_done();
    testing::internal::CaptureStderr();
    shown.show(at);
    for (std::uint64_t waited = 0; waited < 3; ++waited) {
        at.next_ns = 1'700'000'000 * s;
        at.next_in_ns = (7'500 - waited) * s;
        shown.show(at);
    }
    std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("goes in 2 h 5 min"), std::string::npos) << said;
    EXPECT_NE(said.find("--max-gap"), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST(Screen, SaysWhatALongWaitIsFor)
{
    auto remark_on = [](wait_for reason) {
        progress at; // nothing is sent, and the anchor is still to come
        at.next_ns = 1'700'000'000 * s;
        at.next_in_ns = 120 * s;
        at.waits_for = reason;
        testing::internal::CaptureStderr();
        screen({}).show(at);
        return testing::internal::GetCapturedStderr();
    };
    EXPECT_EQ(remark_on(wait_for::start), "weftio-replay: the first frame goes in 2 min\n");
    EXPECT_EQ(remark_on(wait_for::gap),
              "weftio-replay: the next frame of the capture goes in 2 min; --max-gap 1s shortens such gaps\n");
    EXPECT_EQ(remark_on(wait_for::rate),
              "weftio-replay: the next frame goes in 2 min; a larger --pps or --mbps shortens it\n");
}

TEST(Output, ThatCannotBeWrittenSaysWhy)
{
    EXPECT_NE(apps::write_file("/dev/full", "text").find("/dev/full: cannot be written (No space left on device)"),
              std::string::npos);
    EXPECT_NE(apps::write_file("/", "text").find("(Is a directory)"), std::string::npos);
    EXPECT_NE(apps::try_file("/nowhere/file").find("(No such file or directory)"), std::string::npos);
    EXPECT_EQ(apps::try_file("/dev/null"), "");
    EXPECT_EQ(apps::write_file("/dev/null", "text"), "");
}

} // namespace
} // namespace weftio::replay::test
