/**
 * Platform list for C++20 on a CPU. See platform.h for what each name promises.
 *
 * A block is a thread; its lanes are fibers of that thread. A thread that was not started by a launch (of a test, or of
 * an application that uses a queue itself) is a block of one lane.
 */
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* 1. types */
typedef std::uint8_t weftio_u8;
typedef std::uint16_t weftio_u16;
typedef std::uint32_t weftio_u32;
typedef std::int32_t weftio_s32;
typedef std::uint64_t weftio_u64;
typedef std::int64_t weftio_s64;

/* Other sources of the program have these functions without checks (handle.h), or for a host that is near. */
#if defined(WEFTIO_DEV_CHECKS) || defined(WEFTIO_HOST_IS_FAR)
#define WEFTIO_FN static inline
#else
#define WEFTIO_FN inline
#endif
/* A function of its own: what a loop calls seldom does not take the registers of what it does always. */
#define WEFTIO_FN_APART __attribute__((noinline)) WEFTIO_FN
#define WEFTIO_KERNEL inline
#define WEFTIO_GLOBAL
#define WEFTIO_SHARED static thread_local
#define WEFTIO_STATIC_ASSERT(condition, text) static_assert(condition, text)

/** Interface of the fiber scheduler of a block with several lanes. A block of one lane has no scheduler. */
struct weftio_cpu_scheduler {
    enum class scope { warp, block };
    virtual void barrier(scope over) = 0;
    virtual weftio_u32 sum(scope over, weftio_u32 value) = 0;
    virtual void yield() = 0;

 protected:
    ~weftio_cpu_scheduler() = default;
};

/** The lane that runs now in this thread. The scheduler rewrites it at every switch of fibers. */
struct weftio_cpu_lane {
    weftio_u32 lane = 0;
    weftio_u32 block_lanes = 1;
    weftio_u32 block = 0;
    weftio_u32 blocks = 1;
    weftio_cpu_scheduler *scheduler = nullptr;
};
inline constinit thread_local weftio_cpu_lane weftio_cpu_this_lane{};

/* 2. loads */
WEFTIO_FN weftio_u32 weftio_load_relaxed_u32(const weftio_u32 *address)
{
    return __atomic_load_n(address, __ATOMIC_RELAXED);
}
/** A word, or a pointer, that nobody writes while a kernel runs. */
WEFTIO_FN weftio_u32 weftio_load_constant_u32(const weftio_u32 *address)
{
    return *address;
}
WEFTIO_FN weftio_u64 weftio_load_constant_u64(const void *address)
{
    weftio_u64 value;
    __builtin_memcpy(&value, address, sizeof value);
    return value;
}
/** A word that no other lane writes at the moment. */
WEFTIO_FN weftio_u32 weftio_load_quiet_u32(const weftio_u32 *address)
{
    return __atomic_load_n(address, __ATOMIC_RELAXED);
}
WEFTIO_FN weftio_u32 weftio_load_acquire_u32(const weftio_u32 *address)
{
    return __atomic_load_n(address, __ATOMIC_ACQUIRE);
}
WEFTIO_FN weftio_u32 weftio_load_acquire_sys_u32(const weftio_u32 *address)
{
    return __atomic_load_n(address, __ATOMIC_ACQUIRE);
}
WEFTIO_FN weftio_u64 weftio_load_acquire_sys_u64(const weftio_u64 *address)
{
    return __atomic_load_n(address, __ATOMIC_ACQUIRE);
}
/** Loads four consecutive words, 16-byte aligned; orders nothing and may be torn. */
WEFTIO_FN void weftio_load_x4(const weftio_u32 *address, weftio_u32 *a, weftio_u32 *b, weftio_u32 *c, weftio_u32 *d)
{
    *a = address[0];
    *b = address[1];
    *c = address[2];
    *d = address[3];
}

