// Code that was not written for Weftio posts to rings of its own and polls completions, by mlx5's rules alone.
#include <thread>

#include "posted_ends.hpp"
#include "sanitized.hpp"

namespace weftio::test {
namespace {

class Foreign : public testing::TestWithParam<foreign_shape> {};

TEST_P(Foreign, CodeSendsWritesReadsAndReceivesThroughRingsOfItsOwn)
{
    constexpr std::uint32_t rounds = 3000;
    wired_foreign_ends ends(GetParam());
    foreign_game& game = ends.game();
    game.rounds = rounds;
    foreign_play(&game);
    ends.expect_as_simulated(rounds);
    EXPECT_EQ(ends.pair(0).counters().done, rounds);
    EXPECT_EQ(ends.pair(0).counters().failed, 0u);
}

INSTANTIATE_TEST_SUITE_P(Of, Foreign, testing::ValuesIn(foreign_shapes),
                         [](const testing::TestParamInfo<foreign_shape>& info) {
                             return std::string(info.param.name);
                         });

/// Threads in the place of blocks: three posters, and one that polls.
class ForeignCrowd : public testing::TestWithParam<std::tuple<foreign_shape, foreign_manner>> {};

TEST_P(ForeignCrowd, PostsEachEntryOnceInTheOrderOfPositions)
{
    const auto& [shape, manner] = GetParam();
#ifdef WEFTIO_TEST_SANITIZED
    constexpr std::uint32_t rounds = 3000;
#else
    const std::uint32_t rounds = shape.sq_blocks < 64 ? 3000 : 70'000; // indices of 16 bits wrap
#endif
    wired_foreign_ends ends(shape);
    foreign_game& game = ends.game();
    foreign_crowd crowd{};
    game.rounds = rounds;
    {
        std::vector<std::jthread> posters(3);
        for (std::jthread& poster : posters)
            poster = std::jthread([&, how = manner] { foreign_crowd_post(&game, &crowd, how); });
        foreign_crowd_check(&game, &crowd);
    }
    EXPECT_EQ(crowd.checked, rounds / FOREIGN_AT_ONCE * FOREIGN_AT_ONCE);
    ends.expect_as_posted(rounds);
}

INSTANTIATE_TEST_SUITE_P(Of, ForeignCrowd,
                         testing::Combine(testing::ValuesIn(foreign_crowd_shapes),
                                          testing::Values(FOREIGN_EACH_RINGS, FOREIGN_ONE_RINGS)),
                         [](const auto& info) {
                             return std::string(std::get<0>(info.param).name) +
                                    (std::get<1>(info.param) == FOREIGN_ONE_RINGS ? "_one_rings" : "_each_rings");
                         });

} // namespace
} // namespace weftio::test
