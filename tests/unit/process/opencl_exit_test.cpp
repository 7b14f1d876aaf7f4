// Programs that end as soon as a kernel has been launched on OpenCL, whose compiler has never seen it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "kernels.h"
#include "sanitized.hpp"
#include "scene.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(receives_for_ever, "kernels.h");

namespace {

using weftio::test::ending, weftio::test::play, weftio::test::scene, weftio::test::scene_argument;

/// What a kernel receives with, and the kernel, on PoCL with an empty cache.
struct opencl_stage {
    opencl_stage()
    {
        setenv("POCL_CACHE_DIR", scene_argument().c_str(), 1); // before PoCL looks
        device = weftio::device::open("opencl");
        port = weftio::port::open("null");
        in.emplace(*port, *device, weftio::eth_rxq_options{.packets = 64});
        words = device->allocate(64, weftio::memory_kind::cpu_device);
    }
    void launch()
    {
        receives =
            device->launch(receives_for_ever_kernel, {}, *in, static_cast<std::uint32_t*>(words.device_address()));
    }

    std::optional<weftio::device> device;
    std::optional<weftio::port> port;
    std::optional<weftio::eth_rxq> in;
    weftio::memory words;
    weftio::running_kernel receives;
};

std::optional<opencl_stage> kept_on_opencl; // made before, and destroyed behind, whatever the driver makes

const scene a_new_kernel_in_a_global("a_new_kernel_in_a_global", [] {
    kept_on_opencl.emplace();
    kept_on_opencl->launch();
    return 3;
});

const scene exit_behind_a_launch("exit_behind_a_launch", [] {
    opencl_stage all;
    all.launch();
    std::exit(3);
    return 1;
});

/// Plays a scene with an empty cache.
ending play_anew(const std::string& name)
{
    std::string folder = (std::filesystem::temp_directory_path() / "weftio-cache-XXXXXX").string();
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    ending seen = play(name, folder);
    std::filesystem::remove_all(folder);
    return seen;
}

class OpenclEnd : public testing::Test {
 protected:
    void SetUp() override
    try {
#ifdef WEFTIO_TEST_SANITIZED
        GTEST_SKIP() << "missed: ending programs with kernels on OpenCL; what PoCL compiles there is a leak";
#endif
        weftio::device::open("opencl");
    } catch (const weftio::error& refused) {
        GTEST_SKIP() << "missed: ending programs with kernels on OpenCL; " << refused.what();
    }
};

TEST_F(OpenclEnd, WithAKernelThatWasJustLaunchedInAGlobal)
{
    const ending seen = play_anew("a_new_kernel_in_a_global");
    EXPECT_EQ(seen.exit_status, 3) << seen.text();
}

TEST_F(OpenclEnd, ByExitBehindALaunch)
{
    const ending seen = play_anew("exit_behind_a_launch");
    EXPECT_EQ(seen.exit_status, 3) << seen.text();
}

} // namespace
