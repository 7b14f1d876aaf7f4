#include "devices/cuda/cuda_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

#include "devices/cuda/copies.hpp"
#include "devices/cuda/free_watch.hpp"
#include "devices/cuda/images.hpp"
#include "weftio/error.hpp"

namespace weftio::devices::cuda {

namespace {

device_pointer pointer(const void* address)
{
    return reinterpret_cast<device_pointer>(address);
}

/// A kernel in a stream of its own.
class running final : public running_backend {
 public:
    running(const launch_request& request, std::shared_ptr<cuda_device> owner, stream stream)
        : name_(request.name), owner_(std::move(owner)), stream_(stream), blocks_(request.shape.blocks),
          lines_(request.lines)
    {}
    running(const running&) = delete;
    running& operator=(const running&) = delete;
    ~running() override
    {
        if (ended_)
            owner_->api().cuStreamDestroy_v2(stream_);
    }

    bool wait_for(std::chrono::nanoseconds bound) override
    {
        std::lock_guard lock(mutex_);
        constexpr std::chrono::nanoseconds longest = std::chrono::hours(24 * 365); // the sum with now must not overflow
        auto end = std::chrono::steady_clock::now() + std::min(bound, longest);
        while (!ended_) {
            query();
            if (ended_ || std::chrono::steady_clock::now() >= end)
                break;
            std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
        if (failure_ != success)
            throw error(
                errc::device_error,
                fmt::format("weftio: cuda: kernel {} failed with {}; the GPU's context is lost, so this process can "
                            "run no more kernels: restart it (ports and their queues run until then)",
                            name_, owner_->api().words(failure_)));
        return ended_;
    }

 private:
    void query()
    {
        const current_context now = owner_->use();
        result status = owner_->api().cuStreamQuery(stream_);
        if (status == not_ready)
            return;
        ended_ = true;
        failure_ = status;
        if (failure_ != success)
            owner_->lost();
        owner_->ended(blocks_);
    }

    std::string name_;
    std::shared_ptr<cuda_device> owner_;
    stream stream_;
    std::uint32_t blocks_;
    std::vector<std::shared_ptr<lifeline>> lines_; ///< keep the memory of queues until the kernel has ended
    std::mutex mutex_;
    bool ended_ = false;
    result failure_ = success;
};

} // namespace

cuda_device::cuda_device(device_number number) : cuda_(the_driver()), number_(number)
{
    std::array<char, 128> text{};
    cuda_.check(cuda_.cuDeviceGetName(text.data(), text.size(), number_), "asking for the GPU's name");
    cuda_.check(cuda_.cuDeviceGetAttribute(&multiprocessors_, multiprocessors, number_),
                "asking for the multiprocessors");
    name_ = fmt::format("cuda: {}", text.data());
    cuda_.check(cuda_.cuDevicePrimaryCtxRetain(&context_, number_), "making the context");
    const current_context now = use();
    cuda_.check(cuda_.cuStreamCreate(&copies_, stream_non_blocking), "making a stream");
    for (std::string_view bytes : images())
        load(bytes);
}

cuda_device::~cuda_device()
{
    {
        const current_context now(cuda_, context_, std::nothrow);
        for (auto& [allocation, kind] : to_free_)
            free(allocation, kind);
        for (auto& [bytes, image] : images_)
            cuda_.cuModuleUnload(image.loaded);
        cuda_.cuStreamDestroy_v2(copies_);
    }
    cuda_.cuDevicePrimaryCtxRelease_v2(number_);
}

void cuda_device::reach(const device_backend& other, memory_kind kind, std::string_view who)
{
    const auto* peer = dynamic_cast<const cuda_device*>(&other);
    if (!peer)
        return device_backend::reach(other, kind, who);
    if (shares_memory_with(other) || kind != memory_kind::device) // pinned memory is of all GPUs
        return;
    int can = 0;
    cuda_.check(cuda_.cuDeviceCanAccessPeer(&can, number_, peer->number_), "asking whether a GPU can access another");
    if (can == 0)
        throw error(
            errc::not_reachable,
            fmt::format("weftio: {}: kernels of cuda:{} cannot access memory of kind \"device\" of cuda:{}: the "
                        "driver says that these GPUs are no peers (\"nvidia-smi topo -p2p rw\" says why); use "
                        "memory_kind::cpu_device, which all GPUs access",
                        who, number_, peer->number_));
    const current_context now = use();
    if (const result status = cuda_.cuCtxEnablePeerAccess(peer->context_, 0); status != peer_access_enabled_before)
        cuda_.check(status, "giving a GPU access to another");
}

device_backend::allocation cuda_device::allocate(std::size_t bytes, std::size_t alignment, memory_kind kind)
{
    constexpr std::size_t natural_alignment = 256;
    if (kind == memory_kind::device_cpu)
        throw error(
            errc::not_supported,
            fmt::format("weftio: {}: GPU memory that the CPU can access needs GDRCopy, which Weftio does not use; use "
                        "memory_kind::cpu_device for memory that both access, memory_kind::device for the rest",
                        name_));
    if (alignment > natural_alignment && kind == memory_kind::device)
        bytes = (bytes + alignment - 1) / alignment * alignment; // makes cuMemAlloc align the block
    const current_context now = use();
    allocation made;
    if (kind == memory_kind::device) {
        device_pointer address = 0;
        cuda_.check(cuda_.cuMemAlloc_v2(&address, bytes), "allocating GPU memory");
        made.device = reinterpret_cast<void*>(address);
        int yes = 1;
        cuda_.check(cuda_.cuPointerSetAttribute(&yes, sync_memops, address),
                    "ordering copies to memory that a NIC may touch");
        clear(made.device, bytes);
        const std::lock_guard lock(mutex_);
        own_.insert(made.device);
    } else {
        cuda_.check(cuda_.cuMemHostAlloc(&made.cpu, bytes, host_alloc_portable | host_alloc_device_map),
                    "allocating pinned memory");
        std::memset(made.cpu, 0, bytes);
        made.device = made.cpu; // unified addressing
    }
    return made;
}

void cuda_device::clear(void* at, std::size_t bytes) const
{
    cuda_.check(cuda_.cuMemsetD8Async(pointer(at), 0, bytes, copies_), "clearing GPU memory");
    cuda_.check(cuda_.cuStreamSynchronize(copies_), "clearing GPU memory");
}

void cuda_device::release(const allocation& allocation, memory_kind kind) noexcept
{
    const freeing told(allocation.device);
    std::lock_guard lock(mutex_);
    own_.erase(allocation.device);
    if (running_kernels_ > 0)
        to_free_.emplace_back(allocation, kind);
    else
        free(allocation, kind);
}

void cuda_device::free(const allocation& allocation, memory_kind kind) noexcept
{
    const current_context now(cuda_, context_, std::nothrow);
    frees_.fetch_add(1, std::memory_order_release);
    if (kind == memory_kind::device)
        cuda_.cuMemFree_v2(pointer(allocation.device));
    else
        cuda_.cuMemFreeHost(allocation.cpu);
}

std::string cuda_device::pci_address() const
{
    int domain = 0, bus = 0, device = 0;
    cuda_.check(cuda_.cuDeviceGetAttribute(&domain, pci_domain, number_), "asking for the GPU's PCI domain");
    cuda_.check(cuda_.cuDeviceGetAttribute(&bus, pci_bus, number_), "asking for the GPU's PCI bus");
    cuda_.check(cuda_.cuDeviceGetAttribute(&device, pci_device, number_), "asking for the GPU's PCI device");
    return fmt::format("{:04x}:{:02x}:{:02x}.0", domain, bus, device);
}

bool cuda_device::owns(const void* begin)
{
    const std::lock_guard lock(mutex_);
    return own_.contains(begin);
}

template <class T>
T cuda_device::ask(pointer_attribute attribute, const void* address) const
{
    T value{};
    if (cuda_.cuPointerGetAttribute(&value, attribute, pointer(address)) != success)
        throw error(errc::not_reachable,
                    fmt::format("weftio: {}: the GPU does not know the memory at {}; allocate it with cudaMalloc or "
                                "cudaMallocHost, or pin it with cudaHostRegister",
                                name_, address));
    return value;
}

std::pair<device_backend::allocation, memory_kind> cuda_device::adopt(void* address, std::size_t bytes)
{
    const current_context now = use();
    auto type = ask<unsigned>(memory_type, address);
    if (ask<unsigned>(is_managed, address) != 0)
        throw error(errc::not_supported, fmt::format("weftio: {}: memory at {} is managed: its pages may migrate while "
                                                     "a NIC writes them; allocate it with cudaMalloc or cudaMallocHost",
                                                     name_, address));
    auto left = ask<device_pointer>(range_begin, address) + ask<std::size_t>(range_bytes, address) - pointer(address);
    if (bytes > left)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: {} bytes at {} exceed the allocation, which has {} left there", name_,
                                bytes, address, left));
    if (type == memory_type_host)
        return {{ask<void*>(seen_by_host, address), ask<void*>(seen_by_device, address)}, memory_kind::cpu_device};
    if (ask<int>(device_ordinal, address) != number_)
        throw error(errc::not_reachable,
                    fmt::format("weftio: {}: memory at {} belongs to another GPU; open that one", name_, address));
    int yes = 1;
    const result ordered = cuda_.cuPointerSetAttribute(&yes, sync_memops, pointer(address));
    if (ordered != success) {
        if (ask<unsigned>(is_of_mem_alloc, address) != 0)
            cuda_.check(ordered, "ordering copies to memory that a NIC may touch");
        order_copies_of_context(); // drivers refuse it for single allocations of other kinds
    }
    return {{nullptr, address}, memory_kind::device};
}

