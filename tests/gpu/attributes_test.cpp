// What the driver says of memory, as far as registration_cache relies on it. Prints the rest.
#include <array>
#include <chrono>
#include <cstdio>

#include "fixture.hpp"
#include "mapped_range.hpp"

namespace weftio::test {
namespace {

namespace cuda = devices::cuda;

/// Numbers of attributes, by what they are called in the driver's documentation.
struct named {
    const char* name;
    int number;
};
constexpr std::array<named, 11> all{{{"MEMORY_TYPE", 2},
                                     {"BUFFER_ID", 7},
                                     {"DEVICE_ORDINAL", 9},
                                     {"IS_LEGACY_CUDA_IPC_CAPABLE", 10},
                                     {"RANGE_START_ADDR", 11},
                                     {"RANGE_SIZE", 12},
                                     {"MAPPED", 13},
                                     {"MEMPOOL_HANDLE", 17},
                                     {"MAPPING_SIZE", 18},
                                     {"MAPPING_BASE_ADDR", 19},
                                     {"MEMORY_BLOCK_ID", 20}}};

class GpuAttributes : public gpu_fixture {
 protected:
    cuda::cuda_device& backend() const { return static_cast<cuda::cuda_device&>(detail::internals::backend(gpu())); }
    /// 0 if the driver refuses.
    unsigned long long ask(int attribute, const void* address) const
    {
        const cuda::current_context now = backend().use();
        unsigned long long value = 0;
        const cuda::result status =
            backend().api().cuPointerGetAttribute(&value, attribute, reinterpret_cast<cuda::device_pointer>(address));
        return status == cuda::success ? value : 0;
    }
    void print(const char* what, const void* address) const
    {
        const cuda::current_context now = backend().use();
        std::printf("%s %p:", what, address);
        for (const named& each : all) {
            unsigned long long value = 0;
            const cuda::result status = backend().api().cuPointerGetAttribute(
                &value, each.number, reinterpret_cast<cuda::device_pointer>(address));
            status == cuda::success ? std::printf(" %s=%llx", each.name, value)
                                    : std::printf(" %s:error %d", each.name, status);
        }
        unsigned long long handle = 0;
        auto retain = function_of_driver<int(unsigned long long*, const void*)>("cuMemRetainAllocationHandle");
        const int status = retain ? retain(&handle, address) : -1;
        std::printf(" RETAINED:%d=%llx\n", status, handle);
        if (status == 0)
            function_of_driver<int(unsigned long long)>("cuMemRelease")(handle);
    }
    template <class Body>
    static double nanoseconds_of(Body&& body)
    {
        constexpr int calls = 100000;
        const auto begin = std::chrono::steady_clock::now();
        for (int call = 0; call < calls; ++call)
            body();
        return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / calls;
    }
};

} // namespace

TEST_F(GpuAttributes, OfMappings)
{
    mapped_range range(backend());
    print("reserved", range.at(0));
    range.map(0);
    range.map(1);
    print("mapped 0", range.at(0) + 4096);
    print("mapped 1", range.at(1));
    print("not mapped 2", range.at(2));
    const unsigned long long buffer = ask(cuda::buffer_id, range.at(0)), block = ask(cuda::memory_block, range.at(0));
    EXPECT_EQ(ask(cuda::is_of_mem_alloc, range.at(0)), 0u);
    EXPECT_NE(ask(cuda::is_mapped, range.at(0)), 0u);
    EXPECT_EQ(ask(cuda::is_mapped, range.at(2)), 0u);
    EXPECT_NE(block, 0u);
    EXPECT_NE(ask(cuda::memory_block, range.at(1)), block);
    EXPECT_EQ(ask(cuda::mapping_begin, range.at(0) + 4096), reinterpret_cast<std::uintptr_t>(range.at(0)));
    EXPECT_EQ(ask(cuda::mapping_bytes, range.at(0) + 4096), mapped_range::bytes);
    range.unmap(0);
    print("unmapped 0", range.at(0));
    EXPECT_EQ(ask(cuda::is_mapped, range.at(0)), 0u);
    EXPECT_EQ(ask(cuda::memory_block, range.at(0)), 0u);
    range.map(0);
    print("mapped 0 anew", range.at(0));
    EXPECT_NE(ask(cuda::memory_block, range.at(0)), block);
    std::printf("the buffer ID is %s\n", ask(cuda::buffer_id, range.at(0)) == buffer ? "the same" : "another");
    range.unmap(0);
    range.unmap(1);
}

TEST_F(GpuAttributes, OfAllocations)
{
    const memory small = gpu().allocate(1000, memory_kind::device),
                 large = gpu().allocate(4 << 20, memory_kind::device);
    const memory pinned = gpu().allocate(1000, memory_kind::cpu_device);
    print("cuMemAlloc of 1000 bytes", small.device_address());
    print("cuMemAlloc of 4 MiB", large.device_address());
    print("cuMemHostAlloc", pinned.device_address());
    EXPECT_NE(ask(cuda::is_of_mem_alloc, small.device_address()), 0u);
    EXPECT_NE(ask(cuda::is_of_mem_alloc, large.device_address()), 0u);
    EXPECT_NE(ask(cuda::buffer_id, small.device_address()), ask(cuda::buffer_id, large.device_address()));
}

/// The driver keeps what was freed, and gives it to the next.
TEST_F(GpuAttributes, OfPools)
{
    using pointer = cuda::device_pointer;
    auto allocate = function_of_driver<int(pointer*, std::size_t, cuda::stream)>("cuMemAllocAsync");
    auto release = function_of_driver<int(pointer, cuda::stream)>("cuMemFreeAsync");
    ASSERT_TRUE(allocate && release);
    const cuda::current_context now = backend().use();
    for (int round = 0; round < 3; ++round) {
        pointer at = 0;
        ASSERT_EQ(allocate(&at, 1 << 20, nullptr), 0);
        print("cuMemAllocAsync", reinterpret_cast<const void*>(at));
        EXPECT_NE(ask(cuda::memory_pool, reinterpret_cast<const void*>(at)), 0u);
        ASSERT_EQ(release(at, nullptr), 0);
        backend().api().cuStreamSynchronize(nullptr);
        print("cuMemFreeAsync", reinterpret_cast<const void*>(at));
    }
}

TEST_F(GpuAttributes, CostOfAsking)
{
    mapped_range range(backend());
    range.map(0);
    const memory large = gpu().allocate(4 << 20, memory_kind::device);
    const cuda::driver& api = backend().api();
    auto ask_all = function_of_driver<int(unsigned, int*, void**, cuda::device_pointer)>("cuPointerGetAttributes");
    unsigned long long value = 0;
    std::array<unsigned long long, 4> values{};
    std::array<void*, 4> into{values.data(), &values[1], &values[2], &values[3]};
    const auto time_of = [&](const char* what, const void* address, std::array<int, 4> attributes, unsigned count) {
        const auto at = reinterpret_cast<cuda::device_pointer>(address);
        const int status = ask_all(count, attributes.data(), into.data(), at);
        const double one = nanoseconds_of([&] { (void)api.cuPointerGetAttribute(&value, attributes[0], at); });
        const double together = nanoseconds_of([&] { (void)ask_all(count, attributes.data(), into.data(), at); });
        std::printf("%s: %d alone %.1f ns, %u together %.1f ns (status %d)\n", what, attributes[0], one, count,
                    together, status);
    };
    time_of("no context, cuMemAlloc", large.device_address(), {7}, 1);
    const cuda::current_context now = backend().use();
    time_of("cuMemAlloc", large.device_address(), {7}, 1);
    time_of("cuMemAlloc", large.device_address(), {7, 20}, 2);
    for (const int attribute : {7, 13, 18, 19, 20})
        time_of("cuMemMap", range.at(0), {attribute}, 1);
    time_of("cuMemMap", range.at(0), {20, 19, 18}, 3);
    std::printf("context pushed and popped: %.1f ns\n",
                nanoseconds_of([&] { const cuda::current_context pushed = backend().use(); }));
    range.unmap(0);
}

} // namespace weftio::test
