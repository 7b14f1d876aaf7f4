// Which OpenCL devices are taken, and what the others are told. No device is needed.

#include <cstdlib>
#include <iostream>

#include "devices/opencl/discovery.hpp"
#include "opencl_fixture.hpp"

namespace weftio::test {
namespace {

using devices::opencl::choose;
using devices::opencl::device_facts;
using devices::opencl::found_device;
using devices::opencl::lacking;
using testing::HasSubstr;

device_facts usable(const char* name)
{
    return {.name = name,
            .available = true,
            .compiler = true,
            .opencl_c_3 = true,
            .pocl = false,
            .svm = CL_DEVICE_SVM_COARSE_GRAIN_BUFFER | CL_DEVICE_SVM_FINE_GRAIN_BUFFER | CL_DEVICE_SVM_ATOMICS,
            .atomics = CL_DEVICE_ATOMIC_ORDER_ACQ_REL | CL_DEVICE_ATOMIC_SCOPE_DEVICE,
            .compute_units = 4,
            .max_lanes = 256,
            .max_bytes = 1 << 20,
            .deadly_lanes = 0};
}

device_facts coarse(const char* name)
{
    device_facts facts = usable(name);
    facts.svm = CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
    return facts;
}

TEST(OpenclDiscovery, NamesEachThingThatADeviceLacks)
{
    EXPECT_EQ(lacking(usable("good")), "");
    EXPECT_EQ(lacking(coarse("coarse")), "fine-grained buffer SVM, SVM atomics");

    device_facts facts = usable("old");
    facts.opencl_c_3 = false;
    EXPECT_EQ(lacking(facts), "OpenCL C 3.0");
    facts = usable("weak");
    facts.atomics = CL_DEVICE_ATOMIC_ORDER_RELAXED;
    EXPECT_THAT(lacking(facts), HasSubstr("acquire-release atomics"));
    facts = usable("embedded");
    facts.compiler = false;
    EXPECT_EQ(lacking(facts), "a compiler");
    facts = usable("lost");
    facts.available = false;
    EXPECT_THAT(lacking(facts), HasSubstr("availability"));
}

TEST(OpenclDiscovery, TakesTheFirstUsableDeviceWhenNoneIsNamed)
{
    std::vector<found_device> devices{{{}, coarse("big GPU")}, {{}, usable("processor")}, {{}, usable("other")}};
    EXPECT_EQ(choose(devices, -1).facts.name, "processor");
    EXPECT_EQ(choose(devices, 2).facts.name, "other");
}

TEST(OpenclDiscovery, RefusesANamedDeviceThatLacksSomethingByNameAndLack)
{
    std::vector<found_device> devices{{{}, coarse("big GPU")}};
    auto [code, text] = refusal_of([&] { choose(devices, 0); });
    EXPECT_EQ(code, errc::not_supported);
    EXPECT_THAT(text, testing::AllOf(HasSubstr("big GPU"), HasSubstr("lacks fine-grained buffer SVM")));
}

TEST(OpenclDiscovery, SaysWhyEachDeviceWasRefusedWhenNoneIsUsable)
{
    std::vector<found_device> devices{{{}, coarse("big GPU")}, {{}, coarse("small GPU")}};
    auto [code, text] = refusal_of([&] { choose(devices, -1); });
    EXPECT_EQ(code, errc::not_supported);
    EXPECT_THAT(text, testing::AllOf(HasSubstr("big GPU"), HasSubstr("small GPU"), HasSubstr("pocl-opencl-icd")));
}

TEST(OpenclDiscovery, ListsTheDevicesWhenTheIndexIsTooLarge)
{
    std::vector<found_device> devices{{{}, usable("first")}, {{}, usable("second")}};
    auto [code, text] = refusal_of([&] { choose(devices, 2); });
    EXPECT_EQ(code, errc::not_found);
    EXPECT_THAT(text, testing::AllOf(HasSubstr("opencl:2: no such device, there are 2"),
                                     HasSubstr("opencl:0 \"first\""), HasSubstr("opencl:1 \"second\"")));
}

TEST(OpenclDiscoveryDeathTest, NamesThePackageToInstallWhenThereIsNoPlatform)
{
    testing::FLAGS_gtest_death_test_style = "threadsafe"; // the child asks for platforms for the first time
    auto open_without_drivers = [] {
        setenv("OCL_ICD_VENDORS", "/nonexistent", 1);
        auto [code, text] = refusal_of([] { devices::open_opencl(-1); });
        std::cerr << text;
        std::exit(code == errc::not_found ? 0 : 1);
    };
    EXPECT_EXIT(open_without_drivers(), testing::ExitedWithCode(0), "apt-get install pocl-opencl-icd");
}

} // namespace
} // namespace weftio::test
