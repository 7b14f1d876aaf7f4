// A kernel that touches memory that there is not. It takes its process's context along, so it runs in a process of its
// own.
#include <fmt/format.h>

#include "fixture.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(touch_nothing, "gpu.kernel.h");

namespace weftio::test {
namespace {

using GpuFault = gpu_fixture;

std::string words_of(const std::function<void()>& call)
{
    try {
        call();
    } catch (const error& thrown) {
        return thrown.what();
    }
    return "nothing was thrown";
}

/// A fault, what wait_for and the next launch say of it, and whether a queue of the CPU on the same port still gets
/// packets.
[[noreturn]] void fault_and_tell()
{
    device gpu = device::open(gpu_spec());
    port port = port::open("net_null_fault,size=64");
    eth_rxq lost(port, gpu);
    running_kernel kernel = gpu.launch(touch_nothing_kernel, {}, lost, static_cast<weftio_u32*>(nullptr));
    fmt::print(stderr, "first: {}\n", words_of([&] { kernel.wait_for(patience); }));
    fmt::print(stderr, "again: {}\n",
               words_of([&] { (void)gpu.launch(touch_nothing_kernel, {}, lost, static_cast<weftio_u32*>(nullptr)); }));
    fmt::print(stderr, "opened anew: {}\n", words_of([&] {
                   device::open(gpu_spec())
                       .launch(touch_nothing_kernel, {}, lost, static_cast<weftio_u32*>(nullptr))
                       .wait_for(patience);
               }));
    eth_rxq queue(port, device::open("cpu"));
    flow all(port, {}, flow_action::to(queue));
    std::uint32_t count = 0, first = 0;
    weftio_dev_eth_rxq_receive_thread(queue.handle(), 1000, patience_ns, &count, &first);
    fmt::print(stderr, "the port goes on: {} packets\n", count);
    std::exit(0);
}

TEST_F(GpuFault, IsOneClearErrorAndThePortGoesOn)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(fault_and_tell(), testing::ExitedWithCode(0),
                "first: weftio: cuda: kernel touch_nothing failed with .*illegal memory access.*restart it(.|\n)*"
                "again: weftio: .*restart the process(.|\n)*"
                "opened anew: weftio: .*(.|\n)*"
                "the port goes on: 1000 packets");
}

} // namespace
} // namespace weftio::test
