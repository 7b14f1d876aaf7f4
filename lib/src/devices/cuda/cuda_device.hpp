// An NVIDIA GPU.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "devices/backend.hpp"
#include "devices/cuda/driver.hpp"
#include "weftio/device.hpp"

namespace weftio::devices::cuda {

/// The primary context of one GPU. Nothing here waits for running kernels: streams are non-blocking, modules are loaded
/// when the device is opened, and memory released while a kernel runs is freed when none runs any more.
class cuda_device final : public device_backend {
 public:
    explicit cuda_device(device_number number);
    ~cuda_device() override;

    const std::string& name() const noexcept override { return name_; }
    int cuda_number() const noexcept override { return number_; }
    bool shares_memory_with(const device_backend& other) const noexcept override
    {
        const auto* gpu = dynamic_cast<const cuda_device*>(&other);
        return gpu && gpu->context_ == context_;
    }
    void reach(const device_backend& other, memory_kind kind, std::string_view who) override;
    allocation allocate(std::size_t bytes, std::size_t alignment, memory_kind kind) override;
    void release(const allocation& allocation, memory_kind kind) noexcept override;
    std::pair<allocation, memory_kind> adopt(void* address, std::size_t bytes) override;
    void upload(const allocation& to, const void* from, std::size_t bytes) override;
    /// The driver refuses to copy what cannot be read.
    bool can_read(const void*) const noexcept override { return true; }
    void download(void* to, const void* from, std::size_t bytes) override;
    std::shared_ptr<copy_queue> make_copy_queue(std::shared_ptr<device_backend> self) override;
    int export_dma_buf(const allocation& of, std::size_t bytes) override;
    std::uint64_t buffer_id(const allocation& of) override;
    std::shared_ptr<running_backend> launch(const launch_request& request,
                                            std::shared_ptr<device_backend> self) override;
    const weftio_dev_clock* clock() const noexcept override { return nullptr; }
    void enter_thread() noexcept override { cuda_.cuCtxPushCurrent_v2(context_); }
    void leave_thread() noexcept override
    {
        context pushed = nullptr;
        cuda_.cuCtxPopCurrent_v2(&pushed);
    }

    /// Called when a launched kernel has ended: its `blocks` are available again, and if it was the last, memory
    /// released meanwhile is freed.
    void ended(std::uint32_t blocks) noexcept;
    /// Called when a kernel has failed: the context is lost, and with it every other kernel of the device.
    void lost() noexcept;
    /// Its context is current as long as the result lives. Throws weftio::error.
    [[nodiscard]] current_context use() const { return {cuda_, context_}; }
    /// Its address on PCIe: "0000:3b:00.0".
    std::string pci_address() const;
    /// Whether allocate() has made the allocation that begins there, and release() was not called.
    bool owns(const void* begin);
    /// How often memory of allocate() was given back to the driver: it is counted before that is done.
    std::uint64_t frees() const noexcept { return frees_.load(std::memory_order_acquire); }
    /// Fills memory of the GPU with zeros; blocks until that is done. @pre its context is current
    void clear(void* at, std::size_t bytes) const;
    const driver& api() const noexcept { return cuda_; }
    context primary() const noexcept { return context_; }

 private:
    struct image {
        module loaded = nullptr;
        std::map<std::string, function, std::less<>> functions;
    };

    template <class T>
    T ask(pointer_attribute attribute, const void* address) const;
    void require_context() const;
    void order_copies_of_context() const;
    function find(const launch_request& request);
    image& load(std::string_view bytes);
    void check_shape(const launch_request& request, function kernel);
    void free(const allocation& allocation, memory_kind kind) noexcept;

    const driver& cuda_;
    device_number number_;
    std::string name_;
    int multiprocessors_ = 0;
    context context_ = nullptr;
    stream copies_ = nullptr;
    std::mutex mutex_; ///< guards the members below
    std::map<const char*, image> images_;
    std::uint32_t running_blocks_ = 0, running_kernels_ = 0;
    bool lost_ = false;
    std::set<const void*> own_; ///< first bytes of memory_kind::device that allocate() has made
    std::vector<std::pair<allocation, memory_kind>> to_free_;
    std::atomic<std::uint64_t> frees_{0};
};

} // namespace weftio::devices::cuda
