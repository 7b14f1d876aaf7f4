// The userfault monitor: which calls of which allocators it sees, and that nobody gets a stale registration.
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "fleeting_memory.hpp"
#include "pages.hpp"
#include "patience.hpp"
#include "registrations/userfault.hpp"
#include "sanitized.hpp"
#include "unit/device/fixture.hpp"
#include "weftio/error.hpp"

namespace weftio::test {
namespace {

#ifdef WEFTIO_TEST_SANITIZED
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

constexpr access peer_writes = access::local_write | access::remote_write;

/// Why this system has no userfaultfd with events; empty if it has.
std::string refusal_of_userfaultfd()
{
    try {
        registration_cache({.staleness = registration_staleness::userfault});
        return {};
    } catch (const error& refused) {
        return refused.what();
    }
}

class Userfault : public testing::Test {
 protected:
    void SetUp() override
    {
        if (const std::string why = refusal_of_userfaultfd(); !why.empty())
            GTEST_SKIP() << why;
        cache.emplace(null, registration_cache_options{.staleness = registration_staleness::userfault});
    }

    port null = port::open("null");
    std::optional<registration_cache> cache;
};

/// A row of the table in docs/memory.md. Bytes are registered, and then something happens to them.
struct row {
    const char* name;
    std::size_t bytes;
    std::function<void*(std::size_t bytes)> make; ///< nullptr: this system has none
    std::function<void(void* at, std::size_t bytes)> change;
    bool seen;
};
void PrintTo(const row& row, std::ostream* out)
{
    *out << row.name;
}

void* anonymous(std::size_t bytes, int flags = MAP_PRIVATE)
{
    void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? nullptr : at;
}

void* of_memfd(std::size_t bytes, int* file)
{
    *file = memfd_create("userfault", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(*file, static_cast<off_t>(bytes)), 0);
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
}

/// A function of an allocator that is loaded beside that of the program.
template <class Function>
Function of_library(const char* library, const char* name)
{
    void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    return handle ? reinterpret_cast<Function>(dlsym(handle, name)) : nullptr;
}

void* allocated_by(const char* library, std::size_t bytes)
{
    if (sanitized) // they replace what a sanitizer replaces
        return nullptr;
    const auto allocate = of_library<void* (*)(std::size_t)>(library, "malloc");
    return allocate ? std::memset(allocate(bytes), 1, bytes) : nullptr;
}
void free_by(const char* library, void* at)
{
    of_library<void (*)(void*)>(library, "free")(at);
}

int truncated_file = -1;
constexpr const char *jemalloc = "libjemalloc.so.2", *tcmalloc = "libtcmalloc_minimal.so.4";
constexpr std::size_t mebibyte = 1 << 20;

void unmap(void* at, std::size_t bytes)
{
    EXPECT_EQ(munmap(at, bytes), 0);
}

/// Memory of hugetlbfs; nullptr: the system has none that is free.
void* huge_pages(std::size_t bytes, int flags)
{
    return anonymous(bytes, flags | MAP_HUGETLB);
}

constexpr int guard_install = 102, guard_remove = 103; ///< of madvise(), from Linux 6.13 on

const std::array<row, 21> rows{{
    {"FreeAboveTheMmapThreshold", 40 * mebibyte,
     [](std::size_t bytes) { return sanitized ? nullptr : std::malloc(bytes); },
     [](void* at, std::size_t) { std::free(at); }, true},
    {"FreeBelowTheMmapThreshold", 1000, [](std::size_t bytes) { return std::malloc(bytes); },
     [](void* at, std::size_t) { std::free(at); }, false},
    {"Jemalloc", 8 * mebibyte, [](std::size_t bytes) { return allocated_by(jemalloc, bytes); },
     [](void* at, std::size_t) {
         free_by(jemalloc, at);
         using control = int (*)(const char*, void*, std::size_t*, void*, std::size_t);
         of_library<control>(jemalloc, "mallctl")("arena.4096.purge", nullptr, nullptr, nullptr, 0);
     },
     true},
    {"Tcmalloc", 8 * mebibyte, [](std::size_t bytes) { return allocated_by(tcmalloc, bytes); },
     [](void* at, std::size_t) {
         free_by(tcmalloc, at);
         of_library<void (*)()>(tcmalloc, "MallocExtension_ReleaseFreeMemory")();
     },
     true},
    {"Munmap", 65536, [](std::size_t bytes) { return anonymous(bytes); }, unmap, true},
    {"MunmapOfAPart", 65536, [](std::size_t bytes) { return anonymous(bytes); },
     [](void* at, std::size_t) { unmap(static_cast<std::byte*>(at) + 16384, 4096); }, true},
    {"SystemCalls", 65536,
     [](std::size_t bytes) {
         return reinterpret_cast<void*>(
             syscall(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
     },
     [](void* at, std::size_t bytes) { EXPECT_EQ(syscall(SYS_munmap, at, bytes), 0); }, true},
    {"MapOver", 65536, [](std::size_t bytes) { return anonymous(bytes); },
     [](void* at, std::size_t bytes) {
         EXPECT_EQ(mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), at);
     },
     true},
    {"Brk", 65536,
     [](std::size_t bytes) {
         const auto end = reinterpret_cast<std::uintptr_t>(sbrk(0)); // the next page begins a piece of its own
         void* const at = sbrk(static_cast<std::intptr_t>(bytes + (0 - end) % 4096));
         return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(at) + 4095) / 4096 * 4096);
     },
     [](void* at, std::size_t bytes) {
         ASSERT_EQ(sbrk(0), static_cast<std::byte*>(at) + bytes);
         EXPECT_NE(sbrk(-static_cast<std::intptr_t>(bytes)), reinterpret_cast<void*>(-1));
     },
     true},
    {"MremapThatMoves", 65536, [](std::size_t bytes) { return anonymous(bytes); },
     [](void* at, std::size_t bytes) {
         EXPECT_NE(mremap(at, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, lonely_address()), MAP_FAILED);
     },
     true},
    {"MadviseDontneed", 65536, [](std::size_t bytes) { return anonymous(bytes); },
     [](void* at, std::size_t bytes) { EXPECT_EQ(madvise(at, bytes, MADV_DONTNEED), 0); }, true},
    {"MremapThatLeavesItsPlaceEmpty", 65536, [](std::size_t bytes) { return anonymous(bytes); },
     [](void* at, std::size_t bytes) {
         EXPECT_NE(mremap(at, bytes, bytes, MREMAP_MAYMOVE | 4 /* MREMAP_DONTUNMAP */, nullptr), MAP_FAILED);
     },
     true},
    {"MremapOnto", 65536, [](std::size_t bytes) { return anonymous(bytes); },
     [](void* at, std::size_t bytes) {
         EXPECT_EQ(mremap(anonymous(bytes), bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at), at);
     },
     true},
    {"MadviseGuard", 65536,
     [](std::size_t bytes) {
         void* const at = anonymous(bytes);
         return madvise(at, 4096, guard_install) == 0 && madvise(at, 4096, guard_remove) == 0 ? at : nullptr;
     },
     [](void* at, std::size_t bytes) {
         EXPECT_EQ(madvise(at, bytes, guard_install), 0);
         EXPECT_EQ(madvise(at, bytes, guard_remove), 0);
     },
     false},
    {"PartOfAHugePage", 65536, [](std::size_t) { return huge_pages(2 * mebibyte, MAP_PRIVATE); },
     [](void* at, std::size_t) { unmap(at, 2 * mebibyte); }, true},
    {"PartOfASharedHugePage", 65536, [](std::size_t) { return huge_pages(2 * mebibyte, MAP_SHARED); },
     [](void* at, std::size_t) { unmap(at, 2 * mebibyte); }, true},
    {"SharedMemory", 65536, [](std::size_t bytes) { return anonymous(bytes, MAP_SHARED); }, unmap, true},
    {"TransparentHugePages", 8 * mebibyte,
     [](std::size_t bytes) {
         void* const at = anonymous(bytes);
         madvise(at, bytes, MADV_HUGEPAGE);
         return at;
     },
     unmap, true},
    {"TruncatedFile", 65536, [](std::size_t bytes) { return of_memfd(bytes, &truncated_file); },
     [](void*, std::size_t) {
         EXPECT_EQ(ftruncate(truncated_file, 0), 0);
         close(truncated_file);
     },
     false},
    {"Mprotect", 65536, [](std::size_t bytes) { return anonymous(bytes); },
     [](void* at, std::size_t bytes) { EXPECT_EQ(mprotect(at, bytes, PROT_READ), 0); }, false},
    {"ForkedChildThatUnmaps", 65536, [](std::size_t bytes) { return anonymous(bytes); },
     [](void* at, std::size_t bytes) {
         const pid_t child = fork();
         if (child == 0)
             _exit(munmap(at, bytes) == 0 ? 0 : 1);
         int status = -1;
         EXPECT_EQ(waitpid(child, &status, 0), child);
         EXPECT_EQ(status, 0);
     },
     false},
}};

class UserfaultTable : public Userfault, public testing::WithParamInterface<row> {};

TEST_P(UserfaultTable, SeesWhatItSays)
{
    const row& what = GetParam();
    void* const at = what.make(what.bytes);
    if (!at)
        GTEST_SKIP() << "this system, or a sanitizer, has no such memory";
    const pages other(1);
    (void)cache->get(other.at(0), 1);
    registration held = cache->get(at, what.bytes, peer_writes);
    const std::uint32_t key = held.rkey();
    ASSERT_TRUE(entry_of(null, key));
    what.change(at, what.bytes);
    (void)cache->get(other.at(0), 1); // takes up what has happened until now
    EXPECT_EQ(cache->counters().invalidations, what.seen ? 1u : 0u);
    if (what.seen) {
        EXPECT_TRUE(eventually([&] { return !entry_of(null, key); })) << "a peer could write what is mapped there next";
    } else {
        EXPECT_TRUE(entry_of(null, key));
        EXPECT_EQ(cache->get(at, what.bytes, peer_writes).rkey(), key);
    }
}
INSTANTIATE_TEST_SUITE_P(Rows, UserfaultTable, testing::ValuesIn(rows),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(Userfault, GivesNoRegistrationOfMemoryThatHasComeBackAtTheSameAddress)
{
    fleeting_memory memory(leaving::unmapped);
    for (int round = 0; round < 300; ++round) {
        const registration local = cache->get(memory.data(), memory.bytes());
        const registration before = cache->get(memory.data() + 1, 100, peer_writes);
        memory.go();
        memory.come_back();
        const registration after = cache->get(memory.data() + 1, 100, peer_writes); // at once
        ASSERT_NE(after.lkey(), local.lkey()) << round;
        ASSERT_NE(after.rkey(), before.rkey()) << round;
    }
}

TEST_F(Userfault, TellsOfKeysThatHandlesHave)
{
    std::atomic<std::uint32_t> told{0};
    cache.emplace(null, registration_cache_options{.staleness = registration_staleness::userfault,
                                                   .on_revoked = [&](std::uint32_t rkey) { told = rkey; }});
    fleeting_memory memory(leaving::unmapped);
    const registration held = cache->get(memory.data(), 10, peer_writes);
    memory.go();
    EXPECT_TRUE(eventually([&] { return told == held.rkey(); }));
    EXPECT_FALSE(entry_of(null, held.rkey()));
    EXPECT_EQ(cache->counters().revocations, 1u);
}

TEST_F(Userfault, RefusesPagesOfAFileOfShmatAndOfAnotherWatcher)
{
    const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    void* const at = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, file, 0);
    const error of_file = error_of([&] { (void)cache->get(at, 1, access::none); });
    EXPECT_EQ(of_file.code(), errc::not_supported);
    EXPECT_THAT(of_file.what(), testing::HasSubstr("cannot be watched by userfaultfd"));
    munmap(at, 4096);
    close(file);
    const int segment = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
    void* const attached = shmat(segment, nullptr, 0);
    shmctl(segment, IPC_RMID, nullptr);
    EXPECT_EQ(error_of([&] { (void)cache->get(attached, 1); }).code(), errc::not_supported);
    EXPECT_EQ(shmdt(attached), 0);
    EXPECT_EQ(cache->counters().registrations, 0u);
    const pages memory(1);
    const registration held = cache->get(memory.at(0), 1);
    registration_cache other({.staleness = registration_staleness::userfault});
    const error taken = error_of([&] { (void)other.get(memory.at(0), 1); });
    EXPECT_EQ(taken.code(), errc::in_use);
    EXPECT_THAT(taken.what(), testing::HasSubstr("another userfaultfd of the process watches them; use"));
    EXPECT_EQ(other.counters().registrations, 0u);
}

/// The system divides a mapping where watched pages begin and end. As docs/guide.md says.
TEST_F(Userfault, MremapRefusesAMappingOfWhichAPartIsWatched)
{
    constexpr std::size_t bytes = 16 * 4096;
    void* const at = anonymous(bytes);
    const registration held = cache->get(static_cast<std::byte*>(at) + 4096, 4096);
    EXPECT_EQ(mremap(at, bytes, 2 * bytes, MREMAP_MAYMOVE), MAP_FAILED);
    EXPECT_EQ(errno, EFAULT);
    unmap(at, bytes);
    void* const allocated = std::memset(std::malloc(mebibyte), 7, mebibyte);
    const registration part = cache->get(static_cast<std::byte*>(allocated) + 8192, 4096);
    auto* const longer = static_cast<std::byte*>(std::realloc(allocated, 64 * mebibyte));
    ASSERT_TRUE(longer) << "realloc() copies instead";
    EXPECT_EQ(longer[mebibyte - 1], std::byte{7});
    std::free(longer);
}

TEST_F(Userfault, WatchesNothingBesideWhatIsUnmapped)
{
    constexpr std::size_t huge = 2 * mebibyte;
    void* const room = anonymous(2 * huge);
    auto* const at = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(room) + huge - 1) / huge * huge);
    unmap(at + page_bytes, page_bytes);
    EXPECT_THROW((void)cache->get(at + page_bytes, 1), error);
    registration_cache other({.staleness = registration_staleness::userfault});
    EXPECT_TRUE(other.get(at, 1)) << "it is watched";
    unmap(room, 2 * huge);
}

