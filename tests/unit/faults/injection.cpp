#include "injection.hpp"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_telemetry.h>
#ifdef WEFTIO_WITH_OPENCL
#include <CL/cl.h>
#endif
#include <sys/mman.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <system_error>

#include "weftio/error.hpp"

extern "C" char __executable_start, etext; // of the linker

namespace {

using weftio::errc;
using weftio::error;
using weftio::test::calls;
using weftio::test::how;

struct plan {
    std::atomic<bool> armed{false};
    calls kind{};
    how times{};
    std::atomic<std::int64_t> left{0}; ///< calls until the one that fails
    std::atomic<const char*> name{nullptr};
};
plan now;
[[maybe_unused]] std::atomic<std::int64_t> alive{0};
[[maybe_unused]] thread_local bool is_tests = false; ///< the test's own thread
[[maybe_unused]] thread_local int inside_driver =
    0; ///< calls of DPDK or OpenCL that this thread is in: their allocations are not ours

/// Whether this call, of kind `kind`, is to fail.
bool strikes(calls kind, const char* name)
{
    if (!now.armed.load(std::memory_order_acquire) || now.kind != kind || inside_driver != 0)
        return false;
    std::int64_t left = now.left.fetch_sub(1, std::memory_order_acq_rel);
    if (left == 1)
        now.name.store(name, std::memory_order_release);
    return left == 1 || (left < 1 && now.times == how::for_good);
}

struct in_driver {
    in_driver() { ++inside_driver; }
    in_driver(const in_driver&) = delete;
    in_driver& operator=(const in_driver&) = delete;
    ~in_driver() { --inside_driver; }
};

rte_mempool* no_memory()
{
    rte_errno = ENOMEM;
    return nullptr;
}

#ifdef WEFTIO_WITH_OPENCL
template <class T>
T refused(cl_int* status)
{
    if (status)
        *status = CL_OUT_OF_RESOURCES;
    return nullptr;
}
#endif

#ifndef WEFTIO_TEST_SANITIZED
void* no_map()
{
    errno = ENOMEM;
    return MAP_FAILED;
}

int no_descriptor()
{
    errno = EMFILE;
    return -1;
}

std::FILE* no_file()
{
    errno = EMFILE;
    return nullptr;
}

/// Drivers' threads allocate too, always through their own libraries.
bool is_ours(const void* caller)
{
    return is_tests || (caller >= &__executable_start && caller < &etext);
}

void* allocate(std::size_t bytes, std::size_t alignment, const void* caller)
{
    bool fails =
        now.armed.load(std::memory_order_relaxed) && is_ours(caller) && strikes(calls::allocation, "operator new");
    void* room = fails ? nullptr : std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
    if (room)
        alive.fetch_add(1, std::memory_order_relaxed);
    return room;
}

void release(void* room)
{
    if (room)
        alive.fetch_sub(1, std::memory_order_relaxed);
    std::free(room);
}
#endif

} // namespace

#define FAILS(KIND, RESULT, NAME, PARAMETERS, ARGUMENTS, FAILURE)                                                      \
    extern "C" RESULT __real_##NAME PARAMETERS;                                                                        \
    extern "C" RESULT __wrap_##NAME PARAMETERS;                                                                        \
    RESULT __wrap_##NAME PARAMETERS                                                                                    \
    {                                                                                                                  \
        if (strikes(calls::KIND, #NAME))                                                                               \
            return FAILURE;                                                                                            \
        in_driver inside;                                                                                              \
        return __real_##NAME ARGUMENTS;                                                                                \
    }
#include "calls.def"

#ifndef WEFTIO_TEST_SANITIZED // which have operators of their own
// Not inlined: GCC would take malloc and delete for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes)
{
    if (void* room = allocate(bytes, 16, __builtin_return_address(0)))
        return room;
    throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new[](std::size_t bytes)
{
    if (void* room = allocate(bytes, 16, __builtin_return_address(0)))
        return room;
    throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment)
{
    if (void* room = allocate(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0)))
        return room;
    throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, std::align_val_t alignment)
{
    if (void* room = allocate(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0)))
        return room;
    throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept
{
    return allocate(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
[[gnu::noinline]] void operator delete(void* room) noexcept
{
    release(room);
}
[[gnu::noinline]] void operator delete[](void* room) noexcept
{
    release(room);
}
[[gnu::noinline]] void operator delete(void* room, std::size_t) noexcept
{
    release(room);
}
[[gnu::noinline]] void operator delete[](void* room, std::size_t) noexcept
{
    release(room);
}
[[gnu::noinline]] void operator delete(void* room, std::align_val_t) noexcept
{
    release(room);
}
[[gnu::noinline]] void operator delete[](void* room, std::align_val_t) noexcept
{
    release(room);
}
[[gnu::noinline]] void operator delete(void* room, std::size_t, std::align_val_t) noexcept
{
    release(room);
}
[[gnu::noinline]] void operator delete[](void* room, std::size_t, std::align_val_t) noexcept
{
    release(room);
}
#endif

namespace weftio::test {

injected_fault::injected_fault(calls kind, how how, std::uint64_t number)
{
    is_tests = true;
    now.kind = kind;
    now.times = how;
    now.left = static_cast<std::int64_t>(number);
    now.name = nullptr;
    now.armed.store(true, std::memory_order_release);
}

injected_fault::~injected_fault()
{
    now.armed.store(false, std::memory_order_release);
}

bool injected_fault::reached() const
{
    return now.left.load(std::memory_order_acquire) < 1;
}

const char* injected_fault::name() const
{
    const char* name = now.name.load(std::memory_order_acquire);
    return name ? name : "none";
}

std::int64_t blocks_alive()
{
    return alive.load(std::memory_order_relaxed);
}

} // namespace weftio::test
