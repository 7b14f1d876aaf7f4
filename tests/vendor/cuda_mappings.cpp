// Physical memory of the stand-in's GPUs, and addresses where it is mapped: of one process or several.
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdio>
#include <string>

#include "cuda_state.hpp"

using namespace stand_in;

namespace {

/// CUmemAllocationProp of the driver's ABI.
struct properties {
    int type, handle_types, location_type, number;
    void* metadata;
    unsigned char compression, rdma_capable;
    unsigned char rest[6];
};
/// CUmemAccessDesc.
struct access_description {
    int location_type, number, flags;
};
constexpr int descriptors = 1;

unsigned long long add(std::shared_ptr<physical> what)
{
    handles[++last_id] = std::move(what);
    return last_id;
}

/// The name of the file says whose memory it is: another process asks.
std::string name_of(const properties& of)
{
    return "stand-in:" + std::to_string(of.number);
}

} // namespace

extern "C" {

int cuMemAlloc_v2(device_pointer*, std::size_t);
int cuMemFree_v2(device_pointer);

int cuMemAddressReserve(device_pointer* made, std::size_t bytes, std::size_t, device_pointer, unsigned long long)
{
    const int status = cuMemAlloc_v2(made, bytes);
    const std::lock_guard lock(mutex);
    if (status == success) {
        ranges[*made].reserved = true;
        mprotect(reinterpret_cast<void*>(*made), whole_pages(bytes), PROT_NONE);
    }
    return status;
}
int cuMemAddressFree(device_pointer memory, std::size_t)
{
    return cuMemFree_v2(memory);
}
int cuMemGetAllocationGranularity(std::size_t* bytes, const properties*, int)
{
    *bytes = std::size_t{2} << 20;
    return success;
}
/// @param wanted  nullptr: no memory that is shared
int cuMemCreate(unsigned long long* handle, std::size_t bytes, const properties* wanted, unsigned long long)
{
    const char* const refused = std::getenv("STAND_IN_REFUSES");
    if (refused && std::strcmp(refused, "cuMemCreate") == 0)
        return not_supported;
    const properties as = wanted ? *wanted : properties{};
    const int descriptor = memfd_create(name_of(as).c_str(), MFD_CLOEXEC);
    if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(bytes)) != 0)
        return out_of_memory;
    const std::string of_others(std::min(bytes, std::size_t{1} << 16), 'Z'); // the driver clears nothing
    if (pwrite(descriptor, of_others.data(), of_others.size(), 0) < 0)
        return out_of_memory;
    const std::lock_guard lock(mutex);
    auto made = std::make_shared<physical>(bytes, descriptor, ++last_id);
    made->gpu = as.number;
    made->handle_types = as.handle_types;
    made->rdma_capable = as.rdma_capable != 0;
    *handle = add(std::move(made));
    return success;
}
/// For a stand-in of a NIC: whether it reaches what lies there, as gpuDirectRDMACapable says of mapped memory.
bool stand_in_is_for_nics(device_pointer at)
{
    const std::lock_guard lock(mutex);
    const mapping* const there = mapping_of(at);
    return !there || (there->block->rdma_capable && there->block->handle_types == descriptors);
}
int cuMemRelease(unsigned long long handle)
{
    const std::lock_guard lock(mutex);
    return handles.erase(handle) == 1 ? success : invalid_value;
}
int cuMemMap(device_pointer at, std::size_t bytes, std::size_t, unsigned long long handle, unsigned long long)
{
    const std::lock_guard lock(mutex);
    const auto found = handles.find(handle);
    if (found == handles.end() || bytes > found->second->bytes)
        return invalid_value;
    if (mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, found->second->descriptor, 0) ==
        MAP_FAILED)
        return out_of_memory;
    mappings[at] = {.bytes = bytes, .block = found->second};
    return success;
}
int cuMemSetAccess(device_pointer at, std::size_t bytes, const access_description* of, std::size_t count)
{
    const std::lock_guard lock(mutex);
    if (const auto found = mappings.find(at); found != mappings.end())
        for (std::size_t each = 0; each < count; ++each)
            found->second.reached |= 1u << of[each].number;
    const int seen = hides ? PROT_NONE : PROT_READ | PROT_WRITE;
    return mprotect(reinterpret_cast<void*>(at), bytes, seen) == 0 ? success : invalid_value;
}
int cuMemExportToShareableHandle(int* descriptor, unsigned long long handle, int type, unsigned long long)
{
    const std::lock_guard lock(mutex);
    const auto found = handles.find(handle);
    if (found == handles.end() || type != descriptors || !(found->second->handle_types & descriptors))
        return invalid_value;
    *descriptor = fcntl(found->second->descriptor, F_DUPFD_CLOEXEC, 0);
    return *descriptor < 0 ? out_of_memory : success;
}
int cuMemImportFromShareableHandle(unsigned long long* handle, void* descriptor, int type)
{
    const auto number = static_cast<int>(reinterpret_cast<std::intptr_t>(descriptor));
    struct stat seen {};
    char link[64] = "", name[64] = "";
    std::snprintf(link, sizeof link, "/proc/self/fd/%d", number);
    int gpu = -1;
    if (type != descriptors || fstat(number, &seen) != 0 || readlink(link, name, sizeof name - 1) < 0 ||
        std::sscanf(name, "/memfd:stand-in:%d", &gpu) != 1)
        return invalid_value;
    const std::lock_guard lock(mutex);
    auto made = std::make_shared<physical>(static_cast<std::size_t>(seen.st_size), fcntl(number, F_DUPFD_CLOEXEC, 0),
                                           ++last_id);
    made->gpu = gpu;
    made->handle_types = descriptors;
    made->rdma_capable = true;
    *handle = add(std::move(made));
    return success;
}
int cuMemRetainAllocationHandle(unsigned long long* handle, void* address)
{
    const std::lock_guard lock(mutex);
    const mapping* const there = mapping_of(reinterpret_cast<std::uintptr_t>(address));
    if (!there)
        return invalid_value;
    *handle = add(there->block);
    return success;
}
int cuMemGetAllocationPropertiesFromHandle(properties* to, unsigned long long handle)
{
    const std::lock_guard lock(mutex);
    const auto found = handles.find(handle);
    if (found == handles.end())
        return invalid_value;
    *to = {.type = 1,
           .handle_types = found->second->handle_types,
           .location_type = 1,
           .number = found->second->gpu,
           .metadata = nullptr,
           .compression = 0,
           .rdma_capable = found->second->rdma_capable,
           .rest = {}};
    return success;
}

} // extern "C"
