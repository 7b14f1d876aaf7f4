// What memory of a GPU is, and writes of NICs into it that become visible late. A stand-in is the driver.
#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "queues/needs_flush.hpp"
#include "stand_in.hpp"
#include "unit/seam/cable_nic.hpp"
#include "weftio/detail/internals.hpp"
#include "weftio/gpu_memory.hpp"
#include "weftio/weftio.hpp"

namespace weftio::test {

namespace {

using testing::HasSubstr;
using made_by = memory_info::made_by;

class OfAGpu : public testing::Test {
 protected:
    void SetUp() override
    {
        if (!driver().opened)
            GTEST_SKIP() << "the driver of this machine is loaded, which the stand-in cannot be beside";
        gpu.emplace(device::open("cuda:0"));
        void* context = nullptr;
        driver().retain(&context, 0);
        driver().set_current(context);
        ASSERT_EQ(driver().allocate(&memory, bytes), 0);
        std::fill_n(memory, 16, std::byte{0});
        promise(100, 1, 1);
    }
    void TearDown() override
    {
        if (!memory)
            return;
        promise(100, 1, 1);
        EXPECT_EQ(driver().release(memory), 0);
        driver().set_current(nullptr);
    }
    static void promise(int ordering, int flush_options, int stream_flushes)
    {
        driver().find<void(int, int, int)>("stand_in_promise")(ordering, flush_options, stream_flushes);
    }
    /// Arrives with the next flush.
    void nic_writes(std::uint32_t value)
    {
        driver().find<void(std::uint32_t*, std::uint32_t)>("stand_in_write_late")(words(), value);
    }
    std::uint32_t* words() const { return reinterpret_cast<std::uint32_t*>(memory); }
    template <class Action>
    static std::string refusal(errc code, Action&& action)
    {
        try {
            action();
        } catch (const error& refused) {
            EXPECT_EQ(refused.code(), code);
            return refused.what();
        }
        return "not refused";
    }

