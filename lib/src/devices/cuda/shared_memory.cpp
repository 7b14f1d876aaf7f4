#include "devices/cuda/shared_memory.hpp"

#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "devices/backend.hpp"
#include "devices/cuda/addresses.hpp"
#include "devices/cuda/mappings.hpp"
#include "weftio/detail/internals.hpp"
#include "weftio/error.hpp"

namespace weftio::devices::cuda {

namespace {

/// Physical memory that this process refers to.
class referred {
 public:
    explicit referred(physical which) noexcept : which_(which) {}
    referred(const referred&) = delete;
    referred& operator=(const referred&) = delete;
    ~referred() { mapping_driver().cuMemRelease(which_); }
    physical get() const noexcept { return which_; }

 private:
    const physical which_;
};

physical_properties shared_on(const cuda_device& gpu)
{
    physical_properties wanted{};
    wanted.type = physical_pinned;
    wanted.handle_types = handle_descriptor;
    wanted.location = {location_device, gpu.cuda_number()};
    wanted.rdma_capable = 1;
    return wanted;
}

/// MIG, vGPU and older GPUs lack one or the other.
void require_sharing(const cuda_device& gpu)
{
    constexpr std::pair<device_attribute, const char*> needed[] = {
        {mapping_supported, "maps no memory at addresses of one's choice"},
        {descriptors_supported, "gives no descriptor of memory to other processes"},
        {mapped_rdma_supported, "lets NICs reach no memory that other processes can map"}};
    for (const auto& [attribute, lacks] : needed) {
        int has = 0;
        gpu.api().check(gpu.api().cuDeviceGetAttribute(&has, attribute, gpu.cuda_number()),
                        "asking what memory a GPU can share");
        if (has == 0)
            throw error(
                errc::not_supported,
                fmt::format("weftio: memory_holder: make: {}: the driver says that this GPU {} (so it is with some "
                            "kinds of MIG and vGPU); keep the data in memory of the host, by make(bytes)",
                            gpu.name(), lacks));
    }
}

int descriptor_of(const cuda_device& gpu, const referred& memory)
{
    int descriptor = -1;
    gpu.api().check(mapping_driver().cuMemExportToShareableHandle(&descriptor, memory.get(), handle_descriptor, 0),
                    "making a descriptor of GPU memory");
    return descriptor;
}

/// What there is at an address that can never be shared.
std::string kind_of(const std::optional<address_info>& there)
{
    if (!there)
        return "ordinary memory of the host, or freed; make(bytes) makes memory of the host that can be held";
    if (there->managed)
        return "managed: its pages migrate, and end with the process";
    if (there->is_of_host())
        return "pinned memory of the host, which ends with the process; make(bytes) makes some that can be held";
    if (there->made_by == maker::mem_alloc)
        return "of cudaMalloc(): it ends with its context; make it by make(gpu, bytes), or by cuMemCreate() with "
               "requestedHandleTypes and gpuDirectRDMACapable";
    if (there->made_by == maker::pool)
        return "of a pool (cudaMallocAsync()), which hands it to others; make it by make(gpu, bytes)";
    return "of a kind that the driver does not tell; make it by make(gpu, bytes)";
}

[[noreturn]] void refuse_sharing(std::uintptr_t address, const std::string& why)
{
    throw error(errc::not_supported, fmt::format("weftio: memory_holder: of: memory at {:#x} is {}", address, why));
}

void require_opt_in(std::uintptr_t address, const physical_properties& has)
{
    if ((has.handle_types & handle_descriptor) == 0)
        refuse_sharing(address,
                       "of cuMemCreate() without requestedHandleTypes CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, "
                       "which cannot be added later");
    if (has.rdma_capable == 0)
        refuse_sharing(address,
                       "of cuMemCreate() without allocFlags.gpuDirectRDMACapable, which cannot be added later: "
                       "no NIC would reach it");
}

/// Addresses with physical memory behind them.
class shared_mapping {
 public:
    shared_mapping(const cuda_device& gpu, physical memory, std::size_t bytes) : bytes_(bytes)
    {
        const mapping_functions& driver = mapping_driver();
        gpu.api().check(driver.cuMemAddressReserve(&at_, bytes, 0, 0, 0), "reserving addresses for GPU memory");
        const memory_access all{{location_device, gpu.cuda_number()}, access_read_write};
        const result mapped = driver.cuMemMap(at_, bytes, 0, memory, 0);
        const result allowed = mapped == success ? driver.cuMemSetAccess(at_, bytes, &all, 1) : mapped;
        if (allowed == success)
            return;
        if (mapped == success)
            driver.cuMemUnmap(at_, bytes);
        driver.cuMemAddressFree(at_, bytes);
        throw error(errc::invalid_argument,
                    fmt::format("weftio: memory_holder: map: {} maps no {} bytes of this descriptor: {}; it has fewer, "
                                "or is not what was said",
                                gpu.name(), bytes, gpu.api().words(allowed)));
    }
    shared_mapping(const shared_mapping&) = delete;
    shared_mapping& operator=(const shared_mapping&) = delete;
    ~shared_mapping()
    {
        mapping_driver().cuMemUnmap(at_, bytes_);
        mapping_driver().cuMemAddressFree(at_, bytes_);
    }
    void* at() const noexcept { return reinterpret_cast<void*>(at_); }

