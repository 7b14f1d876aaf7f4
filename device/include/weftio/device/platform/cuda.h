/**
 * Platform list for CUDA C++ (PTX ISA 8.2 or newer, sm_70 or newer). See platform.h for what each name promises.
 *
 * Every `asm volatile` that orders memory has a "memory" clobber, so that the compiler keeps the order that the PTX
 * specifies.
 */
#pragma once

#include <cstddef>
#include <cstdint>

/* 1. types */
typedef std::uint8_t weftio_u8;
typedef std::uint16_t weftio_u16;
typedef std::uint32_t weftio_u32;
typedef std::int32_t weftio_s32;
typedef std::uint64_t weftio_u64;
typedef std::int64_t weftio_s64;

#define WEFTIO_FN __device__ inline
#define WEFTIO_FN_APART WEFTIO_FN
#define WEFTIO_KERNEL extern "C" __global__
#define WEFTIO_GLOBAL
#define WEFTIO_SHARED __shared__
#define WEFTIO_STATIC_ASSERT(condition, text) static_assert(condition, text)

/* 2. loads */
WEFTIO_FN weftio_u32 weftio_load_relaxed_u32(const weftio_u32 *address)
{
    weftio_u32 value;
    asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}
/**
 * A word, or a pointer, that nobody writes while a kernel runs: loads may be moved anywhere, out of loops too, and need
 * not be repeated behind stores.
 */
WEFTIO_FN weftio_u32 weftio_load_constant_u32(const weftio_u32 *address)
{
    weftio_u32 value;
    asm("ld.u32 %0, [%1];" : "=r"(value) : "l"(address));
    return value;
}
WEFTIO_FN weftio_u64 weftio_load_constant_u64(const void *address)
{
    unsigned long long value;
    asm("ld.u64 %0, [%1];" : "=l"(value) : "l"(address));
    return value;
}
/** A word that no other lane writes at the moment: a load that the compiler and the cache of the block may answer. */
WEFTIO_FN weftio_u32 weftio_load_quiet_u32(const weftio_u32 *address)
{
    return *address;
}
WEFTIO_FN weftio_u32 weftio_load_acquire_u32(const weftio_u32 *address)
{
    weftio_u32 value;
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}
WEFTIO_FN weftio_u32 weftio_load_acquire_sys_u32(const weftio_u32 *address)
{
    weftio_u32 value;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}
WEFTIO_FN weftio_u64 weftio_load_acquire_sys_u64(const weftio_u64 *address)
{
    unsigned long long value;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
    return value;
}
/** Loads four consecutive words, 16-byte aligned; orders nothing and may be torn. */
WEFTIO_FN void weftio_load_x4(const weftio_u32 *address, weftio_u32 *a, weftio_u32 *b, weftio_u32 *c, weftio_u32 *d)
{
    uint4 words = *reinterpret_cast<const uint4 *>(address);
    *a = words.x;
    *b = words.y;
    *c = words.z;
    *d = words.w;
}

