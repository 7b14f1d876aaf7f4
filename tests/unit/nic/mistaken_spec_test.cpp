// Words that are no port, but something else that one knows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weftio/device.hpp"
#include "weftio/error.hpp"
#include "weftio/port.hpp"

namespace weftio::test {
namespace {

using testing::HasSubstr;

template <class Call>
std::string refusal(Call call)
{
    try {
        call();
    } catch (const error& refused) {
        return refused.what();
    }
    return "was not refused";
}

class PortWord : public testing::TestWithParam<const char*> {};

TEST_P(PortWord, ThatNamesADeviceIsToldToBeOne)
{
    EXPECT_THAT(refusal([] { port::open(GetParam()); }), HasSubstr("this is a device; pass it to device::open"));
}
INSTANTIATE_TEST_SUITE_P(Form, PortWord, testing::Values("cpu", "opencl", "opencl:1", "cuda:0"));

class DeviceWord : public testing::TestWithParam<const char*> {};

TEST_P(DeviceWord, ThatNamesAPortIsToldToBeOne)
{
    EXPECT_THAT(refusal([] { device::open(GetParam()); }), HasSubstr("this is a port; pass it to port::open"));
}
INSTANTIATE_TEST_SUITE_P(Form, DeviceWord,
                         testing::Values("iface:eth0", "pcap:builtin", "tap:x", "loopback", "null",
                                         "net_null0,size=64"));

TEST(PlainWord, ThatIsAnInterfaceIsAskedFor)
{
    EXPECT_THAT(refusal([] { port::open("lo"); }),
                HasSubstr("weftio: port lo: this is an interface; did you mean iface:lo?"));
}

TEST(PlainWord, ThatIsNothingIsRefusedWithTheInterfacesThereAre)
{
    EXPECT_THAT(refusal([] { port::open("weftio7"); }), HasSubstr("neither a port nor an interface (have: lo"));
}

} // namespace
} // namespace weftio::test
