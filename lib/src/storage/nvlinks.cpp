// NVLinks, from NVIDIA's management library. It is opened when it is asked, and never linked.
#include <dlfcn.h>
#include <fmt/format.h>

#include <memory>

#include "storage/topology.hpp"

namespace weftio::storage {

namespace {

/// The functions of libnvidia-ml.so.1 that are called. A device is an opaque pointer; 0 is success.
class management_library {
 public:
    management_library() : handle_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL), close)
    {
        find(init_, "nvmlInit_v2");
        find(shutdown_, "nvmlShutdown");
        find(handle_by_address_, "nvmlDeviceGetHandleByPciBusId_v2");
        find(p2p_status_, "nvmlDeviceGetP2PStatus");
        ready_ = init_ && shutdown_ && handle_by_address_ && p2p_status_ && init_() == 0;
    }
    management_library(const management_library&) = delete;
    management_library& operator=(const management_library&) = delete;
    ~management_library()
    {
        if (ready_)
            shutdown_();
    }

    bool is_there() const noexcept { return handle_ != nullptr; }
    bool is_ready() const noexcept { return ready_; }
    /// Null: the driver does not know the address.
    void* device(const std::string& address) const
    {
        void* found = nullptr;
        return handle_by_address_(address.c_str(), &found) == 0 ? found : nullptr;
    }
    bool has_nvlink(void* device, void* other) const
    {
        constexpr int nvlink = 2;
        int status = 1;
        return p2p_status_(device, other, nvlink, &status) == 0 && status == 0;
    }

 private:
    static void close(void* handle)
    {
        if (handle)
            ::dlclose(handle);
    }
    template <class Function>
    void find(Function& to, const char* name)
    {
        to = handle_ ? reinterpret_cast<Function>(::dlsym(handle_.get(), name)) : nullptr;
    }

    std::unique_ptr<void, void (*)(void*)> handle_;
    int (*init_)() = nullptr;
    int (*shutdown_)() = nullptr;
    int (*handle_by_address_)(const char*, void**) = nullptr;
    int (*p2p_status_)(void*, void*, int, int*) = nullptr;
    bool ready_ = false;
};

} // namespace

std::string add_nvlinks(topology& to)
{
    const std::vector<std::size_t> gpus = to.all(topology_node::kind::gpu);
    if (gpus.size() < 2)
        return {};
    const management_library library;
    if (!library.is_ready())
        return library.is_there() ? "libnvidia-ml.so.1 cannot be initialized" : "libnvidia-ml.so.1 cannot be loaded";
    for (std::size_t first = 0; first < gpus.size(); ++first)
        for (std::size_t second = first + 1; second < gpus.size(); ++second) {
            void* device = library.device(to.nodes()[gpus[first]].address);
            void* other = library.device(to.nodes()[gpus[second]].address);
            if (device && other && library.has_nvlink(device, other))
                to.connect(gpus[first], gpus[second]);
        }
    return {};
}

} // namespace weftio::storage
