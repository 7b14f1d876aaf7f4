// What the canary says of this machine's driver, and that the canary itself is right.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "devices/opencl/canary.hpp"
#include "devices/opencl/canary_kernels.h"
#include "opencl_fixture.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(canary_continue, "devices/opencl/canary_kernels.h");
WEFTIO_DEFINE_KERNEL(canary_branch, "devices/opencl/canary_kernels.h");
WEFTIO_DEFINE_KERNEL(canary_leave, "devices/opencl/canary_kernels.h");
WEFTIO_DEFINE_KERNEL(canary_nested, "devices/opencl/canary_kernels.h");
WEFTIO_DEFINE_KERNEL(canary_calls, "devices/opencl/canary_kernels.h");
WEFTIO_DEFINE_KERNEL(canary_count, "devices/opencl/canary_kernels.h");

namespace weftio::test {
namespace {

using namespace devices::opencl;

/// As digest() of canary_main.c, which the child process runs.
std::uint32_t digest_of(const std::uint32_t* words)
{
    std::uint32_t sum = 0;
    for (std::size_t at = 0; at < sizeof(canary_world) / sizeof(*words); ++at)
        sum = sum * 31u + words[at];
    return sum;
}

/// What each kernel leaves when run by the device that says what is right.
std::vector<canary_kernel> on(const char* spec)
{
    device where = device::open(spec);
    memory world = where.allocate(sizeof(canary_world), memory_kind::cpu_device);
    auto* words = static_cast<std::uint32_t*>(world.cpu_address());
    std::vector<canary_kernel> found;
    for (const auto* each : {&canary_continue_kernel, &canary_branch_kernel, &canary_leave_kernel,
                             &canary_nested_kernel, &canary_calls_kernel, &canary_count_kernel}) {
        std::memset(words, 0, sizeof(canary_world));
        words[0] = canary_state;
        running_kernel running = where.launch(*each, {.blocks = 1, .lanes = CANARY_LANES},
                                              static_cast<canary_world*>(world.device_address()));
        EXPECT_TRUE(running.wait_for(patience)) << each->name;
        EXPECT_GT(words[2], 4u) << "lane 0 had something to do in " << each->name;
        found.push_back({each->name, digest_of(words)});
    }
    return found;
}

TEST(OpenclCanary, WantsWhatTheCpuDeviceLeaves)
{
    std::vector<canary_kernel> found = on("cpu");
    ASSERT_EQ(found.size(), canary_kernels().size());
    for (std::size_t at = 0; at < found.size(); ++at) {
        EXPECT_STREQ(canary_kernels()[at].name, found[at].name);
        EXPECT_EQ(canary_kernels()[at].digest, found[at].digest) << found[at].name;
    }
}

/// The value of the variable that PoCL would see, and how often it is there.
std::string method_tried_with(build_method method)
{
    std::string found;
    for (const std::string& each : canary_environment(method))
        if (each.starts_with(std::string(method_variable) + "="))
            found += each.substr(each.find('=') + 1) + ";";
    return found;
}

/// Ends the process, so that no other test sees what it sets.
void try_environments()
{
    unsetenv(method_variable);
    bool right = method_tried_with(build_method::plain).empty();
    setenv(method_variable, "loopvec", 1);
    right &= method_tried_with(build_method::plain) == "loopvec;" && method_of_user() == "loopvec";
    unsetenv(method_variable);
    right &= set_cbs() && method_of_user().empty() && std::string(getenv(method_variable)) == "cbs";
    right &= method_tried_with(build_method::plain).empty() && method_tried_with(build_method::unoptimized).empty();
    right &= method_tried_with(build_method::cbs) == "cbs;";
    setenv(method_variable, "loopvec", 1); // the user's again
    right &= method_of_user() == "loopvec";
    std::exit(right ? 0 : 1);
}

TEST(OpenclCanaryDeathTest, IsTriedWithWhatTheUserHasSetAndNotWithWhatTheLibraryHas)
{
    EXPECT_EXIT(try_environments(), testing::ExitedWithCode(0), "");
}

class OpenclBuild : public opencl_fixture {};

TEST_F(OpenclBuild, RunsTheCanaryRight)
{
    std::vector<canary_kernel> found = on("opencl");
    for (std::size_t at = 0; at < found.size(); ++at)
        EXPECT_EQ(canary_kernels()[at].digest, found[at].digest) << found[at].name;
}

TEST(OpenclBuildOf, Pocl3And6CannotBePlain)
{
    const std::vector<found_device> devices = find_devices();
    if (devices.empty())
        GTEST_SKIP() << "missed: a driver that is known to be wrong; there is none";
    const found_device& chosen = choose(devices, -1);
    const std::string version = chosen.device.getInfo<CL_DRIVER_VERSION>();
    if (!chosen.facts.pocl || !(version.starts_with("3.1") || version.starts_with("6.0")))
        GTEST_SKIP() << "missed: a driver that is known to be wrong; this is " << version;
    if (!method_of_user().empty())
        GTEST_SKIP() << "missed: the driver as it is; " << method_variable << " is set";
    const auto index = static_cast<unsigned>(&chosen - devices.data());
    choose_build(chosen, index);
    EXPECT_FALSE(runs_canary(index, build_method::plain)) << "what was chosen is not to be inherited";
    EXPECT_EQ(choose_build(chosen, index), version.starts_with("3.1") ? build_method::unoptimized : build_method::cbs);
}

} // namespace
} // namespace weftio::test