/// Has copies of the caller's to any memory of the context be done when they return. @pre the context is current
void cuda_device::order_copies_of_context() const
{
    unsigned flags = 0;
    if (!cuda_.cuCtxSetFlags)
        return;
    cuda_.check(cuda_.cuCtxGetFlags(&flags), "asking for the flags of the context");
    if (!(flags & context_sync_memops))
        cuda_.check(cuda_.cuCtxSetFlags(flags | context_sync_memops), "ordering copies to memory that a NIC may touch");
}

void cuda_device::upload(const allocation& to, const void* from, std::size_t bytes)
{
    const current_context now = use();
    cuda_.check(cuda_.cuMemcpyHtoDAsync_v2(pointer(to.device), from, bytes, copies_), "copying to the GPU");
    cuda_.check(cuda_.cuStreamSynchronize(copies_), "copying to the GPU");
}

void cuda_device::download(void* to, const void* from, std::size_t bytes)
{
    const std::lock_guard lock(mutex_);
    require_context();
    const current_context now = use();
    cuda_.check(cuda_.cuMemcpyDtoHAsync_v2(to, pointer(from), bytes, copies_), "copying from the GPU");
    cuda_.check(cuda_.cuStreamSynchronize(copies_), "copying from the GPU");
}

std::shared_ptr<copy_queue> cuda_device::make_copy_queue(std::shared_ptr<device_backend> self)
{
    const current_context now = use();
    return std::make_shared<copies>(std::static_pointer_cast<cuda_device>(std::move(self)));
}