TEST_F(Userfault, WatchesNoEvictedPages)
{
    cache.emplace(
        null, registration_cache_options{.budget_bytes = page_bytes, .staleness = registration_staleness::userfault});
    const pages memory(3);
    (void)cache->get(memory.at(0), 1);
    (void)cache->get(memory.at(2), 1);
    registration_cache other({.staleness = registration_staleness::userfault});
    EXPECT_TRUE(other.get(memory.at(0), 1)) << "they are watched still";
}

TEST_F(Userfault, IsToldInTelemetry)
{
    EXPECT_THAT(telemetry_of_caches(), testing::HasSubstr("\"staleness\":\"userfault\""));
}

TEST(Revocation, WithdrawsKeysThatHandlesHave)
{
    const port null = port::open("null");
    std::uint32_t told = 0;
    registration_cache cache(null, {.on_revoked = [&](std::uint32_t rkey) { told = rkey; }});
    const pages memory(2);
    registration held = cache.get(memory.at(0) + 8, 8, peer_writes);
    const registration beside = cache.get(memory.at(0) + 16, 8, peer_writes);
    EXPECT_EQ(cache.revoke(memory.at(1), 8), 0u);
    EXPECT_EQ(cache.revoke(memory.at(0) + 15, 1), 1u);
    EXPECT_EQ(told, held.rkey());
    EXPECT_FALSE(entry_of(null, held.rkey()));
    EXPECT_TRUE(entry_of(null, held.lkey())) << "it ends with its handle";
    EXPECT_TRUE(entry_of(null, beside.rkey()));
    const registration fresh = cache.get(memory.at(0) + 8, 8, peer_writes);
    EXPECT_TRUE(is_exactly(entry_of(null, fresh.rkey()), memory.at(0) + 8, 8, peer_writes));
    EXPECT_EQ(cache.counters().revocations, 1u);
    EXPECT_EQ(cache.revoke(memory.at(0) + 15, 1), 1u) << "the new one, and not the old one once more";
}

} // namespace
} // namespace weftio::test
