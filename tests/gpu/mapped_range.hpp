// Physical memory of a GPU at addresses of the test's choice, as cuMemMap() puts it there.
#pragma once

#include <dlfcn.h>

#include <cstddef>

#include <gtest/gtest.h>

#include "devices/cuda/cuda_device.hpp"

namespace weftio::test {

/// A function of the driver that Weftio does not call.
template <class Function>
Function* function_of_driver(const char* name)
{
    return reinterpret_cast<Function*>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), name));
}

/// A range of addresses, in which physical memory comes and goes (cuMemMap()).
class mapped_range {
 public:
    explicit mapped_range(const devices::cuda::cuda_device& on) : on_(on), number_(on.cuda_number())
    {
        const devices::cuda::current_context now = on_.use();
        EXPECT_EQ(reserve_(&at_, 4 * bytes, 0, 0, 0), 0);
    }
    mapped_range(const mapped_range&) = delete;
    mapped_range& operator=(const mapped_range&) = delete;
    ~mapped_range()
    {
        const devices::cuda::current_context now = on_.use();
        free_(at_, 4 * bytes);
    }
    static constexpr std::size_t bytes = std::size_t{2} << 20;

    const std::byte* at(std::size_t part) const { return reinterpret_cast<const std::byte*>(at_ + part * bytes); }
    void map(std::size_t part)
    {
        const devices::cuda::current_context now = on_.use();
        const allocation_properties what{.type = 1, .location_type = 1, .number = number_};
        unsigned long long handle = 0;
        EXPECT_EQ(create_(&handle, bytes, &what, 0), 0);
        EXPECT_EQ(map_(at_ + part * bytes, bytes, 0, handle, 0), 0);
        EXPECT_EQ(release_(handle), 0);
        const access_description all{.location_type = 1, .number = number_, .flags = 3};
        EXPECT_EQ(allow_(at_ + part * bytes, bytes, &all, 1), 0);
    }
    void unmap(std::size_t part)
    {
        const devices::cuda::current_context now = on_.use();
        EXPECT_EQ(unmap_(at_ + part * bytes, bytes), 0);
    }

 private:
    /// CUmemAllocationProp and CUmemAccessDesc of the driver's ABI.
    struct allocation_properties {
        int type = 0, handles = 0, location_type = 0, number = 0;
        void* metadata = nullptr;
        unsigned char flags[8] = {};
    };
    struct access_description {
        int location_type, number, flags;
    };
    using pointer = devices::cuda::device_pointer;

    const devices::cuda::cuda_device& on_;
    const int number_;
    pointer at_ = 0;
    int (*reserve_)(pointer*, std::size_t, std::size_t, pointer, unsigned long long) =
        function_of_driver<int(pointer*, std::size_t, std::size_t, pointer, unsigned long long)>("cuMemAddressReserve");
    int (*free_)(pointer, std::size_t) = function_of_driver<int(pointer, std::size_t)>("cuMemAddressFree");
    int (*create_)(unsigned long long*, std::size_t, const allocation_properties*, unsigned long long) =
        function_of_driver<int(unsigned long long*, std::size_t, const allocation_properties*, unsigned long long)>(
            "cuMemCreate");
    int (*release_)(unsigned long long) = function_of_driver<int(unsigned long long)>("cuMemRelease");
    int (*map_)(pointer, std::size_t, std::size_t, unsigned long long, unsigned long long) =
        function_of_driver<int(pointer, std::size_t, std::size_t, unsigned long long, unsigned long long)>("cuMemMap");
    int (*unmap_)(pointer, std::size_t) = function_of_driver<int(pointer, std::size_t)>("cuMemUnmap");
    int (*allow_)(pointer, std::size_t, const access_description*, std::size_t) =
        function_of_driver<int(pointer, std::size_t, const access_description*, std::size_t)>("cuMemSetAccess");
};

} // namespace weftio::test
