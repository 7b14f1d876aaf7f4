// registration_cache for memory of GPUs: what is registered, and when it is not what it was. A stand-in is the driver.
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "nic/soft/dma/soft_dma.hpp"
#include "stand_in.hpp"
#include "unit/device/fixture.hpp"
#include "unit/files/scratch_file.hpp"
#include "unit/registrations/pages.hpp"
#include "weftio/dma.hpp"
#include "weftio/error.hpp"
#include "weftio/file.hpp"
#include "weftio/file_queue.hpp"
#include "weftio/memory.hpp"
#include "weftio/registration_cache.hpp"

namespace weftio::test {
namespace {

constexpr access writes = access::local_write;
constexpr access peer_writes = access::local_write | access::remote_write;
constexpr std::size_t kib = 1024;

/// Memory that a program has of cudaMalloc().
class allocation {
 public:
    explicit allocation(std::size_t bytes, int gpu = 0) : bytes_(bytes), gpu_(gpu) { come_back(gpu); }
    allocation(const allocation&) = delete;
    allocation& operator=(const allocation&) = delete;
    ~allocation() { go(); }

    std::byte* at(std::size_t offset = 0) const { return at_ + offset; }
    void go()
    {
        if (!at_)
            return;
        make_current(gpu_);
        EXPECT_EQ(driver().release(at_), 0);
        at_ = nullptr;
    }
    void come_back(int gpu)
    {
        make_current(gpu_ = gpu);
        EXPECT_EQ(driver().allocate(&at_, bytes_), 0);
    }
    void forget() { at_ = nullptr; }
    /// Other memory, at the same address.
    void change(int gpu = 0)
    {
        const std::byte* const before = at_;
        go();
        come_back(gpu);
        ASSERT_EQ(at_, before);
    }

 private:
    static void make_current(int gpu)
    {
        void* context = nullptr;
        driver().retain(&context, gpu);
        driver().set_current(context);
    }

    const std::size_t bytes_;
    int gpu_;
    std::byte* at_ = nullptr;
};

class GpuCache : public testing::Test {
 protected:
    void SetUp() override
    {
        if (!driver().opened)
            GTEST_SKIP() << "the driver of this machine is loaded, which the stand-in cannot be beside";
        driver().begin_anew();
        first.emplace(device::open("cuda:0"));
        second.emplace(device::open("cuda:1"));
        make_cache(0);
        keys_before = table.in_use();
    }
    void TearDown() override
    {
        if (driver().opened)
            driver().hold(false);
    }
    void make_cache(std::size_t budget)
    {
        cache.emplace(registration_cache_options{.on_revoked = [this](std::uint32_t key) {
            const std::scoped_lock lock(mutex);
            revoked.push_back(key);
        }});
        cache->register_with(engine);
        cache->register_with(null);
        cache->add_memory_of(*first, budget);
        cache->add_memory_of(*second, budget);
    }
    std::optional<keys::key_entry> entry(std::uint32_t key) const
    {
        auto& dma = dynamic_cast<nic::soft::soft_dma&>(detail::internals::backend(engine));
        const auto found = dma.keys().find(key);
        return found ? std::optional(found->entry) : std::nullopt;
    }
    std::string refusal_of(const void* address, std::size_t bytes, errc code, access rights = writes)
    {
        const std::uint32_t keys = table.in_use();
        const auto registrations = cache->counters().registrations;
        const error refused = error_of([&] { (void)cache->get(address, bytes, rights); });
        EXPECT_EQ(refused.code(), code) << refused.what();
        EXPECT_EQ(table.in_use(), keys);
        EXPECT_EQ(cache->counters().registrations, registrations);
        return refused.what();
    }

