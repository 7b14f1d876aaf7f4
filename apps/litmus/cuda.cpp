#include "cuda.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "verbs.hpp"

namespace weftio::litmus {

namespace {

template <class Function>
void find(void* library, const char* name, Function& to)
{
    to = reinterpret_cast<Function>(dlsym(library, name));
    if (!to)
        throw failure(fmt::format("NVIDIA's driver has no {}; install one for CUDA 12 or newer", name));
}

driver opened()
{
    // What the driver loads late may wait for a kernel that runs, and that kernel for the copy that is loaded.
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        throw failure(fmt::format("no driver of NVIDIA's GPUs ({})", dlerror()));
    driver made{};
#define WEFTIO_FIND(NAME) find(library, #NAME, made.NAME)
    WEFTIO_FIND(cuInit);
    WEFTIO_FIND(cuDeviceGetCount);
    WEFTIO_FIND(cuDeviceGet);
    WEFTIO_FIND(cuDeviceGetByPCIBusId);
    WEFTIO_FIND(cuDeviceGetName);
    WEFTIO_FIND(cuDeviceGetAttribute);
    WEFTIO_FIND(cuDeviceCanAccessPeer);
    WEFTIO_FIND(cuDevicePrimaryCtxRetain);
    WEFTIO_FIND(cuCtxSetCurrent);
    WEFTIO_FIND(cuCtxEnablePeerAccess);
    WEFTIO_FIND(cuMemAlloc_v2);
    WEFTIO_FIND(cuMemFree_v2);
    WEFTIO_FIND(cuMemHostAlloc);
    WEFTIO_FIND(cuMemFreeHost);
    WEFTIO_FIND(cuMemsetD8Async);
    WEFTIO_FIND(cuMemcpyHtoDAsync_v2);
    WEFTIO_FIND(cuMemcpyDtoHAsync_v2);
    WEFTIO_FIND(cuStreamCreate);
    WEFTIO_FIND(cuStreamDestroy_v2);
    WEFTIO_FIND(cuStreamQuery);
    WEFTIO_FIND(cuStreamSynchronize);
    WEFTIO_FIND(cuModuleLoadData);
    WEFTIO_FIND(cuModuleUnload);
    WEFTIO_FIND(cuModuleGetFunction);
    WEFTIO_FIND(cuLaunchKernel);
    WEFTIO_FIND(cuGetErrorName);
#undef WEFTIO_FIND
    made.cuFlushGPUDirectRDMAWrites =
        reinterpret_cast<decltype(made.cuFlushGPUDirectRDMAWrites)>(dlsym(library, "cuFlushGPUDirectRDMAWrites"));
    made.cuMemGetHandleForAddressRange =
        reinterpret_cast<decltype(made.cuMemGetHandleForAddressRange)>(dlsym(library, "cuMemGetHandleForAddressRange"));
    if (const int status = made.cuInit(0); status != 0)
        throw failure(fmt::format("NVIDIA's driver does not start (error {}); `nvidia-smi` may say why", status));
    return made;
}

int number_of(const std::string& wanted)
{
    const driver& api = driver::library();
    int number = 0, count = 0;
    if (wanted.find(':') != wanted.npos) {
        if (api.cuDeviceGetByPCIBusId(&number, wanted.c_str()) != 0)
            throw failure(fmt::format("there is no GPU at {}; `nvidia-smi -L` and `lspci` list them", wanted));
        return number;
    }
    need(api.cuDeviceGetCount(&count), "GPUs cannot be counted");
    if (!std::ranges::all_of(wanted, [](char each) { return each >= '0' && each <= '9'; }) || wanted.empty() ||
        wanted.size() > 4 || std::stoi(wanted) >= count)
        throw failure(fmt::format("there is no GPU {}; there are {}, numbered from 0", wanted, count));
    need(api.cuDeviceGet(&number, std::stoi(wanted)), "the GPU cannot be opened");
    return number;
}

} // namespace

const driver& driver::library()
{
    static const driver only = opened();
    return only;
}

void need(int status, const char* what)
{
    const char* name = nullptr;
    if (status == 0)
        return;
    if (driver::library().cuGetErrorName(status, &name) != 0 || !name)
        name = "an unknown error";
    throw failure(fmt::format("{}: {} ({})", what, name, status));
}

gpu::gpu(const std::string& wanted) : number_(number_of(wanted))
{
    constexpr int flush_writes_options = 117, writes_ordering = 118;
    char name[128] = "";
    need(driver::library().cuDeviceGetName(name, sizeof name, number_), "the GPU has no name");
    name_ = name;
    ordering_ = attribute(writes_ordering);
    flush_options_ = attribute(flush_writes_options);
    need(driver::library().cuDevicePrimaryCtxRetain(&context_, number_), "the GPU gives no context");
    use();
}

int gpu::attribute(int which) const
{
    int value = 0;
    return driver::library().cuDeviceGetAttribute(&value, which, number_) == 0 ? value : 0;
}

void gpu::use() const
{
    need(driver::library().cuCtxSetCurrent(context_), "the GPU's context cannot be used");
}

void gpu::reach(const gpu& other) const
{
    constexpr int enabled_before = 704;
    int can = 0;
    use();
    need(driver::library().cuDeviceCanAccessPeer(&can, number_, other.number_), "GPUs cannot be asked for peers");
    if (number_ == other.number_)
        throw failure("--peer-gpu is the GPU of --gpu; give another one");
    if (can == 0)
        throw failure(
            fmt::format("GPU {} cannot access memory of GPU {} (`nvidia-smi topo -p2p r`)", number_, other.number_));
    if (const int status = driver::library().cuCtxEnablePeerAccess(other.context_, 0); status != enabled_before)
        need(status, "the second GPU gets no access to the memory of the first");
}

void gpu::flush(bool for_all) const
{
    constexpr int current_context = 0, to_owner = 100, to_all_devices = 200;
    const auto call = driver::library().cuFlushGPUDirectRDMAWrites;
    if (!call || (flush_options_ & 1) == 0)
        throw failure(fmt::format("{} has no flush by the driver's call (flush options {})", name_, flush_options_));
    use();
    need(call(current_context, for_all ? to_all_devices : to_owner), "cuFlushGPUDirectRDMAWrites is refused");
}

stream::stream()
{
    constexpr unsigned non_blocking = 1;
    need(driver::library().cuStreamCreate(&made_, non_blocking), "the GPU gives no stream");
}
stream::~stream()
{
    driver::library().cuStreamDestroy_v2(made_);
}
void stream::to_gpu(std::uint64_t* to, const std::uint64_t* from, std::size_t bytes)
{
    need(driver::library().cuMemcpyHtoDAsync_v2(reinterpret_cast<device_pointer>(to), from, bytes, made_),
         "a copy to the GPU is refused");
}
void stream::from_gpu(std::uint64_t* to, const std::uint64_t* from, std::size_t bytes)
{
    need(driver::library().cuMemcpyDtoHAsync_v2(to, reinterpret_cast<device_pointer>(from), bytes, made_),
         "a copy from the GPU is refused");
}
void stream::zero(std::uint64_t* to, std::size_t bytes)
{
    need(driver::library().cuMemsetD8Async(reinterpret_cast<device_pointer>(to), 0, bytes, made_),
         "memory of the GPU cannot be set");
}
void stream::launch(void* function, void** arguments)
{
    need(driver::library().cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, made_, arguments, nullptr),
         "the GPU does not start the kernel");
}
bool stream::is_busy() const
{
    constexpr int not_ready = 600;
    const int status = driver::library().cuStreamQuery(made_);
    if (status != not_ready)
        need(status, "the GPU has failed");
    return status == not_ready;
}
void stream::wait()
{
    need(driver::library().cuStreamSynchronize(made_), "the GPU has failed");
}

} // namespace weftio::litmus
