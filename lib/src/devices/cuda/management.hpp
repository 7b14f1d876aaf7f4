// NVIDIA's management library (NVML). It is opened when it is asked, and never linked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace weftio::devices::cuda {

/// The functions of libnvidia-ml.so.1 that are called. A device is an opaque pointer; 0 is success.
class management_library {
 public:
    management_library();
    management_library(const management_library&) = delete;
    management_library& operator=(const management_library&) = delete;
    ~management_library();

    bool is_there() const noexcept { return handle_ != nullptr; }
    bool is_ready() const noexcept { return ready_; }
    /// @param address  on PCIe: "0000:3b:00.0"
    /// @return nullptr: the driver does not know the address  @pre is_ready()
    void* device(const std::string& address) const;
    bool has_nvlink(void* device, void* other) const;
    /// Bytes of BAR1; nothing: this driver does not say it.
    struct bar1_memory {
        std::uint64_t total, free;
    };
    std::optional<bar1_memory> bar1(void* device) const;
    /// Whether the driver stays loaded between programs; nothing: this driver does not say it.
    std::optional<bool> persistence_mode(void* device) const;
    /// NVLinks that are up; nothing: this driver does not say it.
    std::optional<unsigned> active_nvlinks(void* device) const;

 private:
    template <class Function>
    void find(Function& to, const char* name);

    std::unique_ptr<void, void (*)(void*)> handle_;
    int (*init_)() = nullptr;
    int (*shutdown_)() = nullptr;
    int (*handle_by_address_)(const char*, void**) = nullptr;
    int (*p2p_status_)(void*, void*, int, int*) = nullptr;
    // nullptr: an older library
    int (*bar1_memory_)(void*, void*) = nullptr;
    int (*persistence_mode_)(void*, int*) = nullptr;
    int (*nvlink_state_)(void*, unsigned, int*) = nullptr;
    bool ready_ = false;
};

} // namespace weftio::devices::cuda