/* 3. stores */
WEFTIO_FN void weftio_store_relaxed_u32(weftio_u32 *address, weftio_u32 value)
{
    asm volatile("st.relaxed.sys.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}
WEFTIO_FN void weftio_store_release_u32(weftio_u32 *address, weftio_u32 value)
{
    asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}
WEFTIO_FN void weftio_store_release_sys_u32(weftio_u32 *address, weftio_u32 value)
{
    asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}
WEFTIO_FN void weftio_store_release_sys_u64(weftio_u64 *address, weftio_u64 value)
{
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(address), "l"((unsigned long long)value) : "memory");
}
/** As weftio_store_release_sys_u32; and what weftio_load_fenced_u32 has seen happens before the store. */
WEFTIO_FN void weftio_store_fenced_sys_u32(weftio_u32 *address, weftio_u32 value)
{
    asm volatile("fence.acq_rel.sys;" ::: "memory");
    asm volatile("st.relaxed.sys.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}
/** Stores four consecutive words, 16-byte aligned; orders nothing and may be torn. */
WEFTIO_FN void weftio_store_x4(weftio_u32 *address, weftio_u32 a, weftio_u32 b, weftio_u32 c, weftio_u32 d)
{
    *reinterpret_cast<uint4 *>(address) = make_uint4(a, b, c, d);
}
/** Rings a doorbell. All earlier writes are visible to the NIC before the doorbell. */
WEFTIO_FN void weftio_store_doorbell_u64(weftio_u64 *address, weftio_u64 value)
{
    asm volatile("fence.acq_rel.sys;" ::: "memory");
    asm volatile("st.mmio.relaxed.sys.u64 [%0], %1;" ::"l"(address), "l"((unsigned long long)value) : "memory");
}

/* 4. read-modify-write */
WEFTIO_FN weftio_u32 weftio_fetch_add_u32(weftio_u32 *address, weftio_u32 value)
{
    weftio_u32 before;
    asm volatile("atom.acq_rel.gpu.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(address), "r"(value) : "memory");
    return before;
}
/** As weftio_fetch_add_u32, but orders nothing. */
WEFTIO_FN weftio_u32 weftio_fetch_add_relaxed_u32(weftio_u32 *address, weftio_u32 value)
{
    weftio_u32 before;
    asm volatile("atom.relaxed.gpu.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(address), "r"(value) : "memory");
    return before;
}
/** As weftio_fetch_add_u32, but later loads and stores alone are ordered: a fence in front of it orders the others. */
WEFTIO_FN weftio_u32 weftio_fetch_add_acquire_u32(weftio_u32 *address, weftio_u32 value)
{
    weftio_u32 before;
    asm volatile("atom.acquire.gpu.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(address), "r"(value) : "memory");
    return before;
}
/** Stores `desired` if `*address` is `expected`. Returns the value before. Ordered as weftio_fetch_add_acquire_u32. */
WEFTIO_FN weftio_u32 weftio_compare_exchange_acquire_u32(weftio_u32 *address, weftio_u32 expected, weftio_u32 desired)
{
    weftio_u32 before;
    asm volatile("atom.acquire.gpu.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(before)
                 : "l"(address), "r"(expected), "r"(desired)
                 : "memory");
    return before;
}

/* 5. fence */
#define WEFTIO_LOADS_AT_ONCE 16u

WEFTIO_FN weftio_u32 weftio_load_fenced_u32(const weftio_u32 *address)
{
    weftio_u32 value;
    asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
    return value;
}

/* 6. bits */
WEFTIO_FN weftio_u32 weftio_swap32(weftio_u32 value)
{
    return __byte_perm(value, 0, 0x0123);
}
WEFTIO_FN weftio_u16 weftio_swap16(weftio_u16 value)
{
    return (weftio_u16)__byte_perm(value, 0, 0x4401);
}
WEFTIO_FN weftio_u64 weftio_swap64(weftio_u64 value)
{
    return ((weftio_u64)weftio_swap32((weftio_u32)value) << 32) | weftio_swap32((weftio_u32)(value >> 32));
}

/* 7. identity */
#define WEFTIO_WARP_LANES 32u

WEFTIO_FN weftio_u32 weftio_lane()
{
    return threadIdx.x;
}
WEFTIO_FN weftio_u32 weftio_block_lanes()
{
    return blockDim.x;
}
WEFTIO_FN weftio_u32 weftio_block()
{
    return blockIdx.x;
}
WEFTIO_FN weftio_u32 weftio_blocks()
{
    return gridDim.x;
}
WEFTIO_FN weftio_u32 weftio_warp_lane()
{
    return threadIdx.x % WEFTIO_WARP_LANES;
}
/** Lanes of this lane's warp; the last warp of a block may be narrower. */
WEFTIO_FN weftio_u32 weftio_warp_lanes()
{
    weftio_u32 rest = blockDim.x - (threadIdx.x - weftio_warp_lane());
    return rest < WEFTIO_WARP_LANES ? rest : WEFTIO_WARP_LANES;
}
WEFTIO_FN weftio_u32 weftio_cuda_warp_mask()
{
    return weftio_warp_lanes() == 32 ? 0xffffffffu : (1u << weftio_warp_lanes()) - 1;
}

/* 8. collectives */
WEFTIO_FN void weftio_block_barrier()
{
    __syncthreads();
}
WEFTIO_FN void weftio_warp_barrier()
{
    __syncwarp(weftio_cuda_warp_mask());
}
WEFTIO_FN weftio_u32 weftio_warp_sum_u32(weftio_u32 value)
{
    weftio_u32 mask = weftio_cuda_warp_mask();
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(mask, value);
#else
    weftio_u32 sum = 0;
    for (weftio_u32 lane = 0; lane < weftio_warp_lanes(); ++lane)
        sum += __shfl_sync(mask, value, lane);
    return sum;
#endif
}
/**
 * Sum of `value` over all lanes of the block, returned to every lane. Also a barrier. `scratch` is used on platforms
 * that need memory for the sum.
 */
WEFTIO_FN weftio_u32 weftio_block_sum_u32(weftio_u32 value, weftio_u32 *scratch)
{
    (void)scratch;
    __shared__ weftio_u32 sums[32];
    weftio_u32 warps = (blockDim.x + 31) / 32;
    weftio_u32 warp_sum = weftio_warp_sum_u32(value);
    if (weftio_warp_lane() == 0)
        sums[threadIdx.x / 32] = warp_sum;
    __syncthreads();
    weftio_u32 sum = 0;
    for (weftio_u32 warp = 0; warp < warps; ++warp)
        sum += sums[warp];
    __syncthreads();
    return sum;
}

/** The value of lane 0, returned to every lane of the block. Also a barrier. `scratch` as for the sum. */
WEFTIO_FN weftio_u64 weftio_block_first_u64(weftio_u64 value, weftio_u32 *scratch)
{
    (void)scratch;
    __shared__ weftio_u64 first;
    if (threadIdx.x == 0)
        first = value;
    __syncthreads();
    weftio_u64 got = first;
    __syncthreads();
    return got;
}
/** The same for a warp. */
WEFTIO_FN weftio_u64 weftio_warp_first_u64(weftio_u64 value)
{
    return __shfl_sync(weftio_cuda_warp_mask(), (unsigned long long)value, 0);
}

/** The lanes of a warp that execute a call together with equal keys: this lane is `rank` of `count`. */
struct weftio_peers {
    weftio_u32 rank;
    weftio_u32 count;
    weftio_u32 mask;
};
WEFTIO_FN weftio_peers weftio_find_peers(weftio_u64 key)
{
    weftio_u32 mask = __match_any_sync(__activemask(), (unsigned long long)key), below;
    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
    return {(weftio_u32)__popc(mask & below), (weftio_u32)__popc(mask), mask};
}
/** The value of rank 0, returned to every peer. */
WEFTIO_FN weftio_u32 weftio_of_first_peer(weftio_peers peers, weftio_u32 value)
{
    return __shfl_sync(peers.mask, value, __ffs((int)peers.mask) - 1);
}
/** The peers of rank below `count`. All peers call. */
WEFTIO_FN weftio_peers weftio_first_peers(weftio_peers peers, weftio_u32 count)
{
    return {peers.rank, count, __ballot_sync(peers.mask, peers.rank < count)};
}
/** A barrier: all peers see afterwards what each peer wrote before. */
WEFTIO_FN void weftio_join_peers(weftio_peers peers)
{
    __syncwarp(peers.mask);
}

/* 9. waiting */
#define WEFTIO_HAS_TIMER 1
#define WEFTIO_HOST_IS_FAR 1

/** One step of a wait that has failed `attempt` times. */
WEFTIO_FN void weftio_relax(weftio_u32 attempt)
{
    if (attempt > 4096)
        __nanosleep(200);
}
/** Nanoseconds; only differences are meaningful. */
WEFTIO_FN weftio_u64 weftio_timer_ns()
{
    unsigned long long value;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value)::"memory");
    return value;
}
