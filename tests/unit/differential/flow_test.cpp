// Random programs full of conditional barriers, early continue, break and return, nested loops and calls: one lane of
// the CPU says what is right. WEFTIO_FLOW_SEED at configure time makes others.
#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "flow_programs.h"
#include "unit/device/fixture.hpp"
#include "weftio/kernel.hpp"

#define FLOW_PROGRAM(AT) WEFTIO_DEFINE_KERNEL(flow_##AT, "flow_programs.h")
FLOW_PROGRAM(0);
FLOW_PROGRAM(1);
FLOW_PROGRAM(2);
FLOW_PROGRAM(3);
FLOW_PROGRAM(4);
FLOW_PROGRAM(5);
FLOW_PROGRAM(6);
FLOW_PROGRAM(7);
FLOW_PROGRAM(8);
FLOW_PROGRAM(9);
FLOW_PROGRAM(10);
FLOW_PROGRAM(11);

namespace weftio::test {
namespace {

using program = kernel<flow_world*>;
const program* const programs[] = {&flow_0_kernel, &flow_1_kernel, &flow_2_kernel,  &flow_3_kernel,
                                   &flow_4_kernel, &flow_5_kernel, &flow_6_kernel,  &flow_7_kernel,
                                   &flow_8_kernel, &flow_9_kernel, &flow_10_kernel, &flow_11_kernel};

/// A world in memory of a device.
class flow_device {
 public:
    explicit flow_device(const char* spec)
        : device_(device::open(spec)), memory_(device_.allocate(sizeof(flow_world), memory_kind::cpu_device))
    {}

    const flow_world& run(const program& which, std::uint32_t state, std::uint32_t lanes)
    {
        auto& world = *static_cast<flow_world*>(memory_.cpu_address());
        std::memset(&world, 0, sizeof world);
        world.state = state;
        running_kernel running =
            device_.launch(which, {.blocks = 1, .lanes = lanes}, static_cast<flow_world*>(memory_.device_address()));
        EXPECT_TRUE(running.wait_for(patience)) << which.name;
        return world;
    }

 private:
    device device_;
    memory memory_;
};

/// Every lane of a right outcome has the sum that the only one of `wanted` has.
void expect_same(const flow_world& wanted, const flow_world& got, std::uint32_t lanes)
{
    EXPECT_EQ(got.finished, lanes);
    EXPECT_EQ(got.count, wanted.count);
    EXPECT_TRUE(std::ranges::equal(got.trace, wanted.trace)) << "lane 0 ran other parts";
    EXPECT_TRUE(std::ranges::equal(got.stride, wanted.stride));
    for (std::uint32_t lane = 0; lane < lanes; ++lane)
        EXPECT_EQ(got.sum[lane], wanted.sum[0]) << "lane " << lane;
}

struct flow_case {
    const char* device;
    std::uint32_t lanes;
};

class Flow : public testing::TestWithParam<flow_case> {};

TEST_P(Flow, WithConditionalBarriersIsThatOfOneLaneOfTheCpu)
{
    const auto [spec, lanes] = GetParam();
    std::optional<flow_device> other;
    try {
        other.emplace(spec);
    } catch (const error& refused) {
        GTEST_SKIP() << "missed: programs with conditional barriers on " << spec << "; " << refused.what();
    }
    flow_device one("cpu");
    std::uint32_t parts = 0;
    for (const program* each : programs)
        for (std::uint32_t state = 1; state < 0xffff0000u; state += 0x0a3d70a3) {
            const flow_world wanted = one.run(*each, state, 1);
            expect_same(wanted, other->run(*each, state, lanes), lanes);
            ASSERT_FALSE(HasFailure()) << each->name << ", state " << state;
            parts += wanted.count;
        }
    EXPECT_GT(parts, 100u);
}

INSTANTIATE_TEST_SUITE_P(On, Flow,
                         testing::Values(flow_case{"cpu", 2}, flow_case{"cpu", 3}, flow_case{"cpu", 64},
                                         flow_case{"opencl", 1}, flow_case{"opencl", 3}, flow_case{"opencl", 8},
                                         flow_case{"opencl", 64}, flow_case{"cuda:0", 1}, flow_case{"cuda:0", 3},
                                         flow_case{"cuda:0", 64}),
                         [](const auto& info) {
                             const std::string spec = info.param.device;
                             return fmt::format("{}_{}", spec.substr(0, spec.find(':')), info.param.lanes);
                         });

} // namespace
} // namespace weftio::test
