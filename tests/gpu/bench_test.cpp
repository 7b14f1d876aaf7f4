// Each part of weftio-gpu-bench measures something on a GPU. A lane alone is counted some five times a second.
#include "bench/gpu/measure.hpp"
#include "fixture.hpp"

namespace weftio::test {
namespace {

class GpuBench : public gpu_fixture, public testing::WithParamInterface<bench::part> {};

TEST_P(GpuBench, Measures)
{
    bench::settings settings{.device = gpu_spec(), .seconds = 0.4};
    if (GetParam().name == "peer") {
        try {
            device::open(settings.peer = second_gpu_spec());
        } catch (const error& refused) {
            GTEST_SKIP() << "missed: a second GPU; " << refused.what();
        }
    }
    const std::vector<bench::sample> samples = GetParam().measure(gpu(), settings);
    EXPECT_FALSE(samples.empty());
    for (const bench::sample& each : samples)
        EXPECT_GT(each.value, 0) << each.what;
}

INSTANTIATE_TEST_SUITE_P(Part, GpuBench, testing::ValuesIn(bench::parts), [](const auto& info) {
    std::string name;
    for (const char each : info.param.name)
        if (each != '-')
            name += each;
    return name;
});

} // namespace
} // namespace weftio::test
