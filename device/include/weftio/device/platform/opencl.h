/**
 * Platform list for OpenCL C 3.0. See platform.h for what each name promises.
 *
 * A block is a work-group, a lane a work-item. A launch of one lane is compiled with WEFTIO_OPENCL_ONE_LANE, which
 * removes its barriers: PoCL 3.1 fails on barriers that a work-group size of one makes conditional. Sub-groups are
 * optional in OpenCL and PoCL has none. A warp is therefore one work-item: code that uses weftio_warp_lanes() runs
 * unchanged.
 * `memory_scope_device` is the widest scope that PoCL 3.1 declares; on a device that shares fine-grained SVM with the
 * host it covers the host threads too.
 */
#pragma once

/* 1. types */
typedef uchar weftio_u8;
typedef ushort weftio_u16;
typedef uint weftio_u32;
typedef int weftio_s32;
typedef ulong weftio_u64;
typedef long weftio_s64;

#define WEFTIO_FN static inline
#define WEFTIO_FN_APART WEFTIO_FN
#define WEFTIO_KERNEL __kernel
#define WEFTIO_GLOBAL __global
#define WEFTIO_SHARED __local
#define WEFTIO_STATIC_ASSERT(condition, text) _Static_assert(condition, text)

#ifdef memory_scope_all_svm_devices
#define WEFTIO_SCOPE_SYS memory_scope_all_svm_devices
#else
#define WEFTIO_SCOPE_SYS memory_scope_device
#endif

/* 2. loads */
WEFTIO_FN weftio_u32 weftio_load_relaxed_u32(const __global weftio_u32 *address)
{
    return atomic_load_explicit((volatile __global atomic_uint *)address, memory_order_relaxed, WEFTIO_SCOPE_SYS);
}
/** A word, or a pointer, that nobody writes while a kernel runs. */
WEFTIO_FN weftio_u32 weftio_load_constant_u32(const __global weftio_u32 *address)
{
    return *address;
}
WEFTIO_FN weftio_u64 weftio_load_constant_u64(const __global void *address)
{
    return *(const __global weftio_u64 *)address;
}
/** A word that no other lane writes at the moment. */
WEFTIO_FN weftio_u32 weftio_load_quiet_u32(const __global weftio_u32 *address)
{
    return weftio_load_relaxed_u32(address);
}
WEFTIO_FN weftio_u32 weftio_load_acquire_u32(const __global weftio_u32 *address)
{
    return atomic_load_explicit((volatile __global atomic_uint *)address, memory_order_acquire, memory_scope_device);
}
WEFTIO_FN weftio_u32 weftio_load_acquire_sys_u32(const __global weftio_u32 *address)
{
    return atomic_load_explicit((volatile __global atomic_uint *)address, memory_order_acquire, WEFTIO_SCOPE_SYS);
}
WEFTIO_FN weftio_u64 weftio_load_acquire_sys_u64(const __global weftio_u64 *address)
{
    return atomic_load_explicit((volatile __global atomic_ulong *)address, memory_order_acquire, WEFTIO_SCOPE_SYS);
}
/** Loads four consecutive words, 16-byte aligned; orders nothing and may be torn. */
WEFTIO_FN void weftio_load_x4(const __global weftio_u32 *address, weftio_u32 *a, weftio_u32 *b, weftio_u32 *c,
                              weftio_u32 *d)
{
    uint4 words = *(const __global uint4 *)address;
    *a = words.x;
    *b = words.y;
    *c = words.z;
    *d = words.w;
}

/* 3. stores */
WEFTIO_FN void weftio_store_relaxed_u32(__global weftio_u32 *address, weftio_u32 value)
{
    atomic_store_explicit((volatile __global atomic_uint *)address, value, memory_order_relaxed, WEFTIO_SCOPE_SYS);
}
WEFTIO_FN void weftio_store_release_u32(__global weftio_u32 *address, weftio_u32 value)
{
    atomic_store_explicit((volatile __global atomic_uint *)address, value, memory_order_release, memory_scope_device);
}
WEFTIO_FN void weftio_store_release_sys_u32(__global weftio_u32 *address, weftio_u32 value)
{
    atomic_store_explicit((volatile __global atomic_uint *)address, value, memory_order_release, WEFTIO_SCOPE_SYS);
}
WEFTIO_FN void weftio_store_release_sys_u64(__global weftio_u64 *address, weftio_u64 value)
{
    atomic_store_explicit((volatile __global atomic_ulong *)address, value, memory_order_release, WEFTIO_SCOPE_SYS);
}
/** As weftio_store_release_sys_u32; and what weftio_load_fenced_u32 has seen happens before the store. */
WEFTIO_FN void weftio_store_fenced_sys_u32(__global weftio_u32 *address, weftio_u32 value)
{
    weftio_store_release_sys_u32(address, value);
}
/** Stores four consecutive words, 16-byte aligned; orders nothing and may be torn. */
WEFTIO_FN void weftio_store_x4(__global weftio_u32 *address, weftio_u32 a, weftio_u32 b, weftio_u32 c, weftio_u32 d)
{
    *(__global uint4 *)address = (uint4)(a, b, c, d);
}
/** Rings a doorbell. All earlier writes are visible to the NIC before the doorbell. */
WEFTIO_FN void weftio_store_doorbell_u64(__global weftio_u64 *address, weftio_u64 value)
{
    weftio_store_release_sys_u64(address, value);
}

