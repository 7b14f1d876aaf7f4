// The text given to an OpenCL compiler, and every device header on its own.

#include <filesystem>
#include <set>

#include "devices/opencl/discovery.hpp"
#include "devices/opencl/source.hpp"
#include "opencl_fixture.hpp"
#include "source_folder.hpp"

namespace weftio::test {
namespace {

using devices::opencl::device_headers;
using devices::opencl::embedded_header;
using devices::opencl::translation_unit;
using testing::HasSubstr;
using testing::Not;

std::filesystem::path include_folder()
{
    return source_folder() / "device/include";
}

TEST(OpenclSource, HoldsEveryHeaderOfTheDeviceLibrary)
{
    std::set<std::string> embedded, there;
    for (const embedded_header& header : device_headers())
        embedded.emplace(header.file);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(include_folder() / "weftio/device"))
        if (entry.is_regular_file() && entry.path().filename() != "cpu.h" && entry.path().filename() != "cuda.h")
            there.insert(std::filesystem::relative(entry.path(), include_folder()).string());
    EXPECT_EQ(embedded, there) << "add the missing ones to WEFTIO_DEVICE_HEADERS (lib/src/devices/opencl/source.cpp)";
}

TEST(OpenclSource, DropsIncludesOfTheLibraryAndKeepsLineNumbers)
{
    std::string unit = translation_unit(
        "#pragma once\n  #include <weftio/device/queue/send_ring.h>\n#include \"weftio/device/cqe.h\"\nlast", "k.h");
    EXPECT_THAT(unit, HasSubstr("#line 1 \"k.h\"\n\n\n\nlast\n"));
    EXPECT_THAT(unit, HasSubstr("#line 1 \"weftio/device/queue/send_ring.h\"\n"));
    EXPECT_THAT(unit, Not(HasSubstr("#include")));
    EXPECT_THAT(unit, Not(HasSubstr("#pragma once")));
}

TEST(OpenclSource, PutsEachHeaderBehindThoseItIncludes)
{
    std::set<std::string> seen{"weftio/device/platform/cpu.h", "weftio/device/platform/cuda.h"};
    for (const embedded_header& header : device_headers()) {
        for (std::size_t at = header.text.find("#include \""); at != std::string_view::npos;
             at = header.text.find("#include \"", at)) {
            at += sizeof "#include \"" - 1;
            std::string wanted(header.text.substr(at, header.text.find('"', at) - at));
            EXPECT_TRUE(seen.contains(wanted)) << header.file << " needs " << wanted;
        }
        seen.emplace(header.file);
    }
}

TEST(OpenclSource, IncludesOtherThanTheLibrarysStay)
{
    EXPECT_THAT(translation_unit("#include \"mine.h\"\n", "k.h"), HasSubstr("#include \"mine.h\""));
}

/// Each header, as its file is now, without the rest of the library in front.
class OpenclHeader : public testing::TestWithParam<embedded_header> {};

TEST_P(OpenclHeader, CompilesAloneWithoutAWarning)
{
    std::vector<devices::opencl::found_device> devices = devices::opencl::find_devices();
    if (devices.empty())
        GTEST_SKIP() << "missed: compiling " << GetParam().file << " as OpenCL C; there is no OpenCL device";
    const cl::Device& device = devices::opencl::choose(devices, -1).device;
    cl::Program program(cl::Context(device),
                        "#include \"" + std::string(GetParam().file) + "\"\n__kernel void empty(void) {}\n");
    std::string options = "-cl-std=CL3.0 -Werror -I" + include_folder().string();
    try {
        program.build(device, options.c_str());
    } catch (const cl::BuildError& failure) {
        FAIL() << failure.getBuildLog().front().second;
    }
}

INSTANTIATE_TEST_SUITE_P(Each, OpenclHeader, testing::ValuesIn(device_headers()), [](const auto& info) {
    std::string name(info.param.file);
    std::ranges::replace_if(
        name, [](char letter) { return !std::isalnum(static_cast<unsigned char>(letter)); }, '_');
    return name;
});

} // namespace
} // namespace weftio::test
