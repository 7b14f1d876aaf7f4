// PoCL without a folder for its cache: what is said is what is wrong. Root may write everywhere, so the folder lies in
// a file.
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "opencl_fixture.hpp"

namespace weftio::test {
namespace {

void open_without_a_cache()
{
    setenv("POCL_CACHE_DIR", "/dev/null/cache", 1);
    auto [code, text] = refusal_of([] { detail::open_opencl(-1); });
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

} // namespace
} // namespace weftio::test