int cuda_device::export_dma_buf(const allocation& of, std::size_t bytes)
{
    const current_context now = use();
    int descriptor = -1;
    cuda_.check(cuda_.cuMemGetHandleForAddressRange(&descriptor, pointer(of.device), bytes, dma_buf_handle, 0),
                "exporting GPU memory as a dma-buf");
    return descriptor;
}

std::uint64_t cuda_device::buffer_id(const allocation& of)
{
    const current_context now = use();
    unsigned long long id = 0;
    cuda_.check(cuda_.cuPointerGetAttribute(&id, cuda::buffer_id, pointer(of.device)), "asking for the buffer's id");
    return id;
}

cuda_device::image& cuda_device::load(std::string_view bytes)
{
    image& known = images_[bytes.data()];
    if (!known.loaded)
        cuda_.check(cuda_.cuModuleLoadData(&known.loaded, bytes.data()), "loading kernels");
    return known;
}

function cuda_device::find(const launch_request& request)
{
    if (request.cuda_image.empty())
        throw error(
            errc::not_supported,
            fmt::format(
                "weftio: {}: kernel {} was not compiled for CUDA; build with nvcc on the PATH or with CUDA_HOME set, "
                "and add {} with weftio_add_kernels() or weftio-embed, without NO_CUDA or --no-cuda",
                name_, request.name, request.file));
    image& image = load(request.cuda_image);
    auto known = image.functions.find(request.name);
    if (known == image.functions.end()) {
        function found = nullptr;
        cuda_.check(cuda_.cuModuleGetFunction(&found, image.loaded, request.name), "finding the kernel");
        known = image.functions.emplace(request.name, found).first;
    }
    return known->second;
}

