// Code that was not written for Weftio posts and polls by mlx5's rules on a GPU: the cases of
// unit/rdma/foreign_test.cpp.
#include "foreign_code.hpp"

#include <fmt/format.h>

#include "fixture.hpp"
#include "unit/rdma/posted_ends.hpp"

namespace weftio::test {

namespace {

class GpuForeign : public testing::WithParamInterface<foreign_shape>, public gpu_fixture {};

/// Lanes of each of the 64 blocks.
class GpuForeignCrowd : public testing::WithParamInterface<std::tuple<foreign_shape, foreign_manner, unsigned>>,
                        public gpu_fixture {};

} // namespace

TEST_P(GpuForeign, CodeSendsWritesReadsAndReceivesThroughRingsOfItsOwn)
{
    constexpr std::uint32_t rounds = 2000;
    wired_foreign_ends ends(GetParam(), gpu_spec());
    ends.game().rounds = rounds;
    ASSERT_TRUE(foreign_code_plays(ends.game_on_device()));
    ends.expect_as_simulated(rounds);
    EXPECT_EQ(ends.pair(0).counters().done, rounds);
}

INSTANTIATE_TEST_SUITE_P(Of, GpuForeign, testing::ValuesIn(foreign_shapes),
                         [](const testing::TestParamInfo<foreign_shape>& info) {
                             return std::string(info.param.name);
                         });

TEST_P(GpuForeignCrowd, PostsEachEntryOnceInTheOrderOfPositions)
{
    constexpr std::uint32_t rounds = 10'000;
    const auto [shape, manner, lanes] = GetParam();
    wired_foreign_ends ends(shape, gpu_spec());
    ends.game().rounds = rounds;
    ASSERT_TRUE(foreign_crowd_plays(ends.game_on_device(), {.count = 64, .lanes = lanes}, manner));
    ends.expect_as_posted(rounds);
}

INSTANTIATE_TEST_SUITE_P(Of, GpuForeignCrowd,
                         testing::Combine(testing::ValuesIn(foreign_crowd_shapes),
                                          testing::Values(FOREIGN_EACH_RINGS, FOREIGN_ONE_RINGS),
                                          testing::Values(1u, 32u)),
                         [](const auto& info) {
                             return fmt::format("{}_{}_rings_{}_lanes", std::get<0>(info.param).name,
                                                std::get<1>(info.param) == FOREIGN_ONE_RINGS ? "one" : "each",
                                                std::get<2>(info.param));
                         });

} // namespace weftio::test
