// Whole runs, into nothing and into a capture.
#include <gtest/gtest.h>

#include "capture_bytes.hpp"
#include "scratch.hpp"
#include "session.hpp"

namespace weftio::replay::test {
namespace {

/// `frames` frames, `gap_us` apart; every frame is filled with its number.
std::string numbered(std::uint32_t frames, std::uint32_t gap_us)
{
    std::string file = pcap_header();
    for (std::uint32_t number = 0; number < frames; ++number) {
        std::uint64_t at_us = std::uint64_t{number} * gap_us;
        file += pcap_record(false, static_cast<std::uint32_t>(at_us / 1'000'000),
                            static_cast<std::uint32_t>(at_us % 1'000'000),
                            frame_of(60 + number % 100, static_cast<char>(number)));
    }
    return file;
}

/// Everything that progress can tell of a run, as its largest.
struct seen {
    double share = 0;
    std::uint64_t next_in_ns = 0;
    wait_for waits_for = wait_for::gap; ///< of the longest wait
};

class Session : public testing::Test {
 protected:
    run_report run(session_options options)
    {
        if (options.port.empty())
            options.port = "pcap:tx=" + files.path("out.pcap");
        run_report made = replay_files(options, stop, [this](const progress& at) {
            if (at.sent >= stop_after || (at.sent > 0 && at.next_in_ns >= stop_before_wait_ns) ||
                at.next_in_ns >= stop_at_wait_ns)
                stop = true;
            most.share = std::max(most.share, at.share);
            if (at.next_in_ns > most.next_in_ns)
                most.waits_for = at.waits_for;
            most.next_in_ns = std::max(most.next_in_ns, at.next_in_ns);
        });
        EXPECT_EQ(made.failure, "");
        return made;
    }
    read_capture sent() const { return read_all(files.read("out.pcap")); }

