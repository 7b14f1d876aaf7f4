// Code that was not written for Weftio posts and polls by mlx5's rules on a GPU: the cases of
// unit/rdma/foreign_test.cpp.
#include "foreign_code.hpp"

#include "fixture.hpp"
#include "unit/rdma/posted_ends.hpp"

namespace weftio::test {

namespace {

class GpuForeign : public testing::WithParamInterface<foreign_shape>, public gpu_fixture {};

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

} // namespace weftio::test
