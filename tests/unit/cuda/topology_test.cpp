// What weftio-gpu-bench --topology asks NVIDIA's libraries. Stand-ins are both.
#include <gtest/gtest.h>

#include "gpu/topology.hpp"
#include "stand_in.hpp"

namespace weftio::test {

TEST(DriverFacts, AreThoseOfBothLibraries)
{
    if (!driver().management)
        GTEST_SKIP() << "the driver of this machine is loaded, which the stand-in cannot be beside";
    const storage::topology trees = storage::parse_topology("root pci0000:00\n  gpu gpu0 pci 0000:00:03.0\n", "here");
    const bench::driver_facts facts = bench::ask_driver(trees);
    EXPECT_EQ(facts.no_management + facts.no_cuda, "");
    const bench::driver_facts::gpu& gpu = facts.gpus.at("0000:00:03.0");
    EXPECT_EQ(gpu.bar1_bytes, 4ull << 30);
    EXPECT_EQ(gpu.bar1_used_bytes, 1ull << 30);
    EXPECT_EQ(gpu.persistence, true);
    EXPECT_EQ(gpu.nvlinks, 4u);
    EXPECT_EQ(gpu.dma_buf, std::nullopt) << "the driver does not know the address";
}

} // namespace weftio::test
