// PoCL without a folder for its cache: what is said is what is wrong. Root may write everywhere, so the folder lies in
// a file.
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "devices/opencl/canary.hpp"
#include "opencl_fixture.hpp"

namespace weftio::test {
namespace {

using namespace devices::opencl;

void open_without_a_cache()
{
    setenv("POCL_CACHE_DIR", "/dev/null/cache", 1);
    auto [code, text] = refusal_of([] { devices::open_opencl(-1); });
    std::cerr << text;
    std::exit(code == errc::permission_denied ? 0 : 1);
}

TEST(OpenclCacheDeathTest, ThatCannotBeWrittenIsNamedWhenPoclHasNoDevice)
{
    if (!std::filesystem::exists("/etc/OpenCL/vendors/pocl.icd")) // asked without OpenCL, which would make the devices
        GTEST_SKIP() << "missed: PoCL without its cache; pocl-opencl-icd is not installed";
    testing::FLAGS_gtest_death_test_style = "threadsafe"; // the child asks for platforms for the first time
    EXPECT_EXIT(open_without_a_cache(), testing::ExitedWithCode(0),
                "cannot write its cache /dev/null/cache .Not a directory.");
}

/// In a process of its own: a folder with room for a page or so. False where such cannot be made.
bool make_full_folder(const std::string& folder)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount("none", folder.c_str(), "tmpfs", 0, "size=16k") == 0;
}

[[noreturn]] void give_up()
{
    std::cerr << "cannot be tried here";
    std::exit(0);
}

/// Ends with 0 when the driver was not judged and nothing is kept.
void judge_without_room(const std::string& folder, bool limited)
{
    const std::filesystem::path full = folder + "/full", kept = folder + "/kept";
    std::filesystem::create_directory(full);
    setenv("XDG_CACHE_HOME", kept.c_str(), 1);
    setenv("POCL_CACHE_DIR", full.c_str(), 1);
    if (!limited && !make_full_folder(full))
        give_up();
    const std::vector<found_device> devices = find_devices();
    const rlimit limit{4096, RLIM_INFINITY};
    if (devices.empty() || (limited && setrlimit(RLIMIT_FSIZE, &limit) != 0))
        give_up();
    auto [code, text] = refusal_of([&] { choose_build(devices.front(), 0); });
    std::cerr << text;
    std::exit(code == errc::device_error && !std::filesystem::exists(kept) ? 0 : 1);
}

void expect_no_verdict(bool limited, const char* words)
{
    if (!std::filesystem::exists("/etc/OpenCL/vendors/pocl.icd"))
        GTEST_SKIP() << "missed: PoCL without room for files; pocl-opencl-icd is not installed";
    std::string folder = std::filesystem::temp_directory_path() / "weftio-room-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    testing::FLAGS_gtest_death_test_style = "threadsafe"; // the child asks for platforms for the first time
    EXPECT_EXIT(judge_without_room(folder, limited), testing::ExitedWithCode(0), words);
    std::filesystem::remove_all(folder);
}

TEST(OpenclCacheDeathTest, OnAFullDiskIsNoVerdictOnTheDriver)
{
    expect_no_verdict(false, "No space left on device|cannot be tried here");
}

TEST(OpenclCacheDeathTest, OfABoundedProcessIsNoVerdictOnTheDriver)
{
    expect_no_verdict(true, "files are limited to 4096 bytes|cannot be tried here");
}

} // namespace
} // namespace weftio::test