/* 3. stores */
WEFTIO_FN void weftio_store_relaxed_u32(weftio_u32 *address, weftio_u32 value)
{
    __atomic_store_n(address, value, __ATOMIC_RELAXED);
}
WEFTIO_FN void weftio_store_release_u32(weftio_u32 *address, weftio_u32 value)
{
    __atomic_store_n(address, value, __ATOMIC_RELEASE);
}
WEFTIO_FN void weftio_store_release_sys_u32(weftio_u32 *address, weftio_u32 value)
{
    __atomic_store_n(address, value, __ATOMIC_RELEASE);
}
WEFTIO_FN void weftio_store_release_sys_u64(weftio_u64 *address, weftio_u64 value)
{
    __atomic_store_n(address, value, __ATOMIC_RELEASE);
}
/** As weftio_store_release_sys_u32; and what weftio_load_fenced_u32 has seen happens before the store. */
WEFTIO_FN void weftio_store_fenced_sys_u32(weftio_u32 *address, weftio_u32 value)
{
    weftio_store_release_sys_u32(address, value);
}
/** Stores four consecutive words, 16-byte aligned; orders nothing and may be torn. */
WEFTIO_FN void weftio_store_x4(weftio_u32 *address, weftio_u32 a, weftio_u32 b, weftio_u32 c, weftio_u32 d)
{
    /* Two words at a time, as the NIC reads them; atomic only to keep the compiler from using a vector shuffle. */
    typedef weftio_u64 __attribute__((may_alias)) two_words;
    __atomic_store_n((two_words *)address, (weftio_u64)b << 32 | a, __ATOMIC_RELAXED);
    __atomic_store_n((two_words *)(address + 2), (weftio_u64)d << 32 | c, __ATOMIC_RELAXED);
}
/**
 * Rings a doorbell. All earlier writes are visible to the NIC before the doorbell; write-combining mappings are flushed
 * after it.
 */
WEFTIO_FN void weftio_store_doorbell_u64(weftio_u64 *address, weftio_u64 value)
{
    __atomic_store_n(address, value, __ATOMIC_RELEASE);
#if defined(__x86_64__)
    _mm_sfence();
#elif defined(__aarch64__)
    asm volatile("dmb oshst" ::: "memory");
#endif
}

/* 4. read-modify-write */
WEFTIO_FN weftio_u32 weftio_fetch_add_u32(weftio_u32 *address, weftio_u32 value)
{
    return __atomic_fetch_add(address, value, __ATOMIC_ACQ_REL);
}
/** As weftio_fetch_add_u32, but orders nothing. */
WEFTIO_FN weftio_u32 weftio_fetch_add_relaxed_u32(weftio_u32 *address, weftio_u32 value)
{
    return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}
