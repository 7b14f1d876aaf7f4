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
    find(persistence_mode_, "nvmlDeviceGetPersistenceMode");
    find(nvlink_state_, "nvmlDeviceGetNvLinkState");
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

std::optional<management_library::bar1_memory> management_library::bar1(void* device) const
{
    struct {
        unsigned long long total, free, used;
    } bar1{};
    if (!device || !bar1_memory_ || bar1_memory_(device, &bar1) != 0)
        return std::nullopt;
    return bar1_memory{bar1.total, bar1.free};
}

std::optional<bool> management_library::persistence_mode(void* device) const
{
    int on = 0;
    if (!persistence_mode_ || persistence_mode_(device, &on) != 0)
        return std::nullopt;
    return on != 0;
}

std::optional<unsigned> management_library::active_nvlinks(void* device) const
{
    constexpr unsigned most_links = 18; // NVML_NVLINK_MAX_LINKS
    unsigned up = 0;
    if (!nvlink_state_)
        return std::nullopt;
    for (unsigned link = 0; link < most_links; ++link)
        if (int state = 0; nvlink_state_(device, link, &state) == 0 && state != 0)
            ++up;
    return up;
}

} // namespace weftio::devices::cuda
