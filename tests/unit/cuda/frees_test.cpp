// registration_cache that sees frees of GPU memory: by whatever function and pointer, before the driver acts. A
// stand-in is the driver.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "devices/cuda/free_watch.hpp"
#include "nic/soft/dma/soft_dma.hpp"
#include "stand_in.hpp"
#include "static_runtime.hpp"
#include "unit/device/fixture.hpp"
#include "unit/registrations/pages.hpp"
#include "weftio/dma.hpp"
#include "weftio/error.hpp"
#include "weftio/memory.hpp"
#include "weftio/port.hpp"
#include "weftio/registration_cache.hpp"

namespace weftio::test {
namespace {

constexpr access peer_writes = access::local_write | access::remote_write;
constexpr std::size_t bytes = std::size_t{64} << 10;
constexpr int buffer_id = 7;

bool is_known(const void* address)
{
    unsigned long long id = 0;
    return driver().ask(&id, buffer_id, address) == 0;
}

void make_current(int gpu)
{
    void* context = nullptr;
    driver().retain(&context, gpu);
    driver().set_current(context);
}

std::byte* allocate(int gpu = 0)
{
    std::byte* made = nullptr;
    make_current(gpu);
    EXPECT_EQ(driver().allocate(&made, bytes), 0);
    return made;
}

class GpuFreesSeen : public testing::Test {
 protected:
    void SetUp() override
    {
        if (!driver().opened)
            GTEST_SKIP() << "the driver of this machine is loaded, which the stand-in cannot be beside";
        ASSERT_TRUE(static_runtime::start()) << "as programs do long before a cache is there";
        driver().begin_anew();
        first.emplace(device::open("cuda:0"));
        second.emplace(device::open("cuda:1"));
        make_cache();
    }
    void make_cache()
    {
        cache.emplace(registration_cache_options{.staleness_of_gpus = gpu_staleness::seen_frees,
                                                 .on_revoked = [this](std::uint32_t key) { note(key); }});
        cache->register_with(engine);
        cache->add_memory_of(*first);
        cache->add_memory_of(*second);
    }
    void note(std::uint32_t key)
    {
        const std::scoped_lock lock(mutex);
        revoked.push_back(key);
        if (watched && !is_known(watched))
            ++too_late;
    }
    std::optional<keys::key_entry> entry(std::uint32_t key) const
    {
        auto& dma = dynamic_cast<nic::soft::soft_dma&>(detail::internals::backend(engine));
        const auto found = dma.keys().find(key);
        return found ? std::optional(found->entry) : std::nullopt;
    }
    /// Frees memory of which a handle is held, and looks at its keys without asking the cache.
    void expect_seen(std::byte* memory, const std::function<int()>& free)
    {
        const registration held = cache->get(memory, 100, peer_writes);
        const std::uint32_t local = held.lkey(), remote = held.rkey();
        ASSERT_TRUE(entry(local) && entry(remote));
        watched = memory;
        EXPECT_EQ(free(), 0);
        EXPECT_FALSE(entry(local));
        EXPECT_FALSE(entry(remote));
        EXPECT_THAT(revoked, testing::UnorderedElementsAre(local, remote));
        watched = nullptr;
    }

