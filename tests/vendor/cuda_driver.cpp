// Stands in for NVIDIA's libcuda.so.1: two GPUs, whose memory is the host's, whose streams do at once what they are
// told, unless a test holds them. Contexts are strict: what a call does not find current it refuses, as the driver
// does. Allocations lie side by side; what was freed cannot be accessed, and comes back at once when as much is
// allocated, on any GPU.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr int success = 0, invalid_value = 1, out_of_memory = 2, invalid_device = 101, invalid_context = 201,
              invalid_handle = 400, not_found = 500;

/// A GPU; its address is that of its primary context.
struct gpu {
    int number;
};
gpu gpus[] = {{0}, {1}};

struct stream {
    gpu* of;
};

struct range {
    std::size_t bytes;
    gpu* of; ///< nullptr: memory of the host that the driver has pinned
    bool managed = false;
    unsigned long long id = 0;
    bool reserved = false, pooled = false; ///< for cuMemMap(); of cuMemAllocAsync()
};

/// Physical memory that is mapped at reserved addresses.
struct mapping {
    std::size_t bytes;
    unsigned long long block;
};

std::mutex mutex;
std::map<std::uintptr_t, range> ranges;           ///< by the first byte
std::map<std::uintptr_t, mapping> mappings;       ///< the same
std::map<unsigned long long, std::size_t> blocks; ///< of cuMemCreate(), and their bytes
unsigned long long last_id = 0;
std::atomic<unsigned long long> ids_asked{0};
std::mutex copies_mutex;
bool held = false;
std::vector<std::function<void()>> waiting; ///< copies, while they are held
thread_local std::vector<gpu*> contexts;

gpu* current()
{
    return contexts.empty() ? nullptr : contexts.back();
}

/// Of the stream's own context, which must be current.
int status_of(const stream* of)
{
    return !current() ? invalid_context : of && of->of != current() ? invalid_handle : success;
}

constexpr std::size_t page = 4096;

std::size_t whole_pages(std::size_t bytes)
{
    return (bytes + page - 1) / page * page;
}

/// The memory of all GPUs. @pre mutex is held
class gpu_pages {
 public:
    void* take(std::size_t bytes)
    {
        join(bytes);
        const auto back =
            std::find_if(freed_.rbegin(), freed_.rend(), [&](const auto& at) { return at.second == bytes; });
        std::byte* made = next_;
        if (back != freed_.rend()) {
            made = back->first;
            freed_.erase(std::prev(back.base()));
        } else if (next_ + bytes <= first_ + all) {
            next_ += bytes;
        } else {
            return nullptr;
        }
        return mprotect(made, bytes, PROT_READ | PROT_WRITE) == 0 ? made : nullptr;
    }
    void forget_freed() { freed_.clear(); }
    bool give_back(void* memory, std::size_t bytes)
    {
        auto* const at = static_cast<std::byte*>(memory);
        if (at < first_ || at >= first_ + all)
            return false;
        madvise(at, bytes, MADV_DONTNEED);
        mprotect(at, bytes, PROT_NONE);
        freed_.emplace_back(at, bytes);
        return true;
    }

 private:
    /// If nothing freed has that length, but two neighbors together have.
    void join(std::size_t bytes)
    {
        if (std::any_of(freed_.begin(), freed_.end(), [&](const auto& at) { return at.second == bytes; }))
            return;
        for (auto& one : freed_)
            for (auto& other : freed_)
                if (one.first + one.second == other.first && one.second + other.second == bytes) {
                    one.second = bytes;
                    std::swap(other, freed_.back());
                    freed_.pop_back();
                    return;
                }
    }

