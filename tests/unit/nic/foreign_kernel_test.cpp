// Kernels that are launched on another device than their queues are on.
#include "endless_kernels.h"

#include <gmock/gmock.h>

#include "injected_port.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(receives_two, "endless_kernels.h");
WEFTIO_DEFINE_KERNEL(waits_for_item, "endless_kernels.h");

namespace weftio::test {
namespace {

class ForeignKernel : public testing::Test {
 protected:
    void SetUp() override
    {
        try {
            other.emplace(device::open("opencl"));
        } catch (const error& refused) {
            GTEST_SKIP() << "missed: kernels on another device than their queues; " << refused.what();
        }
    }
    /// The refusal of a kernel on `where` that is given `argument`, which lies on `home`.
    template <class Kernel, class Argument>
    void expect_refusal(const device& where, const Kernel& kernel, const Argument& argument, const device& home)
    {
        shared_words words(where, 2);
        const error refusal =
            error_of([&] { (void)where.launch(kernel, {}, argument, std::uint64_t{1}, words.on_device()); });
        EXPECT_EQ(refusal.code(), errc::invalid_argument);
        EXPECT_THAT(refusal.what(), testing::HasSubstr(std::string("kernel ") + kernel.name));
        EXPECT_THAT(refusal.what(), testing::HasSubstr("launched on device " + where.name() + ","));
        EXPECT_THAT(refusal.what(), testing::HasSubstr(home.name() + "; use the same device object"));
    }

    device cpu = device::open("cpu");
    std::optional<device> other;
    injected_port port;
};

TEST_F(ForeignKernel, IsRefusedAndBothDevicesAreNamed)
{
    eth_rxq here(port.get(), cpu), there(port.get(), *other);
    semaphore items_here(cpu, {.items = 2}), items_there(*other, {.items = 2});
    expect_refusal(*other, receives_two_kernel, here, cpu);
    expect_refusal(cpu, receives_two_kernel, there, *other);
    expect_refusal(*other, waits_for_item_kernel, items_here, cpu);
    expect_refusal(cpu, waits_for_item_kernel, items_there, *other);
    device again = device::open("opencl");
    expect_refusal(again, receives_two_kernel, there, *other);
}

TEST_F(ForeignKernel, IsNoneWhereMemoryIsTheSame)
{
    device copy = *other, cpu_again = device::open("cpu");
    eth_rxq here(port.get(), cpu), there(port.get(), *other);
    shared_words words_here(cpu, 2), words_there(*other, 2);
    EXPECT_TRUE(
        cpu_again.launch(receives_two_kernel, {}, here, std::uint64_t{1}, words_here.on_device()).wait_for(patience));
    EXPECT_TRUE(
        copy.launch(receives_two_kernel, {}, there, std::uint64_t{1}, words_there.on_device()).wait_for(patience));
}

} // namespace
} // namespace weftio::test