    port null = port::open("null", {.mode = engine_mode::inline_worker});
    dma_engine engine;
    std::optional<device> first, second;
    std::mutex mutex;
    std::vector<std::uint32_t> revoked;
    std::optional<registration_cache> cache;
    keys::key_table& table = core::undying<keys::key_table>();
    std::uint32_t keys_before = 0;
};

TEST_F(GpuCache, RegistersAWholeAllocationOnce)
{
    const allocation memory(100 * kib);
    std::uint32_t key = 0;
    {
        const registration part = cache->get(memory.at(5000), 10);
        key = part.lkey();
        EXPECT_TRUE(is_exactly(entry(key), memory.at(), 100 * kib, writes));
    }
    EXPECT_EQ(cache->get(memory.at(), 100 * kib, access::none).lkey(), key);
    EXPECT_EQ(cache->get(memory.at(100 * kib - 1), 1).lkey(), key);
    const registration_cache_counters counters = cache->counters();
    EXPECT_EQ(counters.misses, 1u);
    EXPECT_EQ(counters.hits, 2u);
    EXPECT_EQ(counters.registrations, 1u);
    EXPECT_EQ(table.in_use(), keys_before + 1);
    cache.reset();
    EXPECT_EQ(table.in_use(), keys_before);
}

TEST_F(GpuCache, CountsBlocksOf64KiB)
{
    const allocation memory(10 * kib);
    (void)cache->get(memory.at(), 1);
    const auto begin = reinterpret_cast<std::uintptr_t>(memory.at()), end = begin + 10 * kib;
    EXPECT_EQ(cache->counters().bytes, (end + 65535) / 65536 * 65536 - begin / 65536 * 65536);
    EXPECT_THAT(telemetry_of_caches(), testing::HasSubstr(R"("memory":"cuda:0","staleness":"buffer_id")"));
}

TEST_F(GpuCache, HasRemoteKeysOfExactlyTheBytes)
{
    const allocation memory(100 * kib);
    std::uint32_t key = 0;
    {
        const registration one = cache->get(memory.at(5000), 10, peer_writes);
        const registration two = cache->get(memory.at(5000), 10, peer_writes);
        key = one.rkey();
        EXPECT_TRUE(is_exactly(entry(key), memory.at(5000), 10, peer_writes));
        EXPECT_EQ(two.rkey(), key);
        EXPECT_EQ(one.rkey(engine), key);
        EXPECT_TRUE(is_exactly(entry(one.lkey()), memory.at(), 100 * kib, writes));
    }
    EXPECT_FALSE(entry(key));
    EXPECT_EQ(table.in_use(), keys_before + 1);
}

TEST_F(GpuCache, NeighborsStayApart)
{
    const allocation one(8 * kib), other(8 * kib);
    ASSERT_EQ(other.at(), one.at(8 * kib));
    EXPECT_NE(cache->get(one.at(), 1).lkey(), cache->get(other.at(), 1).lkey());
    EXPECT_EQ(cache->counters().registrations, 2u);
}

TEST_F(GpuCache, AsksForTheIdAtEveryHitOfAProgramsMemory)
{
    const allocation memory(100 * kib);
    (void)cache->get(memory.at(), 1);
    const auto before = driver().ids_asked();
    for (int hit = 0; hit < 5; ++hit)
        (void)cache->get(memory.at(), 1);
    EXPECT_EQ(driver().ids_asked(), before + 5);
}

TEST_F(GpuCache, AsksForNoIdOfItsDevicesMemoryUntilSomeIsFreed)
{
    const memory ours = first->allocate(100 * kib, memory_kind::device);
    auto other = std::optional(first->allocate(kib, memory_kind::device));
    const std::uint32_t key = cache->get(ours.device_address(), 1).lkey();
    const auto before = driver().ids_asked();
    EXPECT_EQ(cache->get(ours.device_address(), 1).lkey(), key);
    EXPECT_EQ(driver().ids_asked(), before);
    other.reset();
    EXPECT_EQ(cache->get(ours.device_address(), 1).lkey(), key);
    EXPECT_EQ(cache->get(ours.device_address(), 1).lkey(), key);
    EXPECT_EQ(driver().ids_asked(), before + 1);
}

/// Everything made from what was there ends, while handles have it.
TEST_F(GpuCache, EndsWhatIsStaleWhenOtherMemoryIsThere)
{
    allocation memory(100 * kib);
    const registration held = cache->get(memory.at(), 100, peer_writes);
    const registration other_bytes = cache->get(memory.at(50 * kib), 10, peer_writes);
    memory.change();
    const registration fresh = cache->get(memory.at(), 100);
    EXPECT_TRUE(is_exactly(entry(fresh.lkey()), memory.at(), 100 * kib, writes));
    EXPECT_NE(fresh.lkey(), held.lkey());
    EXPECT_FALSE(entry(held.lkey()));
    EXPECT_FALSE(entry(held.rkey()));
    EXPECT_FALSE(entry(other_bytes.rkey()));
    EXPECT_THAT(revoked, testing::UnorderedElementsAre(held.lkey(), held.rkey(), other_bytes.rkey()));
    EXPECT_EQ(cache->counters().invalidations, 1u);
    EXPECT_EQ(cache->counters().revocations, 3u);
}

TEST_F(GpuCache, EndsWhatIsStaleWhenARemoteKeyIsAskedFor)
{
    allocation memory(100 * kib);
    const registration held = cache->get(memory.at(), 100, peer_writes);
    memory.change();
    const registration fresh = cache->get(memory.at(), 100, peer_writes);
    EXPECT_NE(fresh.rkey(), held.rkey());
    EXPECT_FALSE(entry(held.rkey()));
    EXPECT_TRUE(entry(fresh.rkey()));
}

TEST_F(GpuCache, EndsWhatIsStaleWhenTheAddressIsAnotherGpus)
{
    allocation memory(100 * kib, 0);
    const registration held = cache->get(memory.at(), 100, peer_writes);
    memory.change(1);
    const registration fresh = cache->get(memory.at(), 100);
    EXPECT_EQ(entry(fresh.lkey())->device, &detail::internals::backend(*second));
    EXPECT_FALSE(entry(held.lkey()));
    EXPECT_FALSE(entry(held.rkey()));
}

/// What is asked for lies where nothing was registered.
TEST_F(GpuCache, EndsWhatIsStaleElsewhereInTheAllocation)
{
    for (const int gpu : {0, 1}) {
        driver().begin_anew();
        allocation one(8 * kib), two(8 * kib);
        std::byte* const begin = one.at();
        ASSERT_EQ(two.at(), begin + 8 * kib);
        const registration held = cache->get(two.at(), 1, peer_writes);
        one.go();
        two.go();
        const allocation both(16 * kib, gpu);
        ASSERT_EQ(both.at(), begin);
        const registration fresh = cache->get(both.at(), 1);
        EXPECT_TRUE(is_exactly(entry(fresh.lkey()), begin, 16 * kib, writes));
        EXPECT_FALSE(entry(held.lkey()));
        EXPECT_FALSE(entry(held.rkey()));
    }
}

TEST_F(GpuCache, EndsWhatIsStaleOfItsDevicesMemory)
{
    std::optional ours(first->allocate(100 * kib, memory_kind::device));
    const auto* const address = static_cast<std::byte*>(ours->device_address());
    const registration held = cache->get(address, 1);
    ours.reset();
    const allocation memory(100 * kib);
    ASSERT_EQ(memory.at(), address);
    EXPECT_NE(cache->get(address, 1).lkey(), held.lkey());
    EXPECT_FALSE(entry(held.lkey()));
}

TEST_F(GpuCache, RefusesWhatWasFreed)
{
    allocation memory(100 * kib);
    const std::byte* const address = memory.at();
    const registration held = cache->get(address, 1);
    memory.go();
    const error refused = error_of([&] { (void)cache->get(address, 1); });
    EXPECT_EQ(refused.code(), errc::not_reachable);
    EXPECT_THAT(refused.what(), testing::HasSubstr("no memory of a GPU (it was freed, or its context has ended)"));
    EXPECT_FALSE(entry(held.lkey()));
}

TEST_F(GpuCache, RefusesMemoryOfAContextThatHasEnded)
{
    allocation memory(100 * kib, 1);
    (void)cache->get(memory.at(), 1);
    ASSERT_EQ(driver().end_context(1), 0);
    const error refused = error_of([&] { (void)cache->get(memory.at(), 1); });
    EXPECT_THAT(refused.what(), testing::HasSubstr("no memory of a GPU (it was freed, or its context has ended)"));
    EXPECT_EQ(cache->counters().registrations, 0u);
    EXPECT_EQ(table.in_use(), keys_before);
    memory.forget();
}

TEST_F(GpuCache, RefusesManagedMemory)
{
    std::byte* managed = nullptr;
    const allocation any(kib); // makes a context current
    ASSERT_EQ(driver().allocate_managed(&managed, 100 * kib, 1), 0);
    EXPECT_THAT(refusal_of(managed, 1, errc::not_supported), testing::HasSubstr("is managed"));
    EXPECT_EQ(driver().release(managed), 0);
}

TEST_F(GpuCache, RefusesWhatIsBeyondAnAllocation)
{
    allocation one(8 * kib), other(8 * kib);
    allocation of_another_gpu(8 * kib, 1);
    ASSERT_EQ(of_another_gpu.at(), one.at(16 * kib));
    EXPECT_THAT(refusal_of(one.at(8 * kib - 1), 2, errc::invalid_argument),
                testing::HasSubstr("what follows is another allocation"));
    EXPECT_THAT(refusal_of(other.at(), 8 * kib + 1, errc::invalid_argument, peer_writes),
                testing::HasSubstr("what follows is memory of cuda:1"));
    other.go();
    EXPECT_THAT(refusal_of(one.at(), 16 * kib, errc::invalid_argument), testing::HasSubstr("what follows is free"));
}

TEST_F(GpuCache, RefusesMemoryOfAGpuThatWasNotAdded)
{
    cache.emplace(registration_cache_options{});
    cache->add_memory_of(*first);
    const allocation memory(kib, 1);
    EXPECT_THAT(refusal_of(memory.at(), 1, errc::not_reachable), testing::HasSubstr("is that of cuda:1"));
    EXPECT_THAT(error_of([&] { cache->add_memory_of(*first); }).what(), testing::HasSubstr("cuda:0 already"));
    EXPECT_THAT(error_of([&] { cache->add_memory_of(device::open("cpu")); }).what(),
                testing::HasSubstr("device cpu is no GPU"));
}

TEST_F(GpuCache, StillRegistersMemoryOfTheHost)
{
    const pages host(2);
    const memory pinned = first->allocate(kib, memory_kind::cpu_device);
    EXPECT_TRUE(is_exactly(entry(cache->get(host.at(0), 1).lkey()), host.at(0), page_bytes, writes));
    EXPECT_TRUE(entry(cache->get(pinned.cpu_address(), kib).lkey())->cpu);
    EXPECT_EQ(cache->counters().registrations, 2u);
    EXPECT_TRUE(cache->drained(host.at(0), page_bytes));
}

TEST_F(GpuCache, HasABudgetOfTheFreeBar1)
{
    EXPECT_THAT(telemetry_of_caches(), testing::HasSubstr(R"("budget_bytes":2415919104)")) << "3/4 of 3 GiB";
}

TEST_F(GpuCache, EvictsWhatNobodyHolds)
{
    make_cache(4 * 65536);
    const allocation one(60 * kib), two(60 * kib), three(60 * kib);
    const std::uint32_t first_key = cache->get(one.at(), 1).lkey();
    std::optional held(cache->get(two.at(), 1));
    const std::uint32_t held_key = held->lkey();
    const std::uint32_t last_key = cache->get(three.at(), 1).lkey();
    EXPECT_FALSE(entry(first_key));
    EXPECT_TRUE(entry(held_key));
    EXPECT_TRUE(entry(last_key));
    EXPECT_EQ(cache->counters().evictions, 1u);
    EXPECT_LE(cache->counters().bytes, 4 * 65536u);
    const registration also_held = cache->get(three.at(), 1);
    EXPECT_THAT(refusal_of(one.at(), 1, errc::out_of_memory), testing::HasSubstr("bytes of blocks of 64 KiB at"));
}

TEST_F(GpuCache, RefusesWhatExceedsItsBudget)
{
    make_cache(65536);
    const allocation memory(200 * kib);
    EXPECT_THAT(refusal_of(memory.at(), 1, errc::out_of_memory), testing::HasSubstr("more than the budget of 65536"));
    registration_cache other;
    EXPECT_EQ(error_of([&] { other.add_memory_of(*first, 65535); }).code(), errc::invalid_argument);
}

/// Threads whose memory goes and comes, at addresses that were others', on both GPUs; and some that all of them use.
TEST_F(GpuCache, IsRightWhileThreadsFreeAndAllocate)
{
    make_cache(20 * 65536);
    const allocation common(100 * kib);
    const auto work = [&](int gpu) {
        allocation own(40 * kib, gpu);
        for (int round = 0; round < 500; ++round) {
            const registration held = cache->get(own.at(), 100, peer_writes);
            ASSERT_TRUE(is_exactly(entry(held.rkey()), own.at(), 100, peer_writes));
            ASSERT_TRUE(is_exactly(entry(held.lkey()), own.at(), 40 * kib, writes));
            const registration shared = cache->get(common.at(static_cast<std::size_t>(round)), 1);
            ASSERT_TRUE(is_exactly(entry(shared.lkey()), common.at(), 100 * kib, writes));
            if (round % 3 == 0)
                cache->revoke(own.at(), 1);
            own.go();
            own.come_back(gpu);
        }
    };
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread)
        threads.emplace_back(work, thread % 2);
    for (std::thread& each : threads)
        each.join();
    cache->revoke(nullptr, SIZE_MAX);
    EXPECT_EQ(cache->counters().registrations, 0u);
    EXPECT_EQ(cache->counters().bytes, 0u);
    EXPECT_EQ(table.in_use(), keys_before);
}

/// Copies by the engine while the test holds the GPU's streams.
class GpuDrain : public GpuCache {
 protected:
    static constexpr std::size_t bytes = 100 * kib;

