// DPDK's table of mempool drivers is full, as one more driver would make it on Debian 13: receiving and sending work
// all the same. The table belongs to the process, and so this is a program of its own.
#include <gtest/gtest.h>
#include <rte_eal.h>
#include <rte_mempool.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "unit/device/fixture.hpp"
#include "unit/faults/kernels.h"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(send_and_receive, "unit/faults/kernels.h");

namespace weftio::test {
namespace {

/// Drivers of nothing until there is no place for another.
void fill_table()
{
    rte_mempool_ops nobody{};
    nobody.alloc = [](rte_mempool*) { return 0; };
    nobody.free = [](rte_mempool*) {};
    nobody.get_count = [](const rte_mempool*) { return 0U; };
    nobody.enqueue = [](rte_mempool*, void* const*, unsigned) { return -ENOBUFS; };
    nobody.dequeue = [](rte_mempool*, void**, unsigned) { return -ENOBUFS; };
    do
        std::snprintf(nobody.name, sizeof nobody.name, "nobody_%u", rte_mempool_ops_table.num_ops);
    while (rte_mempool_register_ops(&nobody) >= 0);
}

std::vector<std::string> drivers()
{
    std::vector<std::string> names;
    for (const rte_mempool_ops& driver : rte_mempool_ops_table.ops)
        names.emplace_back(driver.name);
    return names;
}

class FullTable : public testing::Test {
 protected:
    static void SetUpTestSuite()
    {
        std::vector<std::string> words{"mempools_test", "--no-huge", "--no-shconf", "--no-pci", "-m", "256"};
        std::vector<char*> argv;
        for (std::string& word : words)
            argv.push_back(word.data());
        ASSERT_GE(rte_eal_init(static_cast<int>(argv.size()), argv.data()), 0);
        fill_table();
        before = drivers();
    }

    static inline std::vector<std::string> before;
};

/// Eight packets from a kernel through the port's wire back to the kernel.
TEST_F(FullTable, SendsThroughThePlaceOfADriverThatNoPoolUses)
{
    constexpr std::uint32_t packets = 8;
    device cpu = device::open("cpu");
    port wire = port::open("loopback");
    eth_rxq rx(wire, cpu, {.packets = 64});
    eth_txq tx(wire, cpu, {.entries = 64});
    buf_arr frames(wire, cpu, {.count = packets, .buffer_bytes = 64});
    shared_words came(cpu, 1);
    flow all(wire, {}, flow_action::to(rx));
    auto kernel = cpu.launch(send_and_receive_kernel, {}, rx, tx, frames, packets, came.on_device(), 1u);
    EXPECT_TRUE(eventually([&] { return came[0] == packets; })) << "of 8 packets came " << came[0];
    kernel.stop();
    EXPECT_TRUE(kernel.wait_for(patience));
    EXPECT_EQ(tx.counters().failed, 0u);
}

TEST_F(FullTable, LetsDriversFillTheSlotsOfAQueue)
{
    device cpu = device::open("cpu");
    port capture = port::open("pcap:builtin");
    eth_rxq rx(capture, cpu, {.packets = 64});
    flow all(capture, {}, flow_action::to(rx));
    EXPECT_TRUE(eventually([&] { return capture.counters().delivered != 0; }));
    EXPECT_EQ(capture.counters().copied_bytes, 0u);
}

/// After the two above, or alone: one driver of nothing has gone, and nothing that a pool uses.
TEST_F(FullTable, KeepsTheDriversOfRings)
{
    port::open("null");
    const std::vector<std::string> after = drivers();
    EXPECT_EQ(std::ranges::count_if(after, [](const std::string& name) { return name.starts_with("weftio_"); }), 1);
    for (std::size_t place = 0; place < after.size(); ++place)
        EXPECT_TRUE(after[place] == before[place] || before[place].starts_with("nobody_")) << before[place];
}

} // namespace
} // namespace weftio::test
