// Several captures as one stream.
#include <gtest/gtest.h>

#include "capture_bytes.hpp"
#include "reader/playlist.hpp"
#include "scratch.hpp"

namespace weftio::replay::test {
namespace {

/// A capture with a frame at each of `seconds`.
std::string at_seconds(std::initializer_list<std::uint32_t> seconds)
{
    std::string file = pcap_header();
    for (std::uint32_t second : seconds)
        file += pcap_record(false, second, 0, frame_of(60));
    return file;
}

class Playlist : public testing::Test {
 protected:
    /// "file:seconds" of every frame; "|" where a file begins.
    static std::string play(playlist& list)
    {
        std::string described;
        for (playlist::item item; list.next(item);)
            described += (item.begins_file ? "|" : " ") + std::to_string(item.file) + ":" +
                         std::to_string(item.captured.time_ns / 1'000'000'000);
        return described;
    }
    scratch files;
    std::vector<std::string> two{files.write("a", at_seconds({1, 4, 5})), files.write("b", at_seconds({2, 3, 6}))};
};

TEST_F(Playlist, InSequencePlaysFileAfterFile)
{
    playlist list(two, order::in_sequence);
    EXPECT_EQ(play(list), "|0:1 0:4 0:5|1:2 1:3 1:6");
}

TEST_F(Playlist, ByTimePlaysTheOldestFirst)
{
    playlist list(two, order::by_time);
    EXPECT_EQ(play(list), "|0:1 1:2 1:3 0:4 0:5 1:6");
}

TEST_F(Playlist, PlaysAgainAfterRewind)
{
    for (order by : {order::in_sequence, order::by_time}) {
        playlist list(two, by);
        std::string first = play(list);
        ASSERT_TRUE(list.rewind());
        EXPECT_EQ(play(list), first);
    }
}

TEST_F(Playlist, GoesOnBehindADamagedFileAndRemembersIt)
{
    two[0] = files.write("torn", at_seconds({1, 4}) + "torn");
    for (order by : {order::in_sequence, order::by_time}) {
        playlist list(two, by);
        std::string described = play(list);
        EXPECT_EQ(std::count(described.begin(), described.end(), ':'), 5);
        EXPECT_TRUE(list.any_damaged());
        ASSERT_TRUE(list.damaged(0));
        EXPECT_EQ(list.damaged(0)->offset, 24u + 2 * 76);
        EXPECT_FALSE(list.damaged(1));
    }
}

TEST_F(Playlist, SendsAFrameWithoutTimeWithTheOneBefore)
{
    std::string file = section() + interface_block() + packet(false, 0, 4'000'000, frame_of(60)) +
                       simple_packet(false, frame_of(60), 60);
    playlist list({two[0], files.write("simple", file)}, order::by_time);
    EXPECT_EQ(play(list), "|0:1 0:4 1:4 1:4 0:5");
}

TEST_F(Playlist, RefusesAMissingFileBeforeAnythingIsPlayed)
{
    two.push_back(files.path("none"));
    EXPECT_THROW(playlist(two, order::in_sequence), open_error);
}

} // namespace
} // namespace weftio::replay::test
