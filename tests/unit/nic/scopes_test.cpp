// Launched kernels receive in every scope, on every device, and lose nothing.
#include "scope_kernels.h"

#include <fmt/format.h>

#include "injected_port.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(receive_by_thread, "scope_kernels.h");
WEFTIO_DEFINE_KERNEL(receive_by_warp, "scope_kernels.h");
WEFTIO_DEFINE_KERNEL(receive_by_block, "scope_kernels.h");

namespace weftio::test {
namespace {

using receiving_kernel = kernel<weftio_dev_eth_rxq*, tally*>;

struct scope_case {
    const char* device;
    const receiving_kernel* kernel;
    std::uint32_t lanes;
    engine_mode mode = engine_mode::thread;
};

std::string name_of(const testing::TestParamInfo<scope_case>& info)
{
    const scope_case& tried = info.param;
    return fmt::format("{}_{}_{}{}", tried.device, tried.kernel->name, tried.lanes,
                       tried.mode == engine_mode::inline_worker ? "_inline" : "");
}

class ReceiveScope : public testing::TestWithParam<scope_case> {
 protected:
    void SetUp() override
    {
        try {
            where.emplace(device::open(GetParam().device));
        } catch (const error& refused) {
            GTEST_SKIP() << "missed: receiving by kernels on " << GetParam().device << "; " << refused.what();
        }
    }

    /// Sends while there is room on the wire. Returns whether all went.
    static bool send(const injected_port& port, std::uint32_t total)
    {
        for (std::uint32_t number = 0; number < total; ++number)
            if (!eventually([&] { return port.send(numbered_frame(number, 60 + number % 40)); }))
                return false;
        return true;
    }

    std::optional<device> where;
};

TEST_P(ReceiveScope, GetsEveryPacketOnceAndInOrder)
{
    constexpr std::uint32_t total = 10000;
    injected_port port({.mode = GetParam().mode, .hold_when_full = port_options::hold::on});
    eth_rxq queue(port.get(), *where, {.packets = 256, .max_packet_bytes = 128});
    memory report = where->allocate(sizeof(tally), memory_kind::cpu_device);
    auto* seen = static_cast<tally*>(report.cpu_address());
    running_kernel running =
        where->launch(*GetParam().kernel, {.blocks = 1, .lanes = GetParam().lanes}, queue, report.device_address());
    flow everything(port.get(), {}, flow_action::to(queue));

    EXPECT_TRUE(send(port, total));
    EXPECT_TRUE(eventually([&] { return weftio_load_acquire_sys_u32(&seen->packets) >= total; }));
    running.stop();
    ASSERT_TRUE(running.wait_for(patience));
    EXPECT_EQ(seen->packets, total);
    EXPECT_EQ(seen->looked_at, total);
    EXPECT_EQ(seen->wrong, 0u);
    EXPECT_EQ(seen->status, WEFTIO_DEV_ABORTED);
    EXPECT_EQ(queue.counters().delivered, total);
    EXPECT_EQ(port.counters().dropped_total(), 0u);
    EXPECT_TRUE(conserves(port.counters()));
}

std::vector<scope_case> scope_cases()
{
    std::vector<scope_case> cases;
    for (const char* device : {"cpu", "opencl"})
        for (const receiving_kernel* kernel :
             {&receive_by_thread_kernel, &receive_by_warp_kernel, &receive_by_block_kernel})
            for (std::uint32_t lanes : {1u, 32u, 256u})
                cases.push_back({device, kernel, lanes});
    for (std::uint32_t lanes : {1u, 32u})
        cases.push_back({"cpu", &receive_by_block_kernel, lanes, engine_mode::inline_worker});
    return cases;
}

INSTANTIATE_TEST_SUITE_P(Every, ReceiveScope, testing::ValuesIn(scope_cases()), name_of);

} // namespace
} // namespace weftio::test
