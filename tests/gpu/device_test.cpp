// Memory, launches and the life cycle of kernels on a GPU.
#include <dlfcn.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <numeric>

#include "devices/cuda/cuda_device.hpp"
#include "fixture.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(copy_through, "gpu.kernel.h");
WEFTIO_DEFINE_KERNEL(look_until_stopped, "gpu.kernel.h");

namespace weftio::test {
namespace {

using GpuMemory = gpu_fixture;
using GpuKernel = gpu_fixture;

TEST_F(GpuMemory, EveryKindIsSeenByWhomItSays)
{
    constexpr std::uint32_t words = 4096;
    memory hidden = gpu().allocate(words * 4, memory_kind::device);
    memory from = gpu().allocate(words * 4, memory_kind::device);
    shared_words to(gpu(), words);
    EXPECT_EQ(hidden.cpu_address(), nullptr);
    std::vector<std::uint32_t> numbers(words);
    std::iota(numbers.begin(), numbers.end(), 100u);
    from.upload(numbers.data(), words * 4);
    ASSERT_TRUE(gpu()
                    .launch(copy_through_kernel, {1, 256}, hidden.device_address(), from.device_address(),
                            to.on_device(), words)
                    .wait_for(patience));
    for (std::uint32_t i = 0; i < words; ++i)
        ASSERT_EQ(to[i], 100 + words - i);
}

TEST_F(GpuMemory, KindThatNeedsAnotherDriverIsRefusedWithWhatToTake)
{
    auto refused = error_of([&] { (void)gpu().allocate(4096, memory_kind::device_cpu); });
    EXPECT_EQ(refused.code(), errc::not_supported);
    EXPECT_THAT(refused.what(), testing::HasSubstr("cpu_device"));
}

TEST_F(GpuMemory, IsExportedAsADmaBufAndHasANumberThatIsNeverUsedAgain)
{
    auto first = std::make_optional(gpu().allocate(2 << 20, memory_kind::device, 2 << 20));
    int descriptor = first->export_dma_buf();
    EXPECT_GE(descriptor, 0);
    close(descriptor);
    auto before = first->buffer_id();
    first.reset();
    EXPECT_NE(gpu().allocate(2 << 20, memory_kind::device, 2 << 20).buffer_id(), before);
}

/// Memory as a program of the user's makes it, with the driver's own calls.
///
/// Weftio leaves no context current in this thread, so the tests make one current, as the CUDA runtime does.
class GpuAdoption : public gpu_fixture {
 protected:
    void SetUp() override
    {
        gpu_fixture::SetUp();
        if (!IsSkipped())
            current_.emplace(cuda(), primary());
    }
    const devices::cuda::driver& cuda() { return devices::cuda::the_driver(); }

 private:
    devices::cuda::context primary() const
    {
        return static_cast<devices::cuda::cuda_device&>(detail::internals::backend(gpu())).primary();
    }

