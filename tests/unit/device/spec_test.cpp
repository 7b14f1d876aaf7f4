// Which device a spec names.
#include <gmock/gmock.h>

#include "core/log.hpp"
#include "fixture.hpp"
#include "weftio/log.hpp"

namespace weftio::test {

namespace {

TEST(DeviceSpec, CpuOpens)
{
    EXPECT_EQ(device::open("cpu").name(), "cpu");
}

TEST(DeviceSpec, CopiesNameTheSameDevice)
{
    device first = device::open("cpu");
    device second = first; // NOLINT: the copy is the point
    EXPECT_EQ(&detail::internals::backend(first), &detail::internals::backend(second));
}

class UnknownSpec : public testing::TestWithParam<const char*> {};

TEST_P(UnknownSpec, IsRefusedWithTheFormsThereAre)
{
    error refused = error_of([] { device::open(GetParam()); });
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    EXPECT_THAT(refused.what(), testing::HasSubstr("cpu, opencl, opencl:N, cuda:N or a PCI address"));
    EXPECT_THAT(refused.what(), testing::HasSubstr(*GetParam() ? GetParam() : "\"\""));
}
INSTANTIATE_TEST_SUITE_P(Form, UnknownSpec,
                         testing::Values("", "CPU", "cpu:0", "opencl:", "opencl:x", "opencl:-1", "opencl:1x",
                                         "opencl:99999999999", "cuda", "cuda:", "cuda:-1", "3b:00", "3b:00.9",
                                         "0000:3b:00.0,x"));

TEST(DeviceSpec, WithAZeroByteIsRefused)
{
    error refused = error_of([] { device::open(std::string_view("cpu\0x", 5)); });
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    EXPECT_THAT(refused.what(), testing::HasSubstr("byte 3 of the spec is 0; write cpu"));
}

TEST(DeviceSpec, ShowsItsControlCharacters)
{
    for (const char* spec : {"c\npu", "opencl:\n", "net_\n"}) {
        const std::string text = error_of([spec] { device::open(spec); }).what();
        EXPECT_EQ(text.find('\n'), text.npos) << text;
        EXPECT_THAT(text, testing::HasSubstr("\\n"));
    }
}

TEST(Error, KeepsTheLinesOfATool)
{
    const error both(errc::device_error, "a\tb\x7f", "line 1\n\tline 2\x1b");
    EXPECT_STREQ(both.what(), "a\\tb\\x7f\nline 1\n\tline 2\\x1b");
    EXPECT_STREQ(error(errc::device_error, "\xc3\xa9").what(), "\xc3\xa9") << "UTF-8 stays";
}

TEST(LogLines, ShowTheirControlCharacters)
{
    std::string seen;
    set_log_sink([&](log_level, std::string_view line) { seen = line; });
    core::log(log_level::error, "a\x1b[31mb\n\tc");
    set_log_sink({});
    EXPECT_EQ(seen, "a\\x1b[31mb\n\tc");
}

class CudaSpec : public testing::TestWithParam<const char*> {};

TEST_P(CudaSpec, OpensOrSaysWhatIsMissing)
{
    try {
        EXPECT_FALSE(device::open(GetParam()).name().empty());
    } catch (const error& refused) {
        EXPECT_THAT(refused.code(), testing::AnyOf(errc::not_found, errc::not_supported));
        EXPECT_THAT(refused.what(),
                    testing::AnyOf(testing::HasSubstr(GetParam()), testing::HasSubstr("no NVIDIA driver")));
    }
}
INSTANTIATE_TEST_SUITE_P(Form, CudaSpec, testing::Values("cuda:0", "cuda:12", "3b:00.0", "0000:3B:00.1"));

TEST(MemoryKind, HasAName)
{
    EXPECT_STREQ(to_string(memory_kind::device), "device");
    EXPECT_STREQ(to_string(memory_kind::device_cpu), "device_cpu");
    EXPECT_STREQ(to_string(memory_kind::cpu_device), "cpu_device");
}

} // namespace

} // namespace weftio::test
