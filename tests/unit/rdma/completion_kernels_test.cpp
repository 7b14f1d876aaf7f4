// Kernels on each device that poll completion queues.
#include <gmock/gmock.h>

#include "completion_kernels.h"
#include "posted_ends.hpp"

WEFTIO_DEFINE_KERNEL(completions_take, "completion_kernels.h");
WEFTIO_DEFINE_KERNEL(completions_try_bounds, "completion_kernels.h");

namespace weftio::test {

namespace {

class CompletionKernels : public testing::TestWithParam<const char*> {
 protected:
    CompletionKernels() { ends.connect(); }
    /// OpenCL has no warps: there one is a lane.
    static unsigned warp_lanes() { return GetParam() == std::string("opencl") ? 1 : 4; }
    void write(unsigned count)
    {
        for (unsigned each = 0; each < count; ++each)
            ends.write(0, 100);
    }

    verbs_ends ends{
        {.one_port = true, .completions = {.entries = 8}, .mode = engine_mode::thread, .device_spec = GetParam()}};
};

} // namespace

TEST_P(CompletionKernels, TakeEverythingInEachScope)
{
    constexpr unsigned wanted = 60;
    for (const auto& [scope, lanes, most] : {std::array<unsigned, 3>{WEFTIO_DEV_SCOPE_THREAD, 1, 0},
                                             {WEFTIO_DEV_SCOPE_THREAD, 1, 3},
                                             {WEFTIO_DEV_SCOPE_WARP, warp_lanes(), 0},
                                             {WEFTIO_DEV_SCOPE_BLOCK, 32, 0},
                                             {WEFTIO_DEV_SCOPE_BLOCK, 5, 2}}) {
        SCOPED_TRACE(testing::Message() << "scope " << scope << " lanes " << lanes << " most " << most);
        ends.completions[0].emplace(ends.at(0), ends.cpu, completion_queue_options{.entries = 8});
        ends.pairs[0].emplace(*ends.devices[0], ends.cpu, *ends.completions[0], *ends.completions[0]);
        ends.pair(1).reset();
        ends.connect();
        write(wanted);
        const shared_words said(ends.cpu, 4);
        running_kernel kernel = ends.cpu.launch(completions_take_kernel, {1, lanes}, *ends.completions[0], scope, most,
                                                wanted, said.on_device());
        ASSERT_TRUE(kernel.wait_for(patience));
        EXPECT_EQ(said[0], wanted);
        EXPECT_EQ(said[1], 0u);
        EXPECT_EQ(said[2], static_cast<weftio_u32>(WEFTIO_DEV_OK));
        EXPECT_LE(said[3], most == 0 ? 8 : most);
    }
}

TEST_P(CompletionKernels, EndAtTheirBoundsAndWhenTheHostWants)
{
    write(5);
    ASSERT_TRUE(eventually([&] { return ends.pair(0)->counters().done == 5; }));
    const shared_words said(ends.cpu, 16);
    running_kernel kernel = ends.cpu.launch(completions_try_bounds_kernel, {}, *ends.completions[0], said.on_device());
    EXPECT_TRUE(eventually([&] { return said[12] == 0 && said[11] != 0; }));
    EXPECT_FALSE(kernel.wait_for(std::chrono::milliseconds(20)));
    EXPECT_THAT(kernel.dump(), testing::HasSubstr("completion_queue"));
    kernel.stop();
    ASSERT_TRUE(kernel.wait_for(patience));
    const auto wrong = static_cast<weftio_u32>(WEFTIO_DEV_INVALID_ARGUMENT),
               late = static_cast<weftio_u32>(WEFTIO_DEV_TIMEOUT);
    EXPECT_THAT(said.all(),
                testing::ElementsAre(wrong, 0u, 2u, wrong, static_cast<weftio_u32>(WEFTIO_DEV_OUT_OF_ORDER), 0u, 0u, 3u,
                                     2u, late, 0u, late, 0u, static_cast<weftio_u32>(WEFTIO_DEV_ABORTED), 0u, 1u));
}

INSTANTIATE_TEST_SUITE_P(On, CompletionKernels, testing::Values("cpu", "opencl"),
                         [](const auto& info) { return std::string(info.param); });

TEST(CompletionInlineKernels, DriveTheEngineOfTheirPort)
{
    verbs_ends ends({.one_port = true, .completions = {.entries = 8}});
    ends.connect();
    for (unsigned each = 0; each < 60; ++each)
        ends.write(0, 100);
    const shared_words said(ends.cpu, 4);
    running_kernel kernel = ends.cpu.launch(completions_take_kernel, {1, 4}, *ends.completions[0],
                                            unsigned{WEFTIO_DEV_SCOPE_BLOCK}, 0u, 60u, said.on_device());
    ASSERT_TRUE(kernel.wait_for(patience));
    EXPECT_EQ(said[0], 60u);
    EXPECT_EQ(said[1], 0u);
}

} // namespace weftio::test