 private:
    const std::size_t bytes_;
    device_pointer at_ = 0;
};

/// A block in a mapping, which goes after it, in its GPU's context.
struct shared_block {
    shared_block(const std::shared_ptr<device_backend>& owner, const cuda_device& of,
                 std::unique_ptr<shared_mapping> in)
        : gpu(of), block(owner), mapped(std::move(in))
    {}
    shared_block(const shared_block&) = delete;
    shared_block& operator=(const shared_block&) = delete;
    ~shared_block()
    {
        const current_context now(gpu.api(), gpu.primary(), std::nothrow);
        if (block.owner->may_end())
            mapped.reset();
        else
            static_cast<void>(mapped.release());
    }

    const cuda_device& gpu;
    devices::memory_block block;
    std::unique_ptr<shared_mapping> mapped;
};

} // namespace

shared_memory make_shared_memory(cuda_device& gpu, std::size_t bytes)
{
    require_sharing(gpu);
    const mapping_functions& driver = mapping_driver();
    const current_context now = gpu.use();
    const physical_properties wanted = shared_on(gpu);
    std::size_t grain = 0;
    gpu.api().check(driver.cuMemGetAllocationGranularity(&grain, &wanted, 0), "asking for the size of GPU memory");
    const std::size_t whole = (bytes + grain - 1) / grain * grain;
    physical made = 0;
    gpu.api().check(driver.cuMemCreate(&made, whole, &wanted, 0), "making GPU memory that can be shared");
    const referred memory(made);
    const shared_mapping here(gpu, made, whole);
    gpu.clear(here.at(), whole);
    return {descriptor_of(gpu, memory), whole};
}

shared_memory export_shared_memory(const cuda_device& gpu, std::uintptr_t address)
{
    const current_context now = gpu.use();
    const std::optional<address_info> there = look_up(gpu, address);
    if (!there || there->made_by != maker::mem_map)
        refuse_sharing(address, kind_of(there));
    if (there->gpu != gpu.cuda_number())
        throw error(errc::not_reachable, fmt::format("weftio: memory_holder: of: memory at {:#x} is that of cuda:{}, "
                                                     "not of cuda:{}; name that GPU",
                                                     address, there->gpu, gpu.cuda_number()));
    physical found = 0;
    physical_properties has{};
    gpu.api().check(mapping_driver().cuMemRetainAllocationHandle(&found, reinterpret_cast<void*>(address)),
                    "finding the GPU memory behind an address");
    const referred memory(found);
    gpu.api().check(mapping_driver().cuMemGetAllocationPropertiesFromHandle(&has, found),
                    "asking how GPU memory was made");
    require_opt_in(address, has);
    return {descriptor_of(gpu, memory), there->bytes};
}

memory map_shared_memory(const device& on, const shared_memory& what)
{
    const auto& gpu = static_cast<const cuda_device&>(weftio::detail::internals::backend(on));
    const current_context now = gpu.use();
    physical imported = 0;
    void* const handle = reinterpret_cast<void*>(static_cast<std::intptr_t>(what.descriptor));
    if (const result status = mapping_driver().cuMemImportFromShareableHandle(&imported, handle, handle_descriptor);
        status != success)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: memory_holder: map: {} takes descriptor {} for no memory of a GPU: {}",
                                gpu.name(), what.descriptor, gpu.api().words(status)));
    const referred memory(imported);
    physical_properties has{};
    gpu.api().check(mapping_driver().cuMemGetAllocationPropertiesFromHandle(&has, imported),
                    "asking where GPU memory lies");
    if (has.location.number != gpu.cuda_number())
        throw error(errc::not_reachable,
                    fmt::format("weftio: memory_holder: map: this is memory of cuda:{}, not of cuda:{}; "
                                "map it there",
                                has.location.number, gpu.cuda_number()));
    auto mapped = std::make_unique<shared_mapping>(gpu, imported, what.bytes);
    const weftio::memory adopted = on.adopt(mapped->at(), what.bytes);
    const devices::memory_block& as = *weftio::detail::internals::block(adopted);
    auto made = std::make_shared<shared_block>(as.owner, gpu, std::move(mapped));
    made->block.at = as.at;
    made->block.bytes = what.bytes;
    made->block.kind = as.kind;
    made->block.adopted = true;
    return weftio::detail::internals::make_memory({made, &made->block});
}

} // namespace weftio::devices::cuda