    static constexpr std::size_t all = std::size_t{4} << 30;
    std::byte* const first_ =
        static_cast<std::byte*>(mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    std::byte* next_ = first_;
    std::vector<std::pair<std::byte*, std::size_t>> freed_;
};

gpu_pages& of_gpus()
{
    static auto& only = *new gpu_pages;
    return only;
}

int allocate(void** made, std::size_t bytes, gpu* of, bool managed = false)
{
    if (!current())
        return invalid_context;
    const std::lock_guard lock(mutex);
    *made = of ? of_gpus().take(whole_pages(bytes)) : std::aligned_alloc(page, whole_pages(bytes));
    if (!*made)
        return out_of_memory;
    ranges[reinterpret_cast<std::uintptr_t>(*made)] = {bytes, of, managed, ++last_id};
    return success;
}

int release(void* memory)
{
    if (!current())
        return invalid_context;
    const std::lock_guard lock(mutex);
    const auto found = ranges.find(reinterpret_cast<std::uintptr_t>(memory));
    if (found == ranges.end())
        return invalid_value;
    if (!of_gpus().give_back(memory, whole_pages(found->second.bytes)))
        std::free(memory);
    ranges.erase(found);
    return success;
}

/// Returns nullptr where nothing is mapped. @pre mutex is held
const mapping* mapping_of(std::uintptr_t address)
{
    const auto behind = mappings.upper_bound(address);
    if (behind == mappings.begin() || address - std::prev(behind)->first >= std::prev(behind)->second.bytes)
        return nullptr;
    return &std::prev(behind)->second;
}

/// At once, or when the test lets copies go on.
void do_in_order(std::function<void()> work)
{
    const std::lock_guard lock(copies_mutex);
    if (held)
        waiting.push_back(std::move(work));
    else
        work();
}

template <class T>
int put(void* to, T value)
{
    std::memcpy(to, &value, sizeof value);
    return success;
}

} // namespace

