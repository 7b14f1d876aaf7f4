// The same sequences of calls on every device: one lane of the CPU says what is right.
#include <random>
#include <vector>

#include <fmt/format.h>

#include "sequence.hpp"
#include "unit/device/fixture.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(run_sequence, "sequence_kernels.h");

namespace weftio::test {
namespace {

constexpr std::uint32_t starts[] = {0, 0x10000 - 40, 0u - 40};

std::vector<sequence_step> random_steps(std::uint32_t seed)
{
    std::mt19937 random(seed);
    std::vector<sequence_step> steps(SEQUENCE_STEPS);
    for (sequence_step& step : steps)
        step = {.operation = static_cast<std::uint32_t>(random() % SEQUENCE_OPERATIONS),
                .a = static_cast<std::uint32_t>(random() & 0xffff),
                .b = static_cast<std::uint32_t>(random() & 0xffff),
                .c = static_cast<std::uint32_t>(random() & 0xff)};
    return steps;
}

/// A world in memory of a device.
class device_world {
 public:
    explicit device_world(const char* spec)
        : device_(device::open(spec)), memory_(device_.allocate(sizeof(sequence_world), memory_kind::cpu_device))
    {}

    const sequence_world& run(std::span<const sequence_step> steps, std::uint32_t start, std::uint32_t lanes)
    {
        prepare(world(), steps, start, device_.clock());
        running_kernel running = device_.launch(run_sequence_kernel, {.blocks = 1, .lanes = lanes}, &world());
        EXPECT_TRUE(running.wait_for(patience));
        return world();
    }

 private:
    sequence_world& world() { return *static_cast<sequence_world*>(memory_.cpu_address()); }

    device device_;
    memory memory_;
};

struct differential_case {
    const char* device;
    std::uint32_t lanes, seeds;
};

class Differential : public testing::TestWithParam<differential_case> {};

TEST_P(Differential, LeavesTheSameBytesAsOneLaneOfTheCpu)
{
    std::optional<device_world> other;
    try {
        other.emplace(GetParam().device);
    } catch (const error& refused) {
        GTEST_SKIP() << "missed: sequences on " << GetParam().device << "; " << refused.what();
    }
    device_world one("cpu");
    std::uint64_t received = 0;
    for (std::uint32_t seed = 0; seed < GetParam().seeds; ++seed) {
        const std::vector<sequence_step> steps = random_steps(seed);
        const sequence_world& wanted = one.run(steps, starts[seed % 3], 1);
        ASSERT_EQ(difference(wanted, other->run(steps, starts[seed % 3], GetParam().lanes)), "") << "seed " << seed;
        received += wanted.outcome.ends[20] - starts[seed % 3];
    }
    EXPECT_GT(received, GetParam().seeds * 10);
}

INSTANTIATE_TEST_SUITE_P(On, Differential,
                         testing::Values(differential_case{"cpu", 7, 500}, differential_case{"cpu", 32, 500},
                                         differential_case{"cpu", 65, 300}, differential_case{"opencl", 1, 200},
                                         differential_case{"opencl", 8, 200}, differential_case{"opencl", 40, 200}),
                         [](const auto& info) { return fmt::format("{}_{}", info.param.device, info.param.lanes); });

} // namespace
} // namespace weftio::test