    std::optional<devices::cuda::current_context> current_;
};

TEST_F(GpuAdoption, TakesDeviceAndPinnedMemoryForWhatTheyAre)
{
    devices::cuda::device_pointer on_device = 0;
    void* pinned = nullptr;
    ASSERT_EQ(cuda().cuMemAlloc_v2(&on_device, 4096), devices::cuda::success);
    ASSERT_EQ(cuda().cuMemHostAlloc(&pinned, 4096, devices::cuda::host_alloc_device_map), devices::cuda::success);
    {
        memory device_side = gpu().adopt(reinterpret_cast<void*>(on_device), 4096);
        EXPECT_EQ(device_side.kind(), memory_kind::device);
        EXPECT_EQ(device_side.cpu_address(), nullptr);
        memory host_side = gpu().adopt(static_cast<std::byte*>(pinned) + 64, 4096 - 64);
        EXPECT_EQ(host_side.kind(), memory_kind::cpu_device);
        EXPECT_EQ(host_side.cpu_address(), static_cast<std::byte*>(pinned) + 64);
        memory_region region(port::open("null"), host_side);
        EXPECT_NO_THROW(memory_region(port::open("null"), device_side)) << "frames are brought to the host";
    }
    std::memset(pinned, 1, 4096); // still there
    EXPECT_EQ(cuda().cuMemFreeHost(pinned), devices::cuda::success);
    EXPECT_EQ(cuda().cuMemFree_v2(on_device), devices::cuda::success);
}

TEST_F(GpuAdoption, RefusesWhatItCannotUse)
{
    devices::cuda::device_pointer on_device = 0;
    std::vector<std::byte> ordinary(4096);
    ASSERT_EQ(cuda().cuMemAlloc_v2(&on_device, 4096), devices::cuda::success);
    auto refusal = [&](void* address, std::size_t bytes) {
        return error_of([&] { (void)gpu().adopt(address, bytes); }).code();
    };
    EXPECT_EQ(refusal(nullptr, 1), errc::invalid_argument);
    EXPECT_EQ(refusal(ordinary.data(), 4096), errc::not_reachable);
    EXPECT_EQ(refusal(reinterpret_cast<void*>(on_device + 1), 4096), errc::invalid_argument);
    EXPECT_EQ(cuda().cuMemFree_v2(on_device), devices::cuda::success);
}

TEST_F(GpuAdoption, RefusesManagedMemory)
{
    constexpr unsigned seen_by_all = 1;
    devices::cuda::device_pointer managed = 0;
    auto allocate = reinterpret_cast<devices::cuda::result (*)(devices::cuda::device_pointer*, std::size_t, unsigned)>(
        dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemAllocManaged"));
    ASSERT_TRUE(allocate);
    ASSERT_EQ(allocate(&managed, 4096, seen_by_all), devices::cuda::success);
    auto refused = error_of([&] { (void)gpu().adopt(reinterpret_cast<void*>(managed), 4096); });
    EXPECT_EQ(refused.code(), errc::not_supported);
    EXPECT_THAT(refused.what(), testing::HasSubstr("managed"));
    EXPECT_EQ(cuda().cuMemFree_v2(managed), devices::cuda::success);
}

TEST_F(GpuKernel, StopEndsItAndItsTraceSaysWhatItDid)
{
    port port = port::open("null");
    eth_rxq queue(port, gpu());
    shared_words running(gpu(), 1);
    running_kernel kernel = gpu().launch(look_until_stopped_kernel, {}, queue, running.on_device(), 0u);
    ASSERT_TRUE(eventually([&] { return running[0] == 1; }));
    EXPECT_FALSE(kernel.wait_for(5ms));
    EXPECT_STREQ(kernel.traces()[0].function, "receive");
    EXPECT_GT(kernel.traces()[0].beats, 0u);
    kernel.stop();
    ASSERT_TRUE(kernel.wait_for(patience));
    EXPECT_EQ(running[0], 2u);
}

TEST_F(GpuKernel, WatchNoticesOneThatStopsBeating)
{
    port port = port::open("null");
    eth_rxq queue(port, gpu());
    shared_words running(gpu(), 1);
    std::mutex mutex;
    std::optional<kernel_report> seen;
    running_kernel kernel = gpu().launch(look_until_stopped_kernel, {}, queue, running.on_device(), 1u);
    ASSERT_TRUE(eventually([&] { return running[0] == 1; }));
    kernel.watch({.period = 100ms, .on_report = [&](const kernel_report& report) {
                      std::scoped_lock lock(mutex);
                      seen = report;
                  }});
    ASSERT_TRUE(eventually([&] {
        std::scoped_lock lock(mutex);
        return seen.has_value();
    }));
    EXPECT_FALSE(seen->ended);
    EXPECT_STREQ(seen->queues.at(0).function, "receive");
    EXPECT_TRUE(kernel.wait_for(patience)) << "the watch raises the abort flag";
}

TEST_F(GpuKernel, GridThatCannotRunAtOnceIsRefused)
{
    port port = port::open("null");
    eth_rxq queue(port, gpu());
    shared_words running(gpu(), 1);
    for (grid shape : {grid{1, 2048}, grid{1u << 20, 1024}})
        EXPECT_EQ(error_of([&] {
                      (void)gpu().launch(look_until_stopped_kernel, shape, queue, running.on_device(), 0u);
                  }).code(),
                  errc::invalid_argument);
}

} // namespace
} // namespace weftio::test