extern "C" {

using device_pointer = unsigned long long;

/// For tests: streams do nothing from now on, or everything.
void stand_in_hold(bool hold)
{
    const std::lock_guard lock(copies_mutex);
    held = hold;
    if (!held)
        for (const auto& each : std::exchange(waiting, {}))
            each();
}
/// For tests: what was freed does not come back; what is allocated from now on lies side by side.
void stand_in_begin_anew()
{
    const std::lock_guard lock(mutex);
    of_gpus().forget_freed();
}
/// For tests: copies that are held.
std::size_t stand_in_held()
{
    const std::lock_guard lock(copies_mutex);
    return waiting.size();
}
/// For tests: how often a buffer ID was asked for.
unsigned long long stand_in_ids_asked()
{
    return ids_asked.load();
}
int cuInit(unsigned)
{
    return success;
}
int cuDriverGetVersion(int* version)
{
    *version = 12000;
    return success;
}
int cuDeviceGetCount(int* count)
{
    *count = 2;
    return success;
}
int cuDeviceGet(int* device, int number)
{
    *device = number;
    return number < 2 ? success : invalid_device;
}
int cuDeviceGetByPCIBusId(int*, const char*)
{
    return invalid_device;
}
int cuDeviceGetName(char* name, int bytes, int device)
{
    std::snprintf(name, static_cast<std::size_t>(bytes), "stand-in %d", device);
    return success;
}
int cuDeviceGetAttribute(int* value, int, int)
{
    *value = 1;
    return success;
}
int cuDevicePrimaryCtxRetain(gpu** context, int device)
{
    *context = &gpus[device];
    return success;
}
int cuDevicePrimaryCtxRelease_v2(int)
{
    return success;
}
int cuDevicePrimaryCtxReset_v2(int device)
{
    const std::lock_guard lock(mutex);
    for (auto at = ranges.begin(); at != ranges.end();)
        if (at->second.of == &gpus[device]) {
            of_gpus().give_back(reinterpret_cast<void*>(at->first), whole_pages(at->second.bytes));
            at = ranges.erase(at);
        } else {
            ++at;
        }
    return success;
}
int cuCtxGetCurrent(gpu** context)
{
    *context = current();
    return success;
}
int cuCtxSetCurrent(gpu* context)
{
    if (!contexts.empty())
        contexts.pop_back();
    if (context)
        contexts.push_back(context);
    return success;
}
int cuCtxPushCurrent_v2(gpu* context)
{
    contexts.push_back(context);
    return success;
}
int cuCtxPopCurrent_v2(gpu** context)
{
    if (contexts.empty())
        return invalid_context;
    *context = contexts.back();
    contexts.pop_back();
    return success;
}
int cuMemAlloc_v2(device_pointer* made, std::size_t bytes)
{
    void* memory = nullptr;
    const int status = allocate(&memory, bytes, current());
    *made = reinterpret_cast<device_pointer>(memory);
    return status;
}
int cuMemAllocManaged(device_pointer* made, std::size_t bytes, unsigned)
{
    void* memory = nullptr;
    const int status = allocate(&memory, bytes, current(), true);
    *made = reinterpret_cast<device_pointer>(memory);
    return status;
}
int cuMemFree_v2(device_pointer memory)
{
    return release(reinterpret_cast<void*>(memory));
}
int cuMemHostAlloc(void** made, std::size_t bytes, unsigned)
{
    return allocate(made, bytes, nullptr);
}
int cuMemFreeHost(void* memory)
{
    return release(memory);
}
int cuMemsetD8Async(device_pointer to, unsigned char value, std::size_t bytes, stream* in)
{
    if (status_of(in) == success)
        std::memset(reinterpret_cast<void*>(to), value, bytes);
    return status_of(in);
}
int cuMemsetD32Async(device_pointer to, unsigned value, std::size_t words, stream* in)
{
    for (std::size_t at = 0; status_of(in) == success && at < words; ++at)
        std::memcpy(reinterpret_cast<char*>(to) + at * 4, &value, 4);
    return status_of(in);
}
int cuMemcpyAsync(device_pointer to, device_pointer from, std::size_t bytes, stream* in)
{
    if (status_of(in) == success)
        do_in_order([=] { std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); });
    return status_of(in);
}
int cuMemcpyHtoD_v2(device_pointer to, const void* from, std::size_t bytes)
{
    return cuMemcpyAsync(to, reinterpret_cast<device_pointer>(from), bytes, nullptr);
}
int cuMemcpyDtoH_v2(void* to, device_pointer from, std::size_t bytes)
{
    return cuMemcpyAsync(reinterpret_cast<device_pointer>(to), from, bytes, nullptr);
}
int cuMemcpyDtoHAsync_v2(void* to, device_pointer from, std::size_t bytes, stream* in)
{
    return cuMemcpyAsync(reinterpret_cast<device_pointer>(to), from, bytes, in);
}
int cuMemcpyHtoDAsync_v2(device_pointer to, const void* from, std::size_t bytes, stream* in)
{
    return cuMemcpyAsync(to, reinterpret_cast<device_pointer>(from), bytes, in);
}
int cuMemcpy2DAsync_v2(const void*, stream*)
{
    return invalid_value;
}
int cuStreamWriteValue32_v2(stream* in, device_pointer to, std::uint32_t value, unsigned)
{
    if (status_of(in) == success)
        do_in_order([=] { __atomic_store_n(reinterpret_cast<std::uint32_t*>(to), value, __ATOMIC_RELEASE); });
    return status_of(in);
}
int cuMemGetHandleForAddressRange(void*, device_pointer, std::size_t, int, unsigned long long)
{
    return invalid_value;
}
int cuPointerGetAttribute(void* to, int attribute, device_pointer address)
{
    const std::lock_guard lock(mutex);
    auto behind = ranges.upper_bound(address);
    if (behind == ranges.begin() || address - std::prev(behind)->first >= std::prev(behind)->second.bytes)
        return invalid_value;
    const auto& [first, found] = *std::prev(behind);
    const mapping* const there = found.reserved ? mapping_of(address) : nullptr;
    if (attribute >= 18 && attribute <= 20 && !there)
        return invalid_value;
    switch (attribute) {
        case 2: return put(to, found.of ? 2U : 1U); // type of memory: of a device, of the host
        case 3:
        case 4: return put(to, address); // as device and host see it
        case 7: return ++ids_asked, put(to, found.id);
        case 8: return put(to, found.managed ? 1U : 0U);
        case 9: return put(to, found.of ? found.of->number : 0);
        case 10: return put(to, found.of && !found.managed && !found.reserved && !found.pooled ? 1U : 0U);
        case 11: return put(to, static_cast<device_pointer>(first));
        case 12: return put(to, found.bytes);
        case 13: return put(to, !found.reserved || there ? 1U : 0U);
        case 17: return put(to, found.pooled ? static_cast<void*>(gpus) : nullptr);
        case 18: return put(to, there->bytes);
        case 19: return put(to, static_cast<device_pointer>(std::prev(mappings.upper_bound(address))->first));
        case 20: return put(to, there->block);
        default: return invalid_value;
    }
}
int cuMemAllocAsync(device_pointer* made, std::size_t bytes, stream*)
{
    const int status = cuMemAlloc_v2(made, bytes);
    const std::lock_guard lock(mutex);
    if (status == success)
        ranges[*made].pooled = true;
    return status;
}
int cuMemAddressReserve(device_pointer* made, std::size_t bytes, std::size_t, device_pointer, unsigned long long)
{
    const int status = cuMemAlloc_v2(made, bytes);
    const std::lock_guard lock(mutex);
    if (status == success) {
        ranges[*made].reserved = true;
        mprotect(reinterpret_cast<void*>(*made), bytes, PROT_NONE);
    }
    return status;
}
int cuMemAddressFree(device_pointer memory, std::size_t)
{
    return cuMemFree_v2(memory);
}
int cuMemCreate(unsigned long long* handle, std::size_t bytes, const void*, unsigned long long)
{
    const std::lock_guard lock(mutex);
    blocks[*handle = ++last_id] = bytes;
    return success;
}
int cuMemRelease(unsigned long long)
{
    return success;
}
int cuMemMap(device_pointer at, std::size_t bytes, std::size_t, unsigned long long handle, unsigned long long)
{
    const std::lock_guard lock(mutex);
    if (!blocks.contains(handle))
        return invalid_value;
    mappings[at] = {bytes, handle};
    return success;
}
int cuMemSetAccess(device_pointer at, std::size_t bytes, const void*, std::size_t)
{
    return mprotect(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE) == 0 ? success : invalid_value;
}
int cuMemUnmap(device_pointer at, std::size_t bytes)
{
    const std::lock_guard lock(mutex);
    madvise(reinterpret_cast<void*>(at), bytes, MADV_DONTNEED);
    mprotect(reinterpret_cast<void*>(at), bytes, PROT_NONE);
    return mappings.erase(at) == 1 ? success : invalid_value;
}
int cuPointerSetAttribute(const void*, int, device_pointer)
{
    return success;
}
int cuModuleLoadData(void** module, const void*)
{
    *module = gpus;
    return current() ? success : invalid_context;
}
int cuModuleGetFunction(void**, void*, const char*)
{
    return not_found;
}
int cuModuleUnload(void*)
{
    return current() ? success : invalid_context;
}
int cuFuncGetAttribute(int*, int, void*)
{
    return not_found;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int*, void*, int, std::size_t)
{
    return not_found;
}
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, stream*, void**, void**)
{
    return not_found;
}
int cuStreamCreate(stream** made, unsigned)
{
    *made = new stream{current()};
    return current() ? success : invalid_context;
}
int cuStreamDestroy_v2(stream* ended)
{
    delete ended;
    return success;
}
int cuLaunchHostFunc(stream* in, void (*function)(void*), void* context)
{
    if (status_of(in) == success)
        function(context);
    return status_of(in);
}
int cuStreamQuery(stream* in)
{
    return status_of(in);
}
int cuStreamSynchronize(stream* in)
{
    while (stand_in_held() != 0)
        std::this_thread::yield();
    return status_of(in);
}
int cuGetErrorName(int, const char** name)
{
    *name = "STAND_IN";
    return success;
}
int cuGetErrorString(int, const char** text)
{
    *text = "a call was refused";
    return success;
}

} // extern "C"