    const port null = port::open("null", {.mode = engine_mode::inline_worker}); // and DPDK, for telemetry
    dma_engine engine;
    std::optional<device> first, second;
    std::mutex mutex;
    std::vector<std::uint32_t> revoked;
    const void* watched = nullptr; ///< is there still when its keys are revoked
    unsigned too_late = 0;
    std::optional<registration_cache> cache;
};

/// A way to free an allocation.
struct way {
    const char* name;
    int (*free)(std::byte*);
};

void PrintTo(const way& printed, std::ostream* out)
{
    *out << printed.name;
}

const way ways[] = {
    {"cuMemFree_v2", [](std::byte* at) { return driver().release(at); }},
    {"cuMemFree of a table", [](std::byte* at) { return driver().table<int(std::byte*)>("cuMemFree", 3020)(at); }},
    {"cuMemFree of a table, a thread's",
     [](std::byte* at) { return driver().table<int(std::byte*)>("cuMemFree", 3020, 2)(at); }},
    {"static cudaFree", [](std::byte* at) { return static_runtime::free(at); }},
    {"cuMemFreeAsync", [](std::byte* at) { return driver().free_in_order(at, nullptr); }},
    {"cuMemFreeAsync_ptsz", [](std::byte* at) { return driver().free_in_order_of_thread(at, nullptr); }},
    {"cuMemFreeAsync of a table",
     [](std::byte* at) { return driver().table<int(std::byte*, void*)>("cuMemFreeAsync", 11020)(at, nullptr); }},
    {"static cudaFreeAsync", [](std::byte* at) { return static_runtime::free_in_order(at); }},
    {"cuIpcCloseMemHandle", [](std::byte* at) { return driver().close_ipc(at); }},
    {"cuDevicePrimaryCtxReset_v2", [](std::byte*) { return driver().end_context(0); }},
    {"cuDevicePrimaryCtxReset", [](std::byte*) { return driver().end_context_1(0); }},
    {"cuDevicePrimaryCtxReset of a table",
     [](std::byte*) { return driver().table<int(int)>("cuDevicePrimaryCtxReset", 11000)(0); }},
    {"static cudaDeviceReset", [](std::byte*) { return static_runtime::reset_device(0); }},
};

class GpuFreesBy : public GpuFreesSeen, public testing::WithParamInterface<way> {};

} // namespace

TEST_P(GpuFreesBy, RevokesBeforeTheDriverActs)
{
    std::byte* const stays = allocate(1);
    const registration other = cache->get(stays, 100, peer_writes);
    std::byte* const memory = allocate();
    expect_seen(memory, [&] { return GetParam().free(memory); });
    EXPECT_EQ(too_late, 0u);
    EXPECT_FALSE(is_known(memory));
    EXPECT_TRUE(entry(other.rkey())) << "memory of another GPU";
    EXPECT_EQ(driver().release(stays), 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, GpuFreesBy, testing::ValuesIn(ways));

TEST_F(GpuFreesSeen, SeesMappingsThatEnd)
{
    using unmap_function = int(std::byte*, std::size_t);
    const std::function<int(std::byte*)> unmaps[] = {
        [](std::byte* at) { return driver().unmap(at, bytes); },
        [](std::byte* at) { return driver().table<unmap_function>("cuMemUnmap", 10020)(at, bytes); },
        [](std::byte* at) { return static_runtime::unmap(at, bytes); }};
    std::byte* at = nullptr;
    make_current(0);
    ASSERT_EQ(driver().reserve(&at, bytes, 0, nullptr, 0), 0);
    for (const auto& unmap : unmaps) {
        unsigned long long what = 0;
        ASSERT_EQ(driver().create(&what, bytes, nullptr, 0), 0);
        ASSERT_EQ(driver().map(at, bytes, 0, what, 0), 0);
        ASSERT_EQ(driver().allow(at, bytes, nullptr, 0), 0);
        revoked.clear();
        expect_seen(at, [&] { return unmap(at); });
    }
    EXPECT_EQ(driver().end_reservation(at, bytes), 0);
}

TEST_F(GpuFreesSeen, SeesContextsThatEnd)
{
    for (int (*const destroy)(void*) : {driver().destroy_context, driver().destroy_context_1}) {
        std::byte* const of_primary = allocate();
        const registration stays = cache->get(of_primary, 1, peer_writes);
        void* own = nullptr;
        std::byte* memory = nullptr;
        ASSERT_EQ(driver().make_context(&own, 0, 0), 0);
        ASSERT_EQ(driver().allocate(&memory, bytes), 0);
        revoked.clear();
        expect_seen(memory, [&] { return destroy(own); });
        EXPECT_TRUE(entry(stays.rkey())) << "memory of another context";
        EXPECT_EQ(cache->get(of_primary, 1).lkey(), stays.lkey());
        make_current(0);
        EXPECT_EQ(driver().release(of_primary), 0);
    }
    EXPECT_EQ(too_late, 0u);
}

/// The cache has a reference of its own: only a program that gives back more than it took ends the context.
TEST_F(GpuFreesSeen, SeesTheLastReleaseOfAPrimaryContext)
{
    std::byte* const memory = allocate();
    const registration held = cache->get(memory, 1, peer_writes);
    while (driver().retained(0) > 1)
        ASSERT_EQ(driver().release_context(0), 0);
    EXPECT_TRUE(entry(held.rkey()));
    EXPECT_EQ(cache->get(memory, 1).lkey(), held.lkey());
    ASSERT_EQ(driver().release_context(0), 0);
    EXPECT_FALSE(entry(held.rkey()));
    EXPECT_FALSE(entry(held.lkey()));
    void* context = nullptr;
    driver().retain(&context, 0); // the device's own
}

TEST_F(GpuFreesSeen, HitsAskTheDriverNothing)
{
    std::byte* const memory = allocate();
    const weftio::memory ours = first->allocate(bytes, memory_kind::device);
    std::byte* mapped = nullptr;
    unsigned long long what = 0;
    ASSERT_EQ(driver().reserve(&mapped, bytes, 0, nullptr, 0), 0);
    ASSERT_EQ(driver().create(&what, bytes, nullptr, 0), 0);
    ASSERT_EQ(driver().map(mapped, bytes, 0, what, 0), 0);
    const void* const all[] = {memory, ours.device_address(), mapped};
    for (const void* const each : all) {
        const registration held = cache->get(each, 1, peer_writes);
        const auto before = driver().attributes_asked();
        for (int hit = 0; hit < 5; ++hit)
            EXPECT_EQ(cache->get(each, 1, peer_writes).rkey(), held.rkey());
        EXPECT_EQ(cache->get(each, 1).lkey(), held.lkey());
        EXPECT_EQ(driver().attributes_asked(), before);
    }
    std::byte* const other = allocate();
    EXPECT_EQ(driver().release(other), 0);
    const auto before = driver().attributes_asked();
    for (const void* const each : all)
        (void)cache->get(each, 1);
    EXPECT_EQ(driver().attributes_asked(), before) << "a free of other memory was seen, too";
    EXPECT_THAT(telemetry_of_caches(), testing::HasSubstr(R"("memory":"cuda:0","staleness":"seen_frees")"));
    EXPECT_EQ(driver().unmap(mapped, bytes), 0);
    EXPECT_EQ(driver().end_reservation(mapped, bytes), 0);
    EXPECT_EQ(driver().release(memory), 0);
}

/// It may have ended memory of which nobody says where it was.
TEST_F(GpuFreesSeen, HitsAskOnceAfterAModuleWasUnloaded)
{
    std::byte* const memory = allocate();
    const std::uint32_t key = cache->get(memory, 1).lkey();
    EXPECT_EQ(driver().unload(nullptr), 0);
    const auto before = driver().attributes_asked();
    for (int hit = 0; hit < 3; ++hit)
        EXPECT_EQ(cache->get(memory, 1).lkey(), key);
    EXPECT_EQ(driver().attributes_asked(), before + 1);
    EXPECT_EQ(driver().release(memory), 0);
}

TEST_F(GpuFreesSeen, EndsKeysOfPagesThatWereDropped)
{
    std::byte* const memory = allocate();
    const registration held = cache->get(memory + 5000, 10, peer_writes);
    cache->invalidate(memory, 1);
    const registration exact = cache->get(memory + 6000, 10, peer_writes);
    cache->invalidate(memory + 6000, 1);
    EXPECT_TRUE(entry(held.rkey()) && entry(exact.rkey()));
    EXPECT_EQ(driver().release(memory), 0);
    EXPECT_FALSE(entry(held.rkey()));
    EXPECT_FALSE(entry(exact.rkey()));
}

TEST_F(GpuFreesSeen, SeesWhatTheDeviceFrees)
{
    std::optional ours(first->allocate(bytes, memory_kind::device));
    const registration held = cache->get(ours->device_address(), 1, peer_writes);
    ours.reset();
    EXPECT_FALSE(entry(held.lkey()));
    EXPECT_FALSE(entry(held.rkey()));
}

TEST_F(GpuFreesSeen, TakesAFreeThatTheDriverRefusesForNothing)
{
    std::byte* const memory = allocate();
    const registration held = cache->get(memory, 1, peer_writes);
    EXPECT_NE(driver().release(memory + 100), 0) << "the allocation does not begin there";
    EXPECT_NE(driver().release(nullptr), 0);
    EXPECT_TRUE(entry(held.lkey()));
    EXPECT_EQ(cache->get(memory, 1).lkey(), held.lkey());
    EXPECT_EQ(driver().release(memory), 0);
}

/// A copy that a peer's key has begun is over, or its key is refused: no byte of it is in the memory that comes next.
TEST_F(GpuFreesSeen, LetNoCopyIntoOtherMemory)
{
    const device cpu = device::open("cpu");
    dma_queue queue(engine, cpu, {.entries = 64});
    const memory source = cpu.allocate(bytes, memory_kind::cpu_device);
    memory_region from(source);
    from.register_with(engine);
    std::memset(source.cpu_address(), 0x77, bytes);
    std::byte* const memory = allocate();
    const registration held = cache->get(memory, bytes, peer_writes);
    const auto copy = [&] {
        return queue.submit(dma_copy{.source = from.buffer(),
                                     .destination = {.address = reinterpret_cast<weftio_u8*>(memory),
                                                     .bytes = bytes,
                                                     .lkey_be = weftio_swap32(held.rkey())},
                                     .bytes = bytes});
    };
    ASSERT_TRUE(copy());
    ASSERT_TRUE(eventually([&] { return weftio_dev_send_queue_completed(&queue.handle()->queue) == 1; }));
    EXPECT_EQ(memory[0], std::byte{0x77});
    EXPECT_EQ(driver().release(memory), 0);
    std::byte* const next = allocate();
    ASSERT_EQ(next, memory);
    ASSERT_TRUE(copy());
    EXPECT_TRUE(eventually([&] { return queue.failed(); }));
    EXPECT_THAT(std::vector<std::byte>(next, next + bytes), testing::Each(std::byte{0}));
    const registration fresh = cache->get(next, bytes, peer_writes);
    EXPECT_NE(fresh.rkey(), held.rkey());
    EXPECT_EQ(driver().release(next), 0);
}

TEST_F(GpuFreesSeen, MayFreeOtherMemoryWhereKeysAreRevoked)
{
    std::byte *const memory = allocate(), *const other = allocate();
    const registration of_other = [&] {
        cache.emplace(registration_cache_options{.staleness_of_gpus = gpu_staleness::seen_frees,
                                                 .on_revoked = [this, other](std::uint32_t key) {
                                                     note(key);
                                                     if (revoked.size() == 1) {
                                                         EXPECT_EQ(driver().release(other), 0);
                                                     }
                                                 }});
        cache->register_with(engine);
        cache->add_memory_of(*first);
        return cache->get(other, 1);
    }();
    const registration held = cache->get(memory, 1);
    EXPECT_EQ(driver().release(memory), 0);
    EXPECT_FALSE(entry(held.lkey()));
    EXPECT_FALSE(entry(of_other.lkey()));
    EXPECT_THAT(revoked, testing::ElementsAre(held.lkey(), of_other.lkey()));
}

namespace {

/// The first bytes of the driver's functions.
std::vector<std::byte> code()
{
    std::vector<std::byte> all;
    const void* const functions[] = {reinterpret_cast<const void*>(driver().release),
                                     reinterpret_cast<const void*>(driver().unmap),
                                     reinterpret_cast<const void*>(driver().free_in_order),
                                     reinterpret_cast<const void*>(driver().destroy_context),
                                     reinterpret_cast<const void*>(driver().end_context),
                                     reinterpret_cast<const void*>(driver().release_context),
                                     reinterpret_cast<const void*>(driver().end_context_1),
                                     reinterpret_cast<const void*>(driver().unload),
                                     reinterpret_cast<const void*>(driver().table<int(std::byte*)>("cuMemFree", 3020))};
    for (const void* const each : functions) {
        const auto* const bytes_of = static_cast<const std::byte*>(each);
        all.insert(all.end(), bytes_of, bytes_of + 32);
    }
    return all;
}

} // namespace

TEST_F(GpuFreesSeen, LeaveTheDriverAsItWasWithTheLastCache)
{
    const std::vector<std::byte> with = code();
    std::optional<registration_cache> other(registration_cache_options{.staleness_of_gpus = gpu_staleness::seen_frees});
    other->add_memory_of(*first);
    EXPECT_EQ(code(), with);
    cache.reset();
    EXPECT_EQ(code(), with);
    other.reset();
    const std::vector<std::byte> without = code();
    EXPECT_NE(without, with);
    registration_cache asks;
    asks.add_memory_of(*first);
    EXPECT_EQ(code(), without) << "it is not asked for";
    make_cache();
    EXPECT_EQ(code(), with);
}

TEST_F(GpuFreesSeen, GoWithTheCache)
{
    std::byte* const memory = allocate();
    const registration held = cache->get(memory, 1, peer_writes);
    cache.reset();
    EXPECT_EQ(driver().release(memory), 0);
    EXPECT_TRUE(revoked.empty());
    EXPECT_TRUE(entry(held.rkey())) << "of a handle whose cache is gone";
}

TEST_F(GpuFreesSeen, DoNothingInAChild)
{
    std::byte* const memory = allocate();
    const registration held = cache->get(memory, 1, peer_writes);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(driver().release(memory) == 0 && revoked.empty() ? 0 : 1);
    }
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(entry(held.rkey()));
    EXPECT_EQ(driver().release(memory), 0);
}

/// A get() while the same memory is freed asks the driver later on, until it is certain.
TEST_F(GpuFreesSeen, AreRightWhileThreadsFreeAndAllocate)
{
    std::byte* const common = allocate();
    std::atomic<unsigned> wrong{0};
    const auto work = [&](int gpu) {
        for (int round = 0; round < 300; ++round) {
            std::byte* const own = allocate(gpu);
            const registration held = cache->get(own, 100, peer_writes);
            wrong += is_exactly(entry(held.rkey()), own, 100, peer_writes) ? 0 : 1;
            wrong += is_exactly(entry(cache->get(common, 1).lkey()), common, bytes, access::local_write) ? 0 : 1;
            wrong += static_runtime::free(own) == 0 && !entry(held.rkey()) && !entry(held.lkey()) ? 0 : 1;
        }
    };
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread)
        threads.emplace_back(work, thread % 2);
    for (std::thread& each : threads)
        each.join();
    EXPECT_EQ(wrong.load(), 0u);
    EXPECT_EQ(cache->counters().registrations, 1u);
    const auto before = driver().attributes_asked();
    (void)cache->get(common, 1);
    (void)cache->get(common, 1);
    EXPECT_LE(driver().attributes_asked(), before + 1);
    make_current(0);
    EXPECT_EQ(driver().release(common), 0);
}

TEST_F(GpuFreesSeen, ComeAndGoWhileThreadsFree)
{
    cache.reset();
    std::atomic<bool> over{false};
    std::atomic<unsigned> failed{0}, freed{0};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 2; ++thread)
        threads.emplace_back([&, thread] {
            while (!over.load()) {
                failed += driver().release(allocate(thread)) == 0 ? 0 : 1;
                ++freed;
                std::this_thread::yield();
            }
        });
    for (int round = 0; round < 100; ++round) {
        registration_cache each(registration_cache_options{.staleness_of_gpus = gpu_staleness::seen_frees});
        each.add_memory_of(*first);
    }
    EXPECT_TRUE(eventually([&] { return freed.load() > 100; }));
    over = true;
    for (std::thread& each : threads)
        each.join();
    EXPECT_EQ(failed.load(), 0u);
}

} // namespace weftio::test