/// Refuses a grid whose blocks cannot all run at once: kernels wait for each other and for the NIC.
void cuda_device::check_shape(const launch_request& request, function kernel)
{
    int most_lanes = 0, a_multiprocessor = 0;
    cuda_.check(cuda_.cuFuncGetAttribute(&most_lanes, max_threads_per_block, kernel),
                "asking for the kernel's largest block");
    auto [blocks, lanes] = request.shape;
    if (lanes > static_cast<std::uint32_t>(most_lanes))
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: kernel {} cannot run with {} lanes a block; it takes 1 to {}", name_,
                                request.name, lanes, most_lanes));
    cuda_.check(
        cuda_.cuOccupancyMaxActiveBlocksPerMultiprocessor(&a_multiprocessor, kernel, static_cast<int>(lanes), 0),
        "asking for the occupancy");
    auto room = static_cast<std::uint32_t>(a_multiprocessor * multiprocessors_);
    if (running_blocks_ + blocks > room)
        throw error(errc::invalid_argument, fmt::format("weftio: {}: {} blocks of {} lanes of kernel {} cannot all run "
                                                        "at once: {} fit and {} run already; launch fewer blocks",
                                                        name_, blocks, lanes, request.name, room, running_blocks_));
}

/// @pre mutex_ is held
void cuda_device::require_context() const
{
    if (lost_)
        throw error(errc::device_error,
                    fmt::format("weftio: {}: a kernel failed before and the GPU's context is lost; restart the process",
                                name_));
}

std::shared_ptr<running_backend> cuda_device::launch(const launch_request& request,
                                                     std::shared_ptr<device_backend> self)
{
    std::lock_guard lock(mutex_);
    require_context();
    const current_context now = use();
    function kernel = find(request);
    check_shape(request, kernel);
    std::vector<void*> arguments;
    for (const auto& argument : request.arguments)
        arguments.push_back(const_cast<void*>(argument.value));
    stream own = nullptr;
    cuda_.check(cuda_.cuStreamCreate(&own, stream_non_blocking), "making a stream");
    if (result status = cuda_.cuLaunchKernel(kernel, request.shape.blocks, 1, 1, request.shape.lanes, 1, 1, 0, own,
                                             arguments.data(), nullptr);
        status != success) {
        cuda_.cuStreamDestroy_v2(own);
        cuda_.check(status, "starting the kernel");
    }
    running_blocks_ += request.shape.blocks;
    ++running_kernels_;
    return std::make_shared<running>(request, std::static_pointer_cast<cuda_device>(std::move(self)), own);
}

void cuda_device::ended(std::uint32_t blocks) noexcept
{
    std::vector<std::pair<allocation, memory_kind>> gone;
    {
        const std::lock_guard lock(mutex_);
        running_blocks_ -= blocks;
        if (--running_kernels_ > 0)
            return;
        gone.swap(to_free_);
    }
    for (auto& [allocation, kind] : gone) // later, if a kernel has begun meanwhile
        release(allocation, kind);
}

void cuda_device::lost() noexcept
{
    std::lock_guard lock(mutex_);
    lost_ = true;
}

} // namespace weftio::devices::cuda

namespace weftio::devices {

std::shared_ptr<device_backend> open_cuda(std::string_view spec, int index)
{
    const cuda::driver& driver = cuda::the_driver();
    cuda::device_number number = 0;
    if (index < 0) {
        if (driver.cuDeviceGetByPCIBusId(&number, std::string(spec).c_str()) != cuda::success)
            throw error(
                errc::not_found,
                fmt::format("weftio: device {}: no GPU has that PCI address; \"nvidia-smi -L\" and \"lspci\" list them",
                            spec));
    } else {
        int count = 0;
        driver.check(driver.cuDeviceGetCount(&count), "counting GPUs");
        if (index >= count)
            throw error(
                errc::not_found,
                fmt::format("weftio: device {}: there are {} GPUs, counted from 0; \"nvidia-smi -L\" lists them", spec,
                            count));
        driver.check(driver.cuDeviceGet(&number, index), "opening the GPU");
    }
    return core::make_shared_here<cuda::cuda_device>(number);
}

} // namespace weftio::devices
