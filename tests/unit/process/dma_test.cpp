// Programs that end, or fork, while a DMA engine copies for a kernel.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "kernels.h"
#include "scene.hpp"
#include "stage.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(copies_for_ever, "kernels.h");

namespace {

using weftio::test::ends_well, weftio::test::eventually, weftio::test::scene, weftio::test::scene_argument;

constexpr int times = 5;

/// An engine, in the mode that the scene's argument says, a queue, and a kernel that has memory copied.
struct copying {
    copying()
        : engine(
              {.mode = scene_argument() == "inline" ? weftio::engine_mode::inline_worker : weftio::engine_mode::thread})
    {}

    bool goes_on() const
    {
        const std::uint64_t before = queue.counters().copied;
        return eventually([&] { return queue.counters().copied > before + 100; });
    }

    weftio::device device = weftio::device::open("cpu");
    weftio::dma_engine engine;
    weftio::dma_queue queue{engine, device};
    weftio::buf_arr buffers{engine, device, {.count = 2, .buffer_bytes = 4096}};
    weftio::running_kernel copies = device.launch(copies_for_ever_kernel, {}, queue, buffers);
};

std::unique_ptr<copying> kept;

const scene copies_in_a_global("copies_in_a_global", [] {
    kept = std::make_unique<copying>();
    return kept->goes_on() ? 3 : 1;
});

const scene exit_while_copying("exit_while_copying", [] {
    copying all;
    if (all.goes_on())
        std::exit(3);
    return 1;
});

const scene forks_while_copying("forks_while_copying", [] {
    kept = std::make_unique<copying>();
    if (!kept->goes_on())
        return 1;
    const pid_t child = fork();
    if (child == 0) {
        kept.reset();
        std::exit(5); // with static destructors
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 5 && kept->goes_on() ? 3 : 4;
});

class DmaProcess : public testing::TestWithParam<const char*> {};

TEST_P(DmaProcess, EndsWithACopyingKernelInAGlobal)
{
    ends_well("copies_in_a_global", GetParam(), 3, times);
}

TEST_P(DmaProcess, EndsByExitInMain)
{
    ends_well("exit_while_copying", GetParam(), 3, times);
}

TEST_P(DmaProcess, ForksAChildThatEndsWhatItHas)
{
    ends_well("forks_while_copying", GetParam(), 3, times);
}

INSTANTIATE_TEST_SUITE_P(In, DmaProcess, testing::Values("thread", "inline"),
                         [](const auto& info) { return std::string(info.param); });

} // namespace
