// Code that was not written for Weftio posts to rings of its own and polls completions, by mlx5's rules alone.
#include "posted_ends.hpp"

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

} // namespace
} // namespace weftio::test
