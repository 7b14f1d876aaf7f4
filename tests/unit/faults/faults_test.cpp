// Whatever call fails, and whenever: a sentence that says so, and nothing is left behind.
#include <cstdlib>
#include <functional>
#include <new>
#include <string_view>
#include <thread>

#include "dpdk/dpdk_port.hpp"
#include "dpdk/environment.hpp"
#include "holdings.hpp"
#include "injection.hpp"
#include "own_network.hpp"
#include "scenario.hpp"
#include "unit/device/fixture.hpp"
#include "weftio/weftio.hpp"

namespace weftio::test {
namespace {

/// One life with a fault in it. The library copes, or says what is wrong.
void live_with_it(const std::function<void()>& life)
{
    try {
        life();
    } catch (const error& refused) {
        std::string_view text = refused.what();
        EXPECT_TRUE(text.starts_with("weftio: ") && text.size() > 40) << text;
        EXPECT_EQ(text.find("already open"), text.npos) << "no other port has it: " << text;
    } catch (const std::bad_alloc&) {
    } catch (const std::exception& other) {
        ADD_FAILURE() << "not an error of the library's: " << other.what();
    }
}

/// Runs `life` with the first, second, ... call of a kind failing until it has run without reaching that call. Returns
/// how many calls there were.
/// @param with_blocks  no driver allocates through operator new, so that the blocks of memory are Weftio's
std::uint64_t let_each_fail(const std::function<void()>& life, calls kind, how how, bool with_blocks)
{
    int warnings = 0;
    set_log_sink(
        [&](log_level level, std::string_view) { warnings += level != log_level::debug && level != log_level::info; });
    life(); // what is made once a process is made now
    life();
    dpdk::forget_driver_log();
    const auto held = [with_blocks] { return holdings::now(with_blocks ? blocks_alive() : 0); };
    const holdings before = held();
    std::uint64_t number = 0;
    for (bool reached = true; reached && !testing::Test::HasFailure();) {
        ++number;
        const char* name = nullptr; // no string: blocks of memory are counted
        {
            injected_fault fault(kind, how, number);
            live_with_it(life);
            reached = fault.reached();
            name = fault.name();
        }
        dpdk::forget_driver_log();
        EXPECT_TRUE(kind != calls::removal || !reached || warnings != 0) << "the device stays without a word";
        EXPECT_TRUE(eventually([&] { return no_more(held(), before); })) // detached threads end in their own time
            << testing::PrintToString(held()) << "; before: " << testing::PrintToString(before) << "; call " << number
            << ", " << name;
        EXPECT_FALSE(testing::Test::HasFailure()) << "call " << number << ", " << name;
    }
    set_log_sink({});
    return number - 1;
}

struct named_scenario {
    const char* name;
    scenario what;
};

void PrintTo(const named_scenario& named, std::ostream* out)
{
    *out << named.name;
}

class Fault : public testing::TestWithParam<named_scenario> {
 protected:
    void expect_harmless(calls kind, how how, std::uint64_t fewest)
    {
        std::uint64_t failed = let_each_fail([] { live(GetParam().what); }, kind, how, true);
        EXPECT_GE(failed, fewest);
        RecordProperty("calls", static_cast<int>(failed));
    }
    void skip_where_sanitized()
    {
#ifdef WEFTIO_TEST_SANITIZED
        GTEST_SKIP() << "missed: calls that fail and belong to the sanitizer here; a plain build has it";
#endif
    }
};

TEST_P(Fault, OfAnyAllocationLeavesNothingBehind)
{
    skip_where_sanitized();
    if (IsSkipped())
        return;
    expect_harmless(calls::allocation, how::once, 70);
}

TEST_P(Fault, OfEveryAllocationFromOneOnLeavesNothingBehind)
{
    skip_where_sanitized();
    if (IsSkipped())
        return;
    expect_harmless(calls::allocation, how::for_good, 70);
}

TEST_P(Fault, OfAnyCallOfDpdkLeavesNothingBehind)
{
    expect_harmless(calls::dpdk, how::once, 15);
}

TEST_P(Fault, OfEveryCallOfDpdkFromOneOnLeavesNothingBehind)
{
    expect_harmless(calls::dpdk, how::for_good, 15);
}

TEST_P(Fault, OfRemovingTheDeviceIsToldAndLeavesItClosed)
{
    expect_harmless(calls::removal, how::once, 1);
}

TEST_P(Fault, OfAnyUploadToTheDeviceLeavesNothingBehind)
{
    expect_harmless(calls::device, how::once, 5);
}

TEST_P(Fault, OfTheSystemLeavesNothingBehind)
{
    skip_where_sanitized();
    if (IsSkipped())
        return;
    expect_harmless(calls::system, how::once, 10);
}

INSTANTIATE_TEST_SUITE_P(
    With, Fault,
    testing::Values(named_scenario{"OneLane", {}}, named_scenario{"ALoopback", {.port = "loopback"}},
                    named_scenario{"ACapture", {.port = "pcap:rx=builtin,tx=/dev/null", .lives = 1}},
                    named_scenario{"ThreeLanesInline", {.lanes = 3, .inline_mode = true}},
                    named_scenario{"AKernelThatLeaves", {.kernel_leaves = true}}),
    [](const auto& info) { return std::string(info.param.name); });

void open_and_close(const char* spec)
{
    port opened = port::open(spec);
    eth_rxq queue(opened, device::open("cpu"), {.packets = 64});
    flow everything(opened, {}, flow_action::to(queue));
}

/// The first way to a port fails once its device is there, as AF_XDP does on an interface whose queue is not free yet.
void take_the_second_way()
{
    class no_slot_pools final : public dpdk::slot_pool_maker {
        bool suits(const std::string&) const noexcept override { return false; }
        rte_mempool* make(unsigned, const std::string&, rte_mempool* own, std::uint16_t) override { return own; }
        void free_all() noexcept override {}
    } slot_pools;
    dpdk::port_spec two_ways;
    two_ways.candidates = {{"net_pcap_of_the_first_way", "tx_pcap=/dev/null", false},
                           {"net_null_of_the_second_way", "", false}};
    dpdk::dpdk_port port("two ways", two_ways, {.engines = 2}, slot_pools);
    EXPECT_EQ(port.driver(), "net_null");
}

TEST(FaultOfASecondWay, LeavesNothingBehind)
{
#ifdef WEFTIO_TEST_SANITIZED
    GTEST_SKIP() << "missed: calls that fail and belong to the sanitizer here; a plain build has it";
#endif
    const auto environment = dpdk::start_environment(false, {});
    for (how how : {how::once, how::for_good})
        EXPECT_GT(let_each_fail(take_the_second_way, calls::allocation, how, true), 8u);
}

/// A DMA engine's life: copies, an end in error, a second one.
void copy_and_reset()
{
    const dma_engine engine;
    const device cpu = device::open("cpu");
    dma_queue queue(engine, cpu, {.entries = 64});
    const buf_arr buffers(engine, cpu, {.count = 2, .buffer_bytes = 4096});
    progress_engine progress;
    progress.attach(queue, {.on_error = [](const send_failure&) {}});
    for (std::uint32_t key : {buffers.lkey(), 0u}) {
        const weftio_dev_buf to = weftio_dev_buf_get(buffers.handle(), 1);
        weftio_dev_dma_memcpy(queue.handle(), {to.address, to.bytes, weftio_swap32(key)}, 0, to, 0, 4096, 0);
        weftio_dev_dma_commit_wait(queue.handle(), 0);
    }
    EXPECT_TRUE(queue.failed());
    progress.progress();
    queue.reset();
}

TEST(DmaFault, OfAnyAllocationOrCallLeavesNothingBehind)
{
#ifdef WEFTIO_TEST_SANITIZED
    GTEST_SKIP() << "missed: calls that fail and belong to the sanitizer here; a plain build has it";
#endif
    const auto environment = dpdk::start_environment(false, {}); // of no use to the engine: pools are counted
    EXPECT_GT(let_each_fail(copy_and_reset, calls::allocation, how::once, true), 20u);
    EXPECT_GT(let_each_fail(copy_and_reset, calls::allocation, how::for_good, true), 20u);
    let_each_fail(copy_and_reset, calls::system, how::once, true);
}

class InterfaceFault : public testing::TestWithParam<calls> {};

TEST_P(InterfaceFault, LeavesTheInterfaceUsable)
{
#ifdef WEFTIO_TEST_SANITIZED
    if (GetParam() == calls::allocation || GetParam() == calls::system)
        GTEST_SKIP() << "missed: calls that fail and belong to the sanitizer here; a plain build has it";
#endif
    in_own_network("faults of ports on interfaces", [] {
        for (const char* spec : {"net_af_packet_faults,iface=v1", "iface:v1"}) {
            std::uint64_t failed = let_each_fail([&] { open_and_close(spec); }, GetParam(), how::once, false);
            EXPECT_GT(failed, 4u) << spec;
        }
    });
}

INSTANTIATE_TEST_SUITE_P(Of, InterfaceFault, testing::Values(calls::allocation, calls::dpdk, calls::system),
                         [](const auto& info) {
                             return std::string(info.param == calls::allocation ? "Allocations"
                                                : info.param == calls::dpdk     ? "Dpdk"
                                                                                : "TheSystem");
                         });

#ifdef WEFTIO_WITH_OPENCL
TEST(OpenClFault, OfAnyCallLeavesNothingBehind)
{
    try {
        device::open("opencl");
    } catch (const error& refused) {
        GTEST_SKIP() << "missed: faults of OpenCL; " << refused.what();
    }
    std::uint64_t failed =
        let_each_fail([] { live({.device = "opencl", .lives = 1}); }, calls::opencl, how::once, false);
    EXPECT_GT(failed, 30u);
}
#endif

} // namespace
} // namespace weftio::test
