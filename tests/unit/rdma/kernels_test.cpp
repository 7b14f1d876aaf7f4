// Kernels on each device that use queue pairs.
#include "kernel_cases.hpp"

namespace weftio::test {

namespace {

class RdmaKernels : public testing::TestWithParam<std::tuple<const char*, bool>> {
 protected:
    kernel_cases ends{std::get<1>(GetParam()), std::get<0>(GetParam())};
};

} // namespace

TEST_P(RdmaKernels, DoEverythingToMemoryAsAModelDoes)
{
    ends.do_everything();
}

TEST_P(RdmaKernels, WriteFromManyLanesOfSeveralBlocks)
{
    ends.write_from_many_lanes();
}

TEST_P(RdmaKernels, SeeAllBytesInFrontOfASignal)
{
    ends.play_ping_pong();
}

TEST_P(RdmaKernels, LendMemoryAndGetItBack)
{
    ends.lend_and_return();
}

TEST_P(RdmaKernels, EndWhenTheHostWants)
{
    ends.end_when_the_host_wants();
}

INSTANTIATE_TEST_SUITE_P(On, RdmaKernels, testing::Combine(testing::Values("cpu", "opencl"), testing::Bool()),
                         [](const auto& info) {
                             return std::string(std::get<0>(info.param)) +
                                    (std::get<1>(info.param) ? "OnePort" : "TwoPorts");
                         });

TEST(RdmaInlineKernels, DriveTheEngineOfTheirPort)
{
    public_pair ends(places_of_ends[0]);
    ends.connect();
    const buf_arr pieces(ends.memory(0).region, ends.where, {.count = 64, .buffer_bytes = 1000, .stride_bytes = 1000});
    const shared_words said(ends.where, 2);
    running_kernel kernel =
        ends.where.launch(rdma_writes_pieces_kernel, {}, ends.queue(0),
                          remote_region::of(ends.memory(1).region).on_device(), pieces, said.on_device());
    ASSERT_TRUE(kernel.wait_for(patience));
    EXPECT_EQ(said[0], 0u);
    EXPECT_EQ(std::memcmp(ends.memory(0).data(), ends.memory(1).data(), 64000), 0);
}

} // namespace weftio::test
