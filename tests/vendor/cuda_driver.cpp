// Stands in for NVIDIA's libcuda.so.1: two GPUs, whose memory is the host's (hidden from the CPU where a test or the
// variable STAND_IN_HIDES says so), whose streams do at once what they are told, unless a test holds them. Contexts are
// strict: what a call does not find current it refuses, as the driver does. Allocations lie side by side; what was
// freed cannot be accessed, and comes back at once when as much is allocated, on any GPU.
#include <atomic>
#include <cstdio>
#include <thread>

#include "cuda_state.hpp"

using namespace stand_in;

namespace {

/// Copies that streams were asked for in one direction.
struct copy_count {
    std::atomic<std::uint64_t> copies{0}, bytes{0};
    void add(std::size_t more) noexcept
    {
        copies.fetch_add(1, std::memory_order_relaxed);
        bytes.fetch_add(more, std::memory_order_relaxed);
    }
};
copy_count to_gpu, from_gpu;

/// With the variable STAND_IN_COUNTS, at the end of the process.
void print_counts()
{
    const auto print = [](const char* which, const copy_count& all) {
        const std::uint64_t copies = all.copies, bytes = all.bytes;
        std::fprintf(stderr, "stand-in: %s: %llu copies of %.0f bytes\n", which,
                     static_cast<unsigned long long>(copies),
                     copies == 0 ? 0. : static_cast<double>(bytes) / static_cast<double>(copies));
    };
    print("to the GPU", to_gpu);
    print("from the GPU", from_gpu);
}

} // namespace

extern "C" {

/// For tests: streams do nothing from now on, or everything.
void stand_in_hold(bool hold)
{
    const std::lock_guard lock(copies_mutex);
    held = hold;
    if (!held)
        for (const auto& each : std::exchange(waiting, {}))
            each();
}
/// For tests: the CPU can touch no byte of what is allocated from now on, but by copies.
void stand_in_hide(bool hide)
{
    hides = hide;
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
/// For tests: how often cuPointerGetAttribute() was called.
unsigned long long stand_in_attributes_asked()
{
    return attributes_asked.load();
}
/// For tests: whether one GPU can access the other one's memory. So often was access given so far.
int stand_in_peers(bool can)
{
    peers = can;
    return peer_accesses;
}
int cuInit(unsigned)
{
    static const int at_exit = std::atexit([] { ended = true; });
    (void)at_exit;
    if (static const bool counts = std::getenv("STAND_IN_COUNTS") != nullptr; counts) {
        static const int printed = std::atexit(print_counts);
        (void)printed;
    }
    if (std::getenv("STAND_IN_HIDES"))
        hides = true;
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
int cuDeviceCanAccessPeer(int* can, int device, int other)
{
    *can = peers && device != other;
    return success;
}
int cuCtxEnablePeerAccess(gpu* other, unsigned flags)
{
    if (!current())
        return invalid_context;
    if (!peers || other == current() || flags != 0)
        return invalid_device;
    if (current()->reaches_other.exchange(true))
        return peer_access_enabled_before;
    ++peer_accesses;
    return success;
}
int cuCtxGetCurrent(gpu** context)
{
    *context = current();
    return success;
}
int cuCtxSetCurrent(gpu* context)
{
    if (!contexts().empty())
        contexts().pop_back();
    if (context)
        contexts().push_back(context);
    return success;
}
int cuCtxPushCurrent_v2(gpu* context)
{
    if (ended)
        return deinitialized;
    contexts().push_back(context);
    return success;
}
int cuCtxPopCurrent_v2(gpu** context)
{
    if (contexts().empty())
        return invalid_context;
    *context = contexts().back();
    contexts().pop_back();
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
int cuMemHostAlloc(void** made, std::size_t bytes, unsigned)
{
    return allocate(made, bytes, nullptr);
}
int cuMemFreeHost(void* memory)
{
    return release(memory);
}
int cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned)
{
    const std::lock_guard lock(mutex);
    ranges[reinterpret_cast<std::uintptr_t>(memory)] = {bytes, nullptr, false, ++last_id};
    return current() ? success : invalid_context;
}
int cuMemHostUnregister(void* memory)
{
    const std::lock_guard lock(mutex);
    return ranges.erase(reinterpret_cast<std::uintptr_t>(memory)) == 1 ? success : invalid_value;
}
int cuMemsetD8Async(device_pointer to, unsigned char value, std::size_t bytes, stream* in)
{
    if (status_of(in) == success)
        std::memset(alias_of(to), value, bytes);
    return status_of(in);
}
int cuMemsetD32Async(device_pointer to, unsigned value, std::size_t words, stream* in)
{
    for (std::size_t at = 0; status_of(in) == success && at < words; ++at)
        std::memcpy(alias_of(to) + at * 4, &value, 4);
    return status_of(in);
}
int cuMemcpyAsync(device_pointer to, device_pointer from, std::size_t bytes, stream* in)
{
    if (!is_there(to, bytes) || !is_there(from, bytes))
        return invalid_value;
    if (status_of(in) == success)
        do_in_order([=] { std::memcpy(alias_of(to), alias_of(from), bytes); });
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
    if (!is_known(from))
        return invalid_value;
    from_gpu.add(bytes);
    return cuMemcpyAsync(reinterpret_cast<device_pointer>(to), from, bytes, in);
}
int cuMemcpyHtoDAsync_v2(device_pointer to, const void* from, std::size_t bytes, stream* in)
{
    if (!is_known(to))
        return invalid_value;
    to_gpu.add(bytes);
    if (status_of(in) == success && is_late(to, from, bytes))
        return success;
    return cuMemcpyAsync(to, reinterpret_cast<device_pointer>(from), bytes, in);
}
int cuMemcpy2DAsync_v2(const void*, stream*)
{
    return invalid_value;
}
int cuStreamWriteValue32_v2(stream* in, device_pointer to, std::uint32_t value, unsigned)
{
    if (status_of(in) == success)
        do_in_order([=] { __atomic_store_n(reinterpret_cast<std::uint32_t*>(alias_of(to)), value, __ATOMIC_RELEASE); });
    return status_of(in);
}
int cuMemGetHandleForAddressRange(void* made, device_pointer first, std::size_t bytes, int, unsigned long long)
{
    if (!of_gpus().has(first) || !is_there(first, bytes) || is_of_pool(first) || first % page != 0 || bytes % page != 0)
        return invalid_value;
    const int descriptor = of_gpus().describe(bytes);
    std::memcpy(made, &descriptor, sizeof descriptor);
    return descriptor < 0 ? invalid_value : success;
}
int cuStreamCreate(stream** made, unsigned)
{
    *made = new stream{.of = current()};
    return current() ? success : invalid_context;
}
int cuStreamDestroy_v2(stream* ended)
{
    end_copies();
    if (ended->kernel.joinable())
        ended->kernel.join();
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
    return in && in->is_busy ? not_ready : status_of(in);
}
int cuStreamSynchronize(stream* in)
{
    while (stand_in_held() != 0 || (in && in->is_busy))
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
