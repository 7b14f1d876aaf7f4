// Memory as each of CUDA's allocators makes it, and what Weftio does with it. For the driver and its stand-in.
#pragma once

#include <dlfcn.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>

#include <gmock/gmock.h>

#include "devices/cuda/cuda_device.hpp"
#include "devices/cuda/mappings.hpp"
#include "weftio/detail/internals.hpp"
#include "weftio/dma.hpp"
#include "weftio/error.hpp"
#include "weftio/gpu_memory.hpp"
#include "weftio/memory_holder.hpp"
#include "weftio/registration_cache.hpp"

namespace weftio::test {

/// A function of the driver by its name.
template <class Function>
Function* driver_function(const char* name)
{
    return reinterpret_cast<Function*>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), name));
}

enum class allocator { cuda_malloc, mapped_for_others, mapped, mapped_no_rdma, pool, managed, registered_host, system };

/// A row of the table in docs/gpu.md. An empty text: it works.
struct allocator_row {
    allocator of;
    const char* name;
    memory_info::made_by maker;
    const char *cache, *adopt, *hold; ///< parts of the sentences with which it is refused
};

inline void PrintTo(const allocator_row& printed, std::ostream* out)
{
    *out << printed.name;
}

inline constexpr allocator_row allocator_rows[] = {
    {allocator::cuda_malloc, "cudaMalloc", memory_info::made_by::mem_alloc, "", "",
     "of cudaMalloc(): it ends with its context"},
    {allocator::mapped_for_others, "VMM with opt-in", memory_info::made_by::mem_map, "", "", ""},
    {allocator::mapped, "VMM without opt-in", memory_info::made_by::mem_map, "", "", "without requestedHandleTypes"},
    {allocator::mapped_no_rdma, "VMM without RDMA", memory_info::made_by::mem_map, "", "",
     "without allocFlags.gpuDirectRDMACapable"},
    {allocator::pool, "cudaMallocAsync", memory_info::made_by::pool, "is of a pool", "", "of a pool"},
    {allocator::managed, "managed", memory_info::made_by::managed, "is managed", "is managed",
     "managed: its pages migrate"},
    {allocator::registered_host, "registered host", memory_info::made_by::host_alloc, "", "",
     "pinned memory of the host"},
    {allocator::system, "system", memory_info::made_by::system, "", "does not know the memory",
     "ordinary memory of the host"},
};

/// Memory of one allocator, 2 MiB.
class allocated {
 public:
    static constexpr std::size_t bytes = std::size_t{2} << 20;

    allocated(const device& gpu, allocator of)
        : gpu_(static_cast<devices::cuda::cuda_device&>(detail::internals::backend(gpu))), of_(of)
    {
        const devices::cuda::current_context now = gpu_.use();
        switch (of) {
            case allocator::cuda_malloc: check(gpu_.api().cuMemAlloc_v2(&at_, bytes)); break;
            case allocator::mapped_for_others: map(1, 1); break;
            case allocator::mapped: map(0, 1); break;
            case allocator::mapped_no_rdma: map(1, 0); break;
            case allocator::pool:
                check(driver_function<int(pointer*, std::size_t, void*)>("cuMemAllocAsync")(&at_, bytes, nullptr));
                break;
            case allocator::managed:
                check(driver_function<int(pointer*, std::size_t, unsigned)>("cuMemAllocManaged")(&at_, bytes, 1));
                break;
            case allocator::registered_host:
                map_host();
                check(driver_function<int(void*, std::size_t, unsigned)>("cuMemHostRegister_v2")(address(), bytes, 0));
                break;
            case allocator::system: map_host(); break;
        }
    }
    allocated(const allocated&) = delete;
    allocated& operator=(const allocated&) = delete;
    ~allocated()
    {
        const devices::cuda::current_context now = gpu_.use();
        switch (of_) {
            case allocator::cuda_malloc:
            case allocator::managed:
            case allocator::pool: check(gpu_.api().cuMemFree_v2(at_)); break;
            case allocator::mapped_for_others:
            case allocator::mapped:
            case allocator::mapped_no_rdma:
                check(devices::cuda::mapping_driver().cuMemUnmap(at_, bytes));
                check(devices::cuda::mapping_driver().cuMemAddressFree(at_, bytes));
                break;
            case allocator::registered_host:
                check(driver_function<int(void*)>("cuMemHostUnregister")(address()));
                munmap(address(), bytes);
                break;
            case allocator::system: munmap(address(), bytes); break;
        }
    }
    void* address() const { return reinterpret_cast<void*>(at_); }

 private:
    using pointer = devices::cuda::device_pointer;

    static void check(int status) { EXPECT_EQ(status, 0); }
    void map_host()
    {
        at_ = reinterpret_cast<pointer>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
    }
    void map(int handle_types, unsigned char rdma)
    {
        const devices::cuda::mapping_functions& driver = devices::cuda::mapping_driver();
        const devices::cuda::memory_location here{devices::cuda::location_device, gpu_.cuda_number()};
        devices::cuda::physical_properties wanted{};
        wanted.type = devices::cuda::physical_pinned;
        wanted.handle_types = handle_types;
        wanted.location = here;
        wanted.rdma_capable = rdma;
        const devices::cuda::memory_access all{here, devices::cuda::access_read_write};
        devices::cuda::physical made = 0;
        check(driver.cuMemCreate(&made, bytes, &wanted, 0));
        check(driver.cuMemAddressReserve(&at_, bytes, 0, 0, 0));
        check(driver.cuMemMap(at_, bytes, 0, made, 0));
        check(driver.cuMemSetAccess(at_, bytes, &all, 1));
        check(driver.cuMemRelease(made));
    }

    devices::cuda::cuda_device& gpu_;
    const allocator of_;
    pointer at_ = 0;
};

template <class Action>
std::string refusal_or_nothing(Action&& action)
{
    try {
        action();
    } catch (const error& refused) {
        return refused.what();
    }
    return "";
}

inline void expect_refusal(const char* of, const char* part, const std::string& said)
{
    if (*part == '\0')
        EXPECT_EQ(said, "") << of;
    else
        EXPECT_THAT(said, testing::HasSubstr(part)) << of;
}

/// What the row says is so.
inline void expect_row(const device& gpu, const allocator_row& row)
{
    const allocated memory(gpu, row.of);
    void* const at = memory.address();
    EXPECT_EQ(memory_info::of(gpu, at).maker, row.maker);
    const dma_engine engine({.mode = engine_mode::inline_worker});
    registration_cache cache(registration_cache_options{});
    cache.register_with(engine);
    cache.add_memory_of(gpu);
    expect_refusal("cache", row.cache, refusal_or_nothing([&] { (void)cache.get(at, allocated::bytes); }));
    expect_refusal("adopt", row.adopt, refusal_or_nothing([&] {
                       const weftio::memory adopted = gpu.adopt(at, allocated::bytes);
                       const memory_region region(engine, adopted);
                   }));
    expect_refusal("hold", row.hold, refusal_or_nothing([&] { (void)memory_holder::of(gpu, at); }));
}

} // namespace weftio::test
