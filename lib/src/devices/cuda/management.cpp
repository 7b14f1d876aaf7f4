#include "devices/cuda/management.hpp"

#include <dlfcn.h>

namespace weftio::devices::cuda {

namespace {

void close(void* handle)
{
    if (handle)
        ::dlclose(handle);
}

} // namespace

template <class Function>
void management_library::find(Function& to, const char* name)
{
    to = handle_ ? reinterpret_cast<Function>(::dlsym(handle_.get(), name)) : nullptr;
}

management_library::management_library() : handle_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL), close)
{
    find(init_, "nvmlInit_v2");
    find(shutdown_, "nvmlShutdown");
    find(handle_by_address_, "nvmlDeviceGetHandleByPciBusId_v2");
    find(p2p_status_, "nvmlDeviceGetP2PStatus");
    find(bar1_memory_, "nvmlDeviceGetBAR1MemoryInfo");
    ready_ = init_ && shutdown_ && handle_by_address_ && p2p_status_ && init_() == 0;
}

management_library::~management_library()
{
    if (ready_)
        shutdown_();
}

void* management_library::device(const std::string& address) const
{
    void* found = nullptr;
    return handle_by_address_(address.c_str(), &found) == 0 ? found : nullptr;
}

bool management_library::has_nvlink(void* device, void* other) const
{
    constexpr int nvlink = 2;
    int status = 1;
    return p2p_status_(device, other, nvlink, &status) == 0 && status == 0;
}

std::optional<std::uint64_t> management_library::free_bar1_bytes(void* device) const
{
    struct {
        unsigned long long total, free, used;
    } bar1{};
    if (!device || !bar1_memory_ || bar1_memory_(device, &bar1) != 0)
        return std::nullopt;
    return bar1.free;
}

} // namespace weftio::devices::cuda
