// registration_cache that sees frees of the driver, and of CUDA's runtime, which this program has linked statically.
#include <cstddef>

#include "cache_fixture.hpp"
#include "mapped_range.hpp"

// Of the runtime's ABI.
extern "C" int cudaMalloc(void**, std::size_t);
extern "C" int cudaFree(void*);
extern "C" int cudaFreeAsync(void*, void*);

namespace weftio::test {
namespace {

namespace cuda = devices::cuda;
constexpr std::size_t bytes = std::size_t{2} << 20;

class GpuFrees : public gpu_cache_fixture {
 protected:
    GpuFrees() : gpu_cache_fixture({.staleness_of_gpus = gpu_staleness::seen_frees}) {}
    /// By any function: keys are gone when it returns, without a get().
    template <class Free>
    void expect_seen(const void* memory, Free&& free)
    {
        const registration held = cache.get(memory, 100, peer_writes);
        ASSERT_TRUE(knows(held.lkey()) && knows(held.rkey()));
        free();
        EXPECT_FALSE(knows(held.lkey()));
        EXPECT_FALSE(knows(held.rkey()));
    }
};

} // namespace

TEST_F(GpuFrees, AreSeenOfTheDriver)
{
    const cuda::current_context now = backend().use();
    cuda::device_pointer memory = 0;
    ASSERT_EQ(backend().api().cuMemAlloc_v2(&memory, bytes), 0);
    expect_seen(reinterpret_cast<void*>(memory), [&] { EXPECT_EQ(backend().api().cuMemFree_v2(memory), 0); });
}

TEST_F(GpuFrees, AreSeenOfTheStaticRuntime)
{
    const cuda::current_context now = backend().use();
    for (const bool in_order : {false, true}) {
        void* memory = nullptr;
        ASSERT_EQ(cudaMalloc(&memory, bytes), 0);
        expect_seen(memory, [&] { EXPECT_EQ(in_order ? cudaFreeAsync(memory, nullptr) : cudaFree(memory), 0); });
    }
}

TEST_F(GpuFrees, AreSeenOfMappings)
{
    mapped_range range(backend());
    range.map(1);
    expect_seen(range.at(1), [&] { range.unmap(1); });
}

/// Memory that comes back at the address is other memory, and hits find it without a question.
TEST_F(GpuFrees, LetMemoryComeBack)
{
    const cuda::current_context now = backend().use();
    std::uint32_t before = 0;
    for (int round = 0; round < 100; ++round) {
        void* memory = nullptr;
        ASSERT_EQ(cudaMalloc(&memory, bytes), 0);
        const registration held = cache.get(memory, bytes, peer_writes);
        EXPECT_NE(held.rkey(), before);
        EXPECT_EQ(cache.get(memory, bytes, peer_writes).rkey(), held.rkey());
        before = held.rkey();
        EXPECT_EQ(cudaFree(memory), 0);
        EXPECT_FALSE(knows(before));
    }
}

} // namespace weftio::test