    scratch files;
    std::atomic<bool> stop{false};
    std::uint64_t stop_after = ~0ull, stop_before_wait_ns = ~0ull, stop_at_wait_ns = ~0ull;
    seen most;
};

void expect_numbered(const read_capture& all, std::uint32_t modulus)
{
    for (std::size_t at = 0; at < all.frames.size(); ++at)
        ASSERT_EQ(all.frames[at].bytes, frame_of(60 + at % modulus % 100, static_cast<char>(at % modulus))) << at;
}

TEST_F(Session, SendsEveryFrameInOrderAndNoneEarly)
{
    run_report made = run({.files = {files.write("a", numbered(2000, 20))}});
    EXPECT_EQ(made.result(), outcome::as_planned);
    EXPECT_EQ(made.total.frames.sent, 2000u);
    EXPECT_EQ(made.total.times.errors.count(), 2000u);
    EXPECT_EQ(made.total.times.early, 0u);
    EXPECT_EQ(made.planned_ns, 1999u * 20'000);
    ASSERT_EQ(sent().frames.size(), 2000u);
    expect_numbered(sent(), 2000);
}

TEST_F(Session, LoopsKeepOneAnchor)
{
    run_report made = run({.files = {files.write("a", numbered(100, 10))}, .feed = {.loops = 50}});
    EXPECT_EQ(made.total.frames.sent, 5000u);
    EXPECT_EQ(made.loops, 50u);
    EXPECT_EQ(made.planned_ns, 50u * 99 * 10'000);
    expect_numbered(sent(), 100);
}

TEST_F(Session, GoesRoundPreloadedFramesAtTopSpeed)
{
    std::string file = files.write("a", numbered(100, 10));
    for (bool laps : {true, false}) {
        stop = false;
        run_report made =
            run({.files = {file},
                 .feed = {.timing = {.by = pace::top_speed}, .loops = 500, .preload = true, .laps = laps}});
        EXPECT_EQ(made.result(), outcome::as_planned);
        EXPECT_EQ(made.total.frames.planned, 50'000u);
        EXPECT_EQ(made.total.frames.sent, 50'000u);
        ASSERT_EQ(sent().frames.size(), 50'000u);
        expect_numbered(sent(), 100);
    }
}

TEST_F(Session, IntoALoopbackThatNobodyReceivesFromEnds)
{
    run_report made = run({.files = {files.write("a", numbered(20'000, 10))},
                           .port = "loopback",
                           .feed = {.timing = {.by = pace::top_speed}}});
    EXPECT_EQ(made.result(), outcome::as_planned);
    EXPECT_EQ(made.total.frames.sent, 20'000u);
}

TEST_F(Session, SendsNoMoreThanTheLimit)
{
    std::string file = files.write("a", numbered(100, 10));
    for (bool laps : {true, false}) {
        stop = false;
        pace by = laps ? pace::top_speed : pace::capture;
        run_report made = run(
            {.files = {file}, .feed = {.timing = {.by = by}, .loops = 0, .limit = 250, .preload = laps, .laps = laps}});
        EXPECT_EQ(made.total.frames.sent, 250u);
        EXPECT_EQ(made.result(), outcome::as_planned);
    }
}

TEST_F(Session, EndsWithTheDurationOfThePlan)
{
    run_report made = run({.files = {files.write("a", numbered(10'000, 1000))}, .feed = {.duration_ns = 50'000'000}});
    EXPECT_EQ(made.total.frames.sent, 50u);
    EXPECT_EQ(made.result(), outcome::as_planned);
}

TEST_F(Session, ThatIsStoppedReportsWhatWasSent)
{
    stop_after = 100;
    run_report made = run({.files = {files.write("a", numbered(100'000, 1000))}});
    EXPECT_TRUE(made.interrupted);
    EXPECT_EQ(made.result(), outcome::not_sent);
    EXPECT_GE(made.total.frames.sent, 100u);
    EXPECT_LT(made.total.frames.sent, 100'000u);
    EXPECT_EQ(sent().frames.size(), made.total.frames.sent);
}

TEST_F(Session, WithoutEndIsAsPlannedWhenStopped)
{
    stop_after = 1000;
    for (bool laps : {true, false}) {
        stop = false;
        run_report made = run({.files = {files.write("a", numbered(10, 10))},
                               .port = "null",
                               .feed = {.timing = {.by = pace::top_speed}, .loops = 0, .preload = laps, .laps = laps}});
        EXPECT_GE(made.total.frames.sent, 1000u);
        EXPECT_EQ(made.total.frames.planned, made.total.frames.sent);
        EXPECT_EQ(made.result(), outcome::as_planned);
    }
}

TEST_F(Session, TellsTheFirstFrameFromAGapAndARate)
{
    constexpr std::uint64_t minute_ns = 60'000'000'000;
    struct reason {
        feed_options feed;
        std::uint64_t start_at_ns;
        wait_for expected;
    };
    stop_at_wait_ns = minute_ns; // also before the first frame has gone
    for (const reason& each : {reason{{}, 0, wait_for::gap}, reason{{}, utc_now_ns() + 5 * minute_ns, wait_for::start},
                               reason{{.timing = {.by = pace::frames, .per_second = 0.01}}, 0, wait_for::rate}}) {
        stop = false;
        most = {};
        run({.files = {files.write("a", numbered(3, 120'000'000))},
             .feed = each.feed,
             .start_at_ns = each.start_at_ns});
        EXPECT_GE(most.next_in_ns, minute_ns);
        EXPECT_EQ(most.waits_for, each.expected);
    }
}

TEST_F(Session, SendsWhatIsReadableOfADamagedFile)
{
    run_report made = run({.files = {files.write("a", numbered(10, 10) + "torn"), files.write("b", numbered(20, 10))}});
    EXPECT_EQ(made.result(), outcome::damaged);
    EXPECT_EQ(made.files[0].frames.sent, 10u);
    EXPECT_EQ(made.files[1].frames.sent, 20u);
    EXPECT_TRUE(made.files[0].damaged);
}

TEST_F(Session, CountsWhatItSkips)
{
    std::string file = pcap_header() + pcap_record(false, 1, 0, frame_of(13)) + pcap_record(false, 1, 0, frame_of(60)) +
                       pcap_record(false, 1, 0, frame_of(9000));
    run_report made = run({.files = {files.write("a", file)}, .port = "null"});
    EXPECT_EQ(made.total.frames.sent, 1u);
    EXPECT_EQ(made.total.frames.skipped[static_cast<std::size_t>(skip_reason::runt)], 1u);
    EXPECT_EQ(made.total.frames.skipped[static_cast<std::size_t>(skip_reason::oversize)], 1u);
    EXPECT_EQ(made.result(), outcome::not_sent);
}

TEST_F(Session, WritesFramesUpToTheSnapshotLengthIntoACapture)
{
    const std::vector<std::size_t> lengths{1515, 9014, 16'385, 65'450, 65'527, 65'535};
    std::string file = pcap_header();
    for (std::size_t bytes : lengths)
        file += pcap_record(false, 1, 0, frame_of(bytes));
    for (bool preload : {false, true}) {
        stop = false;
        run_report made = run({.files = {files.write("a", file)}, .feed = {.preload = preload}});
        EXPECT_EQ(made.total.frames.skipped[static_cast<std::size_t>(skip_reason::oversize)], 1u);
        EXPECT_EQ(made.mtu, 65'513u);
        EXPECT_EQ(made.wanted_mtu, 65'535u - 14);
        ASSERT_EQ(sent().frames.size(), lengths.size() - 1);
        for (std::size_t at = 0; at + 1 < lengths.size(); ++at)
            EXPECT_EQ(sent().frames[at].bytes, frame_of(lengths[at]));
    }
}

TEST_F(Session, IntoACaptureHasTheMtuThatIsGiven)
{
    std::string file =
        pcap_header() + pcap_record(false, 1, 0, frame_of(9014)) + pcap_record(false, 1, 0, frame_of(9015));
    run_report made = run({.files = {files.write("a", file)}, .mtu = 9000});
    EXPECT_EQ(made.total.frames.sent, 1u);
    EXPECT_EQ(made.wanted_mtu, 9001u);
}

TEST_F(Session, CountsWhatTheCaptureCut)
{
    std::string file =
        pcap_header() + pcap_record(false, 1, 0, frame_of(60), 1000) + pcap_record(false, 1, 0, frame_of(60));
    for (bool preload : {false, true}) {
        stop = false;
        run_report made =
            run({.files = {files.write("a", file)}, .port = "null", .feed = {.loops = 3, .preload = preload}});
        EXPECT_EQ(made.total.frames.cut, 3u);
        EXPECT_EQ(made.result(), outcome::as_planned);
    }
}

TEST_F(Session, LeavesOutWhatTheFilterDoesAndKeepsTheTimes)
{
    std::string file = files.write("a", numbered(100, 100));
    for (bool preload : {false, true}) {
        stop = false;
        run_report made = run({.files = {file}, .feed = {.preload = preload}, .filter = "greater 110"});
        EXPECT_EQ(made.result(), outcome::as_planned);
        EXPECT_EQ(made.total.frames.sent, 50u);
        EXPECT_EQ(made.total.frames.skipped[static_cast<std::size_t>(skip_reason::filter)], 50u);
        EXPECT_EQ(made.planned_ns, 49u * 100'000);
        EXPECT_EQ(sent().frames[0].bytes, frame_of(110, 50));
    }
}

TEST_F(Session, MakesEthernetOfCookedCaptures)
{
    std::string cooked = std::string("\0\0\0\1\0\6\6\5\4\3\2\1\0\0\x08\0", 16) + frame_of(50, 'p');
    std::string file = pcap_header(false, microseconds, 113) + pcap_record(false, 1, 0, cooked);
    run_report made = run({.files = {files.write("a", file)}});
    EXPECT_EQ(made.result(), outcome::as_planned);
    EXPECT_EQ(made.converted, 1u);
    EXPECT_EQ(sent().frames.at(0).bytes, std::string("\2\0\0\0\0\2\6\5\4\3\2\1\x08\0", 14) + frame_of(50, 'p'));
}

TEST_F(Session, KnowsHowMuchOfThePlanIsDone)
{
    std::string file = files.write("a", numbered(1000, 100));
    for (feed_options feed :
         {feed_options{}, feed_options{.loops = 3}, feed_options{.loops = 0, .limit = 2000},
          feed_options{.loops = 0, .duration_ns = 200'000'000}, feed_options{.loops = 2, .preload = true}}) {
        stop = false;
        most = {};
        run({.files = {file}, .port = "null", .feed = feed});
        EXPECT_GT(most.share, 0.5) << feed.loops;
        EXPECT_LE(most.share, 1) << feed.loops;
    }
}

TEST_F(Session, KnowsHowLongTheNextFrameTakes)
{
    std::string file =
        pcap_header() + pcap_record(false, 1, 0, frame_of(60)) + pcap_record(false, 5000, 0, frame_of(60));
    stop_before_wait_ns = 60'000'000'000;
    run_report made = run({.files = {files.write("a", file)}, .port = "null"});
    EXPECT_EQ(made.total.frames.planned, 1u);
    EXPECT_GT(most.next_in_ns, 4900'000'000'000u);
}

TEST_F(Session, OfAFileWithoutFramesEnds)
{
    for (std::uint64_t loops : {1u, 0u}) {
        stop = false;
        run_report made = run({.files = {files.write("a", pcap_header())}, .port = "null", .feed = {.loops = loops}});
        EXPECT_EQ(made.total.frames.planned, 0u);
        EXPECT_EQ(made.result(), outcome::as_planned);
    }
}

TEST_F(Session, RunsWithSeveralLanes)
{
    run_report made = run({.files = {files.write("a", numbered(3000, 5))}, .lanes = 32});
    EXPECT_EQ(made.total.frames.sent, 3000u);
    expect_numbered(sent(), 3000);
}

} // namespace
} // namespace weftio::replay::test