    weftio_dev_buf buffer_of(std::uint32_t key) const
    {
        return {.address = reinterpret_cast<weftio_u8*>(memory->at()), .bytes = bytes, .lkey_be = weftio_swap32(key)};
    }
    bool copy_by(std::uint32_t key)
    {
        std::memset(source.cpu_address(), 0x77, bytes);
        return queue.submit(dma_copy{.source = from.buffer(), .destination = buffer_of(key), .bytes = bytes})
            .has_value();
    }
    void SetUp() override
    {
        GpuCache::SetUp();
        if (!IsSkipped())
            memory.emplace(bytes);
    }

    std::optional<allocation> memory;
    device cpu = device::open("cpu");
    weftio::memory source = cpu.allocate(bytes, memory_kind::cpu_device);
    memory_region from{engine, source};
    dma_queue queue{engine, cpu, {.entries = 64}};
};

TEST_F(GpuDrain, RevokesWithoutWaitingForTheGpu)
{
    const registration held = cache->get(memory->at(), bytes, peer_writes);
    driver().hold(true);
    ASSERT_TRUE(copy_by(held.rkey()));
    ASSERT_TRUE(eventually([&] { return driver().held() == 2; })); // the copy, and the mark behind it
    EXPECT_TRUE(cache->drained(memory->at(), bytes)) << "its keys exist";
    EXPECT_EQ(cache->revoke(memory->at(), bytes), 2u);
    EXPECT_FALSE(entry(held.rkey()));
    EXPECT_FALSE(entry(held.lkey()));
    EXPECT_FALSE(cache->drained(memory->at(), bytes));
    EXPECT_FALSE(cache->drained(memory->at(bytes - 1), 1));
    EXPECT_TRUE(cache->drained(memory->at(bytes), 1)) << "other bytes";
    driver().hold(false);
    EXPECT_TRUE(eventually([&] { return cache->drained(memory->at(), bytes); }));
    ASSERT_TRUE(copy_by(held.rkey()));
    EXPECT_TRUE(eventually([&] { return queue.failed(); }));
    EXPECT_EQ(driver().held(), 0u);
}

TEST_F(GpuDrain, EndsHandlesWithoutWaitingForTheGpu)
{
    std::optional held(cache->get(memory->at(), bytes, peer_writes));
    driver().hold(true);
    ASSERT_TRUE(copy_by(held->rkey()));
    ASSERT_TRUE(eventually([&] { return driver().held() == 2; }));
    held.reset();
    EXPECT_FALSE(cache->drained(memory->at(), bytes));
    cache->invalidate(memory->at(), bytes);
    EXPECT_EQ(table.in_use(), keys_before);
    EXPECT_FALSE(cache->drained(memory->at(), bytes));
    driver().hold(false);
    EXPECT_TRUE(eventually([&] { return cache->drained(memory->at(), bytes); }));
}

/// The next copy to the address is found by no key that was there before.
TEST_F(GpuDrain, LetsNoCopyIntoOtherMemory)
{
    const auto copied_once = [&] { return weftio_dev_send_queue_completed(&queue.handle()->queue) == 1; };
    const registration held = cache->get(memory->at(), bytes, peer_writes);
    ASSERT_TRUE(copy_by(held.rkey()));
    ASSERT_TRUE(eventually(copied_once));
    memory->change();
    const registration fresh = cache->get(memory->at(), bytes, peer_writes);
    ASSERT_TRUE(copy_by(held.rkey()));
    EXPECT_TRUE(eventually([&] { return queue.failed(); }));
    EXPECT_THAT(std::vector<std::byte>(memory->at(), memory->at(bytes)), testing::Each(std::byte{0}));
    queue.reset();
    ASSERT_TRUE(copy_by(fresh.rkey()));
    EXPECT_TRUE(eventually(copied_once)) << "since the reset";
    EXPECT_THAT(std::vector<std::byte>(memory->at(), memory->at(bytes)), testing::Each(std::byte{0x77}));
}

/// A file is written from the memory, while the test holds the copy to the host.
TEST_F(GpuDrain, RevokesWithoutWaitingForAFileToBeWritten)
{
    const scratch_file scratch;
    const file_engine files;
    const file on(files, scratch.descriptor());
    cache.emplace(registration_cache_options{});
    cache->register_with(files);
    cache->add_memory_of(*first);
    file_queue of_file(files, cpu, {.entries = 64});
    const registration held = cache->get(memory->at(), bytes);
    driver().hold(true);
    ASSERT_TRUE(of_file.submit_write({.file = on.key(), .buffer = buffer_of(held.lkey()), .bytes = bytes}));
    ASSERT_TRUE(eventually([&] { return driver().held() == 2; }));
    EXPECT_EQ(cache->revoke(memory->at(), bytes), 1u);
    EXPECT_FALSE(cache->drained(memory->at(), bytes));
    driver().hold(false);
    EXPECT_TRUE(eventually([&] { return cache->drained(memory->at(), bytes); }));
}

} // namespace
} // namespace weftio::test