    static constexpr std::size_t bytes = 1 << 20;
    std::optional<device> gpu;
    device cpu = device::open("cpu");
    std::byte* memory = nullptr;
};

class GpuOrder : public OfAGpu {};

TEST_F(GpuOrder, IsWhatThePlatformPromises)
{
    EXPECT_EQ(ordering_of(cpu).remote_writes, writes_ordering::all_devices);
    EXPECT_FALSE(ordering_of(cpu).flushed_by_stream);
    const struct {
        int told;
        writes_ordering means;
    } rows[] = {{0, writes_ordering::none},
                {100, writes_ordering::owner},
                {150, writes_ordering::owner},
                {200, writes_ordering::all_devices},
                {300, writes_ordering::all_devices}};
    for (const auto& row : rows) {
        promise(row.told, 0, 0);
        EXPECT_EQ(ordering_of(*gpu).remote_writes, row.means) << row.told;
    }
    EXPECT_FALSE(ordering_of(*gpu).flushed_by_host);
    EXPECT_FALSE(ordering_of(*gpu).flushed_by_stream);
    promise(100, 2, 1);
    EXPECT_FALSE(ordering_of(*gpu).flushed_by_host) << "by streams alone";
    EXPECT_TRUE(ordering_of(*gpu).flushed_by_stream);
    promise(100, 3, 0);
    EXPECT_TRUE(ordering_of(*gpu).flushed_by_host);
}

/// Of a NIC that leaves the order to the platform, and of one that does not.
TEST_F(GpuOrder, TellsKernelsWhetherTheyMustFlush)
{
    add_cable_nic();
    const port by_itself = port::open("cable:0"), late = port::open("cable:late"),
               software = port::open("loopback", {.mode = engine_mode::inline_worker});
    const auto needed = [&](const port& at, const device& kernels) {
        return queues::needs_flush(detail::internals::backend(at), kernels);
    };
    for (const auto& [told, needs] : {std::pair{0, true}, {100, false}, {200, false}}) {
        promise(told, 1, 0);
        EXPECT_EQ(needed(by_itself, *gpu), needs) << told;
        EXPECT_FALSE(needed(software, *gpu)) << told;
        EXPECT_TRUE(needed(late, *gpu)) << told;
    }
    EXPECT_FALSE(needed(by_itself, cpu));
}

TEST_F(GpuOrder, IsFlushedWhereItIsNotPromised)
{
    nic_writes(1);
    flush_writes(*gpu);
    EXPECT_EQ(words()[0], 0u) << "promised to the GPU that has the memory: nobody is asked";
    flush_writes(*gpu, writes_ordering::all_devices);
    EXPECT_EQ(words()[0], 1u);
    promise(0, 1, 0);
    nic_writes(2);
    flush_writes(*gpu);
    EXPECT_EQ(words()[0], 2u);
    promise(200, 1, 0);
    nic_writes(3);
    flush_writes(*gpu, writes_ordering::all_devices);
    EXPECT_EQ(words()[0], 2u);
    flush_writes(cpu, writes_ordering::all_devices); // nothing to do
}

TEST_F(GpuOrder, IsFlushedWithAnyContext)
{
    promise(0, 1, 0);
    std::thread without([&] { flush_writes(*gpu); });
    without.join();
    void* second = nullptr;
    driver().retain(&second, 1);
    driver().set_current(second);
    flush_writes(*gpu);
    void* seen = nullptr;
    driver().get_current(&seen);
    EXPECT_EQ(seen, second);
    driver().retain(&second, 0);
    driver().set_current(second);
}

TEST_F(GpuOrder, RefusesAFlushThatDoesNotExist)
{
    promise(0, 0, 0);
    EXPECT_THAT(
        refusal(errc::not_supported, [&] { flush_writes(*gpu); }),
        HasSubstr(
            "the driver of cuda: stand-in 0 has no flush for the host, and orders writes of NICs for none, not for "
            "owner; read a byte back by RDMA"));
    EXPECT_THAT(refusal(errc::invalid_argument, [&] { flush_writes(cpu, writes_ordering::none); }),
                HasSubstr("0 is no one to flush for"));
    EXPECT_THAT(refusal(errc::not_supported, [&] { wait_and_flush(*gpu, nullptr, words(), 1); }),
                HasSubstr("streams of cuda: stand-in 0 flush no writes"));
    EXPECT_THAT(refusal(errc::not_supported, [&] { wait_and_flush(cpu, nullptr, words(), 1); }),
                HasSubstr("streams of cpu flush no writes"));
    promise(0, 0, 1);
    const auto* const odd = reinterpret_cast<const std::uint32_t*>(memory + 2);
    EXPECT_THAT(refusal(errc::invalid_argument, [&] { wait_and_flush(*gpu, nullptr, odd, 1); }),
                HasSubstr("not at a multiple of 4"));
}

TEST_F(GpuOrder, IsFlushedByAStreamThatHasSeenTheWord)
{
    void* stream = nullptr;
    ASSERT_EQ(driver().find<int(void**, unsigned)>("cuStreamCreate")(&stream, 1), 0);
    std::atomic_ref<std::uint32_t> flag(words()[8]);
    nic_writes(7);
    wait_and_flush(*gpu, stream, words() + 8, 0xffffffff); // the word, 0, is beyond it
    EXPECT_EQ(words()[0], 7u);
    nic_writes(8);
    std::atomic<bool> waited{false};
    std::thread streams([&] { // the stand-in's streams work on the thread that uses them
        wait_and_flush(*gpu, stream, words() + 8, 3);
        waited = true;
    });
    flag = 2;
    EXPECT_FALSE(waited);
    flag = 3;
    streams.join();
    EXPECT_EQ(words()[0], 8u);
    driver().find<int(void*)>("cuStreamDestroy_v2")(stream);
}

class GpuMemoryInfo : public OfAGpu {};

TEST_F(GpuMemoryInfo, TellsTheMakerAndTheAllocation)
{
    const memory_info plain = memory_info::of(*gpu, memory + 5000);
    EXPECT_EQ(plain.maker, made_by::mem_alloc);
    EXPECT_EQ(plain.device, "cuda:0");
    EXPECT_EQ(plain.begin, reinterpret_cast<std::uintptr_t>(memory));
    EXPECT_EQ(plain.bytes, bytes);
    EXPECT_NE(plain.buffer_id, 0u);
    EXPECT_EQ(plain.block_id, 0u);
    EXPECT_FALSE(plain.cpu_can_access);
    EXPECT_TRUE(plain.dma_buf);
    EXPECT_EQ(plain.why_no_dma_buf, "");
    EXPECT_FALSE(plain.tokens);
    EXPECT_THAT(plain.why_no_tokens, HasSubstr("the driver gives none of this memory: STAND_IN"));

    std::byte *managed = nullptr, *pooled = nullptr, *pinned = nullptr;
    ASSERT_EQ(driver().allocate_managed(&managed, bytes, 1), 0);
    ASSERT_EQ(driver().allocate_of_pool(&pooled, bytes, nullptr), 0);
    ASSERT_EQ(driver().find<int(std::byte**, std::size_t, unsigned)>("cuMemHostAlloc")(&pinned, bytes, 0), 0);
    EXPECT_EQ(memory_info::of(*gpu, managed).maker, made_by::managed);
    EXPECT_TRUE(memory_info::of(*gpu, managed).cpu_can_access);
    const memory_info of_pool = memory_info::of(*gpu, pooled);
    EXPECT_EQ(of_pool.maker, made_by::pool);
    EXPECT_FALSE(of_pool.dma_buf);
    EXPECT_THAT(of_pool.why_no_dma_buf, HasSubstr("the driver exports none of this memory: STAND_IN"));
    const memory_info host = memory_info::of(*gpu, pinned);
    EXPECT_EQ(host.maker, made_by::host_alloc);
    EXPECT_TRUE(host.cpu_can_access);
    EXPECT_EQ(host.bytes, bytes);
    EXPECT_EQ(host.why_no_dma_buf, "it is no memory of a GPU");
    for (std::byte* const each : {managed, pooled, pinned})
        driver().release(each);

    const memory_info none = memory_info::of(*gpu, &none);
    EXPECT_EQ(none.maker, made_by::system);
    EXPECT_EQ(none.device, "");
    EXPECT_EQ(none.bytes, 0u);
    EXPECT_EQ(memory_info::of(*gpu, nullptr).maker, made_by::system);
    EXPECT_THAT(refusal(errc::invalid_argument, [&] { memory_info::of(cpu, memory); }),
                HasSubstr("device cpu is no GPU of CUDA"));
}

TEST_F(GpuMemoryInfo, TellsAMappingAndNotTheReservation)
{
    std::byte* reserved = nullptr;
    stand_in::handle physical = 0;
    ASSERT_EQ(driver().reserve(&reserved, 4 * bytes, 0, nullptr, 0), 0);
    EXPECT_EQ(memory_info::of(*gpu, reserved).maker, made_by::system) << "nothing is mapped";
    ASSERT_EQ(driver().create(&physical, bytes, nullptr, 0), 0);
    ASSERT_EQ(driver().map(reserved + bytes, bytes, 0, physical, 0), 0);
    const memory_info mapped = memory_info::of(*gpu, reserved + bytes + 77);
    EXPECT_EQ(mapped.maker, made_by::mem_map);
    EXPECT_EQ(mapped.begin, reinterpret_cast<std::uintptr_t>(reserved + bytes));
    EXPECT_EQ(mapped.bytes, bytes);
    EXPECT_NE(mapped.block_id, 0u);
    EXPECT_EQ(driver().unmap(reserved + bytes, bytes), 0);
    EXPECT_EQ(driver().end_reservation(reserved, 4 * bytes), 0);
}

/// Whatever the program copies there is there when the call returns, for a NIC that reads next.
TEST_F(GpuMemoryInfo, TellsWhetherCopiesAreSynchronous)
{
    driver().find<int(unsigned)>("cuCtxSetFlags")(0); // other tests may have set it
    EXPECT_FALSE(memory_info::of(*gpu, memory).synchronous_copies);
    {
        const weftio::memory adopted = gpu->adopt(memory, bytes);
        EXPECT_TRUE(memory_info::of(*gpu, memory).synchronous_copies);
    }
    std::byte* pooled = nullptr;
    ASSERT_EQ(driver().allocate_of_pool(&pooled, bytes, nullptr), 0);
    EXPECT_FALSE(memory_info::of(*gpu, pooled).synchronous_copies);
    {
        const weftio::memory adopted = gpu->adopt(pooled, bytes);
        EXPECT_TRUE(memory_info::of(*gpu, pooled).synchronous_copies) << "by the flag of its context";
    }
    driver().find<int(unsigned)>("cuCtxSetFlags")(0);
    driver().release(pooled);
}

} // namespace
} // namespace weftio::test
