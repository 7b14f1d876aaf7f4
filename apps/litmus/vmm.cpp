#include "vmm.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "verbs.hpp"

namespace weftio::litmus {

namespace {

using physical = unsigned long long; ///< CUmemGenericAllocationHandle

/// CUmemLocation of the driver's ABI.
struct location {
    int type = 1, number = 0; ///< of a GPU
};
/// CUmemAllocationProp.
struct properties {
    int type = 1;         ///< pinned
    int handle_types = 1; ///< file descriptors
    location on{};
    void* metadata = nullptr;
    unsigned char compression = 0, rdma_capable = 1;
    unsigned short usage = 0;
    unsigned char reserved[4] = {};
};
static_assert(sizeof(properties) == 32);
/// CUmemAccessDesc.
struct access {
    location of{};
    int flags = 3; ///< to read and to write
};
static_assert(sizeof(access) == 12);

struct vmm_driver {
    int (*cuMemGetAllocationGranularity)(std::size_t*, const properties*, int);
    int (*cuMemCreate)(physical*, std::size_t, const properties*, unsigned long long);
    int (*cuMemRelease)(physical);
    int (*cuMemAddressReserve)(device_pointer*, std::size_t, std::size_t, device_pointer, unsigned long long);
    int (*cuMemAddressFree)(device_pointer, std::size_t);
    int (*cuMemMap)(device_pointer, std::size_t, std::size_t, physical, unsigned long long);
    int (*cuMemUnmap)(device_pointer, std::size_t);
    int (*cuMemSetAccess)(device_pointer, std::size_t, const access*, std::size_t);
};

template <class Function>
void find_mapping(void* library, const char* name, Function& to)
{
    to = reinterpret_cast<Function>(dlsym(library, name));
    if (!to)
        throw failure(
            fmt::format("this driver has no {}, by which memory is mapped; install one for CUDA 12 or newer", name));
}

const vmm_driver& api()
{
    static const vmm_driver only = [] {
        void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        vmm_driver made{};
#define WEFTIO_FIND(NAME) find_mapping(library, #NAME, made.NAME)
        WEFTIO_FIND(cuMemGetAllocationGranularity);
        WEFTIO_FIND(cuMemCreate);
        WEFTIO_FIND(cuMemRelease);
        WEFTIO_FIND(cuMemAddressReserve);
        WEFTIO_FIND(cuMemAddressFree);
        WEFTIO_FIND(cuMemMap);
        WEFTIO_FIND(cuMemUnmap);
        WEFTIO_FIND(cuMemSetAccess);
#undef WEFTIO_FIND
        return made;
    }();
    return only;
}

properties wanted_on(int gpu)
{
    properties made;
    made.on.number = gpu;
    return made;
}

std::size_t whole_pieces(std::size_t bytes, int gpu)
{
    constexpr int least = 0;
    const properties wanted = wanted_on(gpu);
    std::size_t piece = 0;
    need(api().cuMemGetAllocationGranularity(&piece, &wanted, least), "the GPU does not tell how its memory is mapped");
    return (bytes + piece - 1) / piece * piece;
}

} // namespace

std::string why_no_vmm(const gpu& of)
{
    const struct {
        int number;
        const char* name;
    } needed[] = {{102, "VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED"},
                  {103, "HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED"},
                  {110, "GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED"}};
    for (const auto& each : needed)
        if (of.attribute(each.number) == 0)
            return fmt::format("the GPU has no mapped memory (cuMemCreate) that NICs reach: {} is 0", each.name);
    return {};
}

mapped_memory::mapped_memory(std::size_t bytes, const std::vector<int>& gpus)
    : bytes_(whole_pieces(bytes, gpus.front()))
{
    try {
        map(gpus);
    } catch (...) {
        give_back();
        throw;
    }
}

mapped_memory::~mapped_memory()
{
    give_back();
}

void mapped_memory::map(const std::vector<int>& gpus)
{
    const properties wanted = wanted_on(gpus.front());
    std::vector<access> of_all;
    for (const int each : gpus)
        of_all.push_back({.of = {.number = each}});
    need(api().cuMemAddressReserve(&at_, bytes_, 0, 0, 0), "the driver reserves no addresses");
    physical made = 0;
    need(api().cuMemCreate(&made, bytes_, &wanted, 0), "the GPU gives no memory that NICs reach (cuMemCreate)");
    const int status = api().cuMemMap(at_, bytes_, 0, made, 0);
    api().cuMemRelease(made); // the mapping keeps it
    need(status, "memory of the GPU cannot be mapped");
    is_mapped_ = true;
    need(api().cuMemSetAccess(at_, bytes_, of_all.data(), of_all.size()), "GPUs get no access to mapped memory");
}

void mapped_memory::give_back() noexcept
{
    if (is_mapped_)
        api().cuMemUnmap(at_, bytes_);
    if (at_ != 0)
        api().cuMemAddressFree(at_, bytes_);
}

} // namespace weftio::litmus