/* 4. read-modify-write */
WEFTIO_FN weftio_u32 weftio_fetch_add_u32(__global weftio_u32 *address, weftio_u32 value)
{
    return atomic_fetch_add_explicit((volatile __global atomic_uint *)address, value, memory_order_acq_rel,
                                     WEFTIO_SCOPE_SYS);
}
/** As weftio_fetch_add_u32, but orders nothing. */
WEFTIO_FN weftio_u32 weftio_fetch_add_relaxed_u32(__global weftio_u32 *address, weftio_u32 value)
{
    return atomic_fetch_add_explicit((volatile __global atomic_uint *)address, value, memory_order_relaxed,
                                     memory_scope_device);
}
/** As weftio_fetch_add_u32, but on a GPU only later loads and stores are ordered. */
WEFTIO_FN weftio_u32 weftio_fetch_add_acquire_u32(__global weftio_u32 *address, weftio_u32 value)
{
    return weftio_fetch_add_u32(address, value);
}
/** Stores `desired` if `*address` is `expected`. Returns the value before. Ordered as weftio_fetch_add_acquire_u32. */
WEFTIO_FN weftio_u32 weftio_compare_exchange_acquire_u32(__global weftio_u32 *address, weftio_u32 expected,
                                                         weftio_u32 desired)
{
    atomic_compare_exchange_strong_explicit((volatile __global atomic_uint *)address, &expected, desired,
                                            memory_order_acq_rel, memory_order_acquire, WEFTIO_SCOPE_SYS);
    return expected;
}

/* 5. fence; here the loads in front of it are acquire loads */
#define WEFTIO_LOADS_AT_ONCE 1u

WEFTIO_FN weftio_u32 weftio_load_fenced_u32(const __global weftio_u32 *address)
{
    return weftio_load_acquire_u32(address);
}

/* 6. bits */
WEFTIO_FN weftio_u16 weftio_swap16(weftio_u16 value)
{
    return as_ushort(as_uchar2(value).yx);
}
WEFTIO_FN weftio_u32 weftio_swap32(weftio_u32 value)
{
    return as_uint(as_uchar4(value).wzyx);
}
WEFTIO_FN weftio_u64 weftio_swap64(weftio_u64 value)
{
    return as_ulong(as_uchar8(value).s76543210);
}

/* 7. identity */
#define WEFTIO_WARP_LANES 1u

#ifdef WEFTIO_OPENCL_ONE_LANE
WEFTIO_FN weftio_u32 weftio_lane(void)
{
    return 0;
}
WEFTIO_FN weftio_u32 weftio_block_lanes(void)
{
    return 1;
}
#else
WEFTIO_FN weftio_u32 weftio_lane(void)
{
    return (weftio_u32)get_local_id(0);
}
WEFTIO_FN weftio_u32 weftio_block_lanes(void)
{
    return (weftio_u32)get_local_size(0);
}
#endif
WEFTIO_FN weftio_u32 weftio_block(void)
{
    return (weftio_u32)get_group_id(0);
}
WEFTIO_FN weftio_u32 weftio_blocks(void)
{
    return (weftio_u32)get_num_groups(0);
}
WEFTIO_FN weftio_u32 weftio_warp_lane(void)
{
    return 0;
}
WEFTIO_FN weftio_u32 weftio_warp_lanes(void)
{
    return 1;
}

/* 8. collectives */
#ifdef WEFTIO_OPENCL_ONE_LANE
WEFTIO_FN void weftio_block_barrier(void) {}
/**
 * Sum of `value` over all lanes of the block, returned to every lane. Also a barrier. `scratch` is one word that only
 * this block uses.
 */
WEFTIO_FN weftio_u32 weftio_block_sum_u32(weftio_u32 value, __global weftio_u32 *scratch)
{
    (void)scratch;
    return value;
}
#else
WEFTIO_FN void weftio_block_barrier(void)
{
    work_group_barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
#ifdef POCL_DEVICE_ADDRESS_BITS
    /* Keeps PoCL from mistaking the head of a loop for the barrier: PoCL 3.1 would then share one lane's loop count
     * among all lanes, and PoCL 6.0 would never end. The fence compiles to no instruction. */
    atomic_work_item_fence(CLK_LOCAL_MEM_FENCE, memory_order_acquire, memory_scope_work_item);
#endif
}
WEFTIO_FN weftio_u32 weftio_block_sum_u32(weftio_u32 value, __global weftio_u32 *scratch)
{
    if (get_local_id(0) == 0)
        weftio_store_relaxed_u32(scratch, 0);
    weftio_block_barrier();
    weftio_fetch_add_u32(scratch, value);
    weftio_block_barrier();
    weftio_u32 sum = weftio_load_relaxed_u32(scratch);
    weftio_block_barrier();
    return sum;
}
#endif
WEFTIO_FN void weftio_warp_barrier(void) {}
WEFTIO_FN weftio_u32 weftio_warp_sum_u32(weftio_u32 value)
{
    return value;
}

/** The value of lane 0, returned to every lane of the block. Also a barrier. `scratch` as for the sum. */
WEFTIO_FN weftio_u64 weftio_block_first_u64(weftio_u64 value, __global weftio_u32 *scratch)
{
    const weftio_u64 first = weftio_lane() == 0 ? value : 0;
    const weftio_u64 high = weftio_block_sum_u32((weftio_u32)(first >> 32), scratch);

    return high << 32 | weftio_block_sum_u32((weftio_u32)first, scratch);
}
/** The same for a warp. */
WEFTIO_FN weftio_u64 weftio_warp_first_u64(weftio_u64 value)
{
    return value;
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

/* 9. waiting: OpenCL C has no clock; weftio_dev_clock (clock.h) reads one that the host keeps */
#define WEFTIO_HAS_TIMER 0
#define WEFTIO_HOST_IS_FAR 0

/** One step of a wait that has failed `attempt` times. */
WEFTIO_FN void weftio_relax(weftio_u32 attempt)
{
    (void)attempt;
}