/** As weftio_fetch_add_u32, but on a GPU only later loads and stores are ordered. */
WEFTIO_FN weftio_u32 weftio_fetch_add_acquire_u32(weftio_u32 *address, weftio_u32 value)
{
    return weftio_fetch_add_u32(address, value);
}
/** Stores `desired` if `*address` is `expected`. Returns the value before. Ordered as weftio_fetch_add_acquire_u32. */
WEFTIO_FN weftio_u32 weftio_compare_exchange_acquire_u32(weftio_u32 *address, weftio_u32 expected, weftio_u32 desired)
{
    __atomic_compare_exchange_n(address, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return expected;
}

/*
 * 5. fence; here the loads in front of it are acquire loads, which cost nothing more and which ThreadSanitizer
 * understands
 */
#define WEFTIO_LOADS_AT_ONCE 1u

WEFTIO_FN weftio_u32 weftio_load_fenced_u32(const weftio_u32 *address)
{
    return __atomic_load_n(address, __ATOMIC_ACQUIRE);
}

/* 6. bits */
WEFTIO_FN weftio_u16 weftio_swap16(weftio_u16 value)
{
    return __builtin_bswap16(value);
}
WEFTIO_FN weftio_u32 weftio_swap32(weftio_u32 value)
{
    return __builtin_bswap32(value);
}
WEFTIO_FN weftio_u64 weftio_swap64(weftio_u64 value)
{
    return __builtin_bswap64(value);
}

/* 7. identity */
#define WEFTIO_WARP_LANES 32u

WEFTIO_FN weftio_u32 weftio_lane()
{
    return weftio_cpu_this_lane.lane;
}
WEFTIO_FN weftio_u32 weftio_block_lanes()
{
    return weftio_cpu_this_lane.block_lanes;
}
WEFTIO_FN weftio_u32 weftio_block()
{
    return weftio_cpu_this_lane.block;
}
WEFTIO_FN weftio_u32 weftio_blocks()
{
    return weftio_cpu_this_lane.blocks;
}
WEFTIO_FN weftio_u32 weftio_warp_lane()
{
    return weftio_lane() % WEFTIO_WARP_LANES;
}
/** Lanes of this lane's warp; the last warp of a block may be narrower. */
WEFTIO_FN weftio_u32 weftio_warp_lanes()
{
    weftio_u32 first = weftio_lane() - weftio_warp_lane();
    weftio_u32 rest = weftio_block_lanes() - first;
    return rest < WEFTIO_WARP_LANES ? rest : WEFTIO_WARP_LANES;
}

/* 8. collectives */
WEFTIO_FN void weftio_block_barrier()
{
    if (weftio_cpu_this_lane.scheduler)
        weftio_cpu_this_lane.scheduler->barrier(weftio_cpu_scheduler::scope::block);
}
WEFTIO_FN void weftio_warp_barrier()
{
    if (weftio_cpu_this_lane.scheduler)
        weftio_cpu_this_lane.scheduler->barrier(weftio_cpu_scheduler::scope::warp);
}
/**
 * Sum of `value` over all lanes of the block, returned to every lane. Also a barrier. `scratch` is used on platforms
 * that need memory for the sum.
 */
WEFTIO_FN weftio_u32 weftio_block_sum_u32(weftio_u32 value, weftio_u32 *scratch)
{
    (void)scratch;
    weftio_cpu_scheduler *scheduler = weftio_cpu_this_lane.scheduler;
    return scheduler ? scheduler->sum(weftio_cpu_scheduler::scope::block, value) : value;
}
WEFTIO_FN weftio_u32 weftio_warp_sum_u32(weftio_u32 value)
{
    weftio_cpu_scheduler *scheduler = weftio_cpu_this_lane.scheduler;
    return scheduler ? scheduler->sum(weftio_cpu_scheduler::scope::warp, value) : value;
}

/** The value of lane 0, returned to every lane of the block. Also a barrier. `scratch` as for the sum. */
WEFTIO_FN weftio_u64 weftio_block_first_u64(weftio_u64 value, weftio_u32 *scratch)
{
    if (!weftio_cpu_this_lane.scheduler)
        return value;
    const weftio_u64 first = weftio_lane() == 0 ? value : 0;
    const weftio_u64 high = weftio_block_sum_u32((weftio_u32)(first >> 32), scratch);
    return high << 32 | weftio_block_sum_u32((weftio_u32)first, scratch);
}
/** The same for a warp. */
WEFTIO_FN weftio_u64 weftio_warp_first_u64(weftio_u64 value)
{
    if (!weftio_cpu_this_lane.scheduler)
        return value;
    const weftio_u64 first = weftio_warp_lane() == 0 ? value : 0;
    const weftio_u64 high = weftio_warp_sum_u32((weftio_u32)(first >> 32));
    return high << 32 | weftio_warp_sum_u32((weftio_u32)first);
}

/** The lanes that execute a call together with equal keys: this lane is `rank` of `count`. Here every lane is alone. */
struct weftio_peers {
    weftio_u32 rank;
    weftio_u32 count;
};
WEFTIO_FN struct weftio_peers weftio_find_peers(weftio_u64 key)
{
    struct weftio_peers alone = {0, 1};

    (void)key;
    return alone;
}
/** The value of rank 0, returned to every peer. */
WEFTIO_FN weftio_u32 weftio_of_first_peer(struct weftio_peers peers, weftio_u32 value)
{
    (void)peers;
    return value;
}
/** The peers of rank below `count`. All peers call. */
WEFTIO_FN struct weftio_peers weftio_first_peers(struct weftio_peers peers, weftio_u32 count)
{
    (void)count;
    return peers;
}
/** A barrier: all peers see afterwards what each peer wrote before. */
WEFTIO_FN void weftio_join_peers(struct weftio_peers peers)
{
    (void)peers;
}

/* 9. waiting */
#define WEFTIO_HAS_TIMER 1
#ifndef WEFTIO_HOST_IS_FAR /* tests define it, and play a GPU */
#define WEFTIO_HOST_IS_FAR 0
#endif

/** One step of a wait that has failed `attempt` times: spins first, later lets other lanes and threads run. */
WEFTIO_FN void weftio_relax(weftio_u32 attempt)
{
    if (weftio_cpu_this_lane.scheduler)
        weftio_cpu_this_lane.scheduler->yield();
    if (attempt < 512) {
#if defined(__x86_64__)
        _mm_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    } else if (attempt < 4096) {
        std::this_thread::yield();
    } else {
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
}
/** Monotonic nanoseconds; only differences are meaningful. */
WEFTIO_FN weftio_u64 weftio_timer_ns()
{
    auto since = std::chrono::steady_clock::now().time_since_epoch();
    return static_cast<weftio_u64>(std::chrono::nanoseconds(since).count());
}
