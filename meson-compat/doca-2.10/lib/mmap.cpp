#include "mmap.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "weftio/error.hpp"

using namespace weftio::doca;

namespace {

/// What a descriptor begins with; its last number changes with its layout.
constexpr std::string_view magic = "weftio-doca-mmap-1";

/// Memory that doca_gpu_mem_alloc has not made: cudaMalloc's where there is a GPU that knows it, else the host's.
std::shared_ptr<const weftio::memory> adopted(void* address, std::size_t bytes)
{
    std::shared_ptr<const weftio::memory> memory;
    living<doca_gpu>::any([&](const std::shared_ptr<doca_gpu>& gpu) {
        try {
            memory = std::make_shared<const weftio::memory>(gpu->device.adopt(address, bytes));
        } catch (const weftio::error&) { // not this GPU's
        }
        return memory != nullptr;
    });
    if (!memory)
        memory = std::make_shared<const weftio::memory>(weftio::device::open("cpu").adopt(address, bytes));
    return memory;
}

} // namespace

namespace weftio::doca {

void require_access_flags(std::uint32_t flags)
{
    constexpr std::uint32_t all = DOCA_ACCESS_FLAG_PCI_RELAXED_ORDERING * 2 - 1;
    require(!(flags & ~all), DOCA_ERROR_INVALID_VALUE, "{:#x} has flags that are no DOCA_ACCESS_FLAG_*", flags);
}

access rights_of(std::uint32_t flags)
{
    access rights = access::local_write;
    if (flags & DOCA_ACCESS_FLAG_RDMA_READ)
        rights = rights | access::remote_read;
    if (flags & DOCA_ACCESS_FLAG_RDMA_WRITE)
        rights = rights | access::remote_write;
    if (flags & DOCA_ACCESS_FLAG_RDMA_ATOMIC)
        rights = rights | access::remote_atomic;
    return rights;
}

} // namespace weftio::doca

void doca_mmap::require_stopped() const
{
    require(!registered_ && !remote, DOCA_ERROR_BAD_STATE, "the mmap is started, and cannot be changed");
}

memory_part doca_mmap::part() const
{
    std::optional<memory_part> found;
    living<doca_gpu>::any([&](const std::shared_ptr<doca_gpu>& gpu) {
        found = gpu->find(address_, bytes_);
        return found.has_value();
    });
    return found ? *found : memory_part{adopted(address_, bytes_), 0};
}

void doca_mmap::start()
{
    std::lock_guard lock(mutex_);
    require_stopped();
    require(address_, DOCA_ERROR_BAD_STATE, "the mmap has no range; call doca_mmap_set_memrange first");
    const auto [memory, offset] = part();
    const weftio::region_options options{.rights = rights_of(flags_)};
    auto made = std::make_shared<registered>(registered{.region = weftio::memory_region(*memory, options)});
    made->device_address = static_cast<std::uint8_t*>(memory->device_address()) + offset;
    if (memory->cpu_address())
        made->cpu_address = static_cast<std::uint8_t*>(memory->cpu_address()) + offset;
    made->offset = offset;
    made->bytes = bytes_;
    made->memory = memory;
    if (offset || bytes_ != memory->bytes()) { // peers reach the range, and nothing beside it
        made->region.rereg(options, offset, bytes_);
        made->offset = 0;
    }
    for (const auto& device : devices_)
        device->add({made, &made->region});
    registered_ = std::move(made);
}

void doca_mmap::stop()
{
    std::lock_guard lock(mutex_);
    require(registered_ || remote, DOCA_ERROR_BAD_STATE, "the mmap is not started");
    unregister();
}

void doca_mmap::end()
{
    std::lock_guard lock(mutex_);
    unregister();
}

/// Arrays and queues that have the range keep it, but no peer does.
void doca_mmap::unregister()
{
    const auto last = std::exchange(registered_, nullptr);
    if (last && last.use_count() > 1 && rights_of(flags_) != weftio::access::local_write)
        withdraw_from_peers(last->region, *last->memory);
}

void doca_mmap::add(std::shared_ptr<doca_dev> device)
{
    std::lock_guard lock(mutex_);
    if (std::find(devices_.begin(), devices_.end(), device) != devices_.end())
        return;
    if (registered_)
        device->add({registered_, &registered_->region});
    devices_.push_back(std::move(device));
}

void doca_mmap::remove(const doca_dev* device)
{
    std::lock_guard lock(mutex_);
    require_stopped();
    auto found = std::find_if(devices_.begin(), devices_.end(), [&](const auto& one) { return one.get() == device; });
    require(found != devices_.end(), DOCA_ERROR_NOT_FOUND, "the mmap does not have the device");
    devices_.erase(found);
}

void doca_mmap::set_permissions(std::uint32_t flags)
{
    require_access_flags(flags);
    std::lock_guard lock(mutex_);
    require_stopped();
    flags_ = flags;
}

void doca_mmap::set_range(void* address, std::size_t bytes)
{
    require(address && bytes, DOCA_ERROR_INVALID_VALUE, "a range needs an address and bytes, not {} and {}",
            fmt::ptr(address), bytes);
    require(reinterpret_cast<std::uintptr_t>(address) + bytes > bytes, DOCA_ERROR_INVALID_VALUE,
            "{} bytes at {} reach beyond the address space", bytes, fmt::ptr(address));
    std::lock_guard lock(mutex_);
    require_stopped();
    address_ = address;
    bytes_ = bytes;
}

std::shared_ptr<doca_mmap::registered> doca_mmap::range()
{
    std::lock_guard lock(mutex_);
    require(registered_ != nullptr, DOCA_ERROR_BAD_STATE, "the mmap is not started");
    return registered_;
}

const std::vector<std::uint8_t>& doca_mmap::exported(const doca_dev& device)
{
    std::lock_guard lock(mutex_);
    require(registered_ != nullptr, DOCA_ERROR_BAD_STATE, "the mmap is not started");
    const bool has_device =
        std::any_of(devices_.begin(), devices_.end(), [&](const auto& one) { return one->info == device.info; });
    require(has_device, DOCA_ERROR_NOT_FOUND, "the mmap does not have the device; call doca_mmap_add_dev first");
    require(rights_of(flags_) != weftio::access::local_write, DOCA_ERROR_NOT_PERMITTED,
            "the permissions name no right of a peer, such as DOCA_ACCESS_FLAG_RDMA_WRITE");
    const auto& made = *registered_;
    auto region = weftio::remote_region::of(made.region, made.offset, made.bytes);
    region.rkey = made.region.lkey(device.port());
    const auto bytes = region.to_bytes();
    exported_.assign(magic.begin(), magic.end());
    exported_.insert(exported_.end(), bytes.begin(), bytes.end());
    return exported_;
}

doca_error_t doca_mmap_create(doca_mmap** mmap)
{
    return call(__func__, [&] { make(mmap); });
}
doca_error_t doca_mmap_destroy(doca_mmap* mmap)
{
    return call(__func__, [&] { living<doca_mmap>::remove(mmap)->end(); });
}
doca_error_t doca_mmap_start(doca_mmap* mmap)
{
    return call(__func__, [&] { known(mmap)->start(); });
}
doca_error_t doca_mmap_stop(doca_mmap* mmap)
{
    return call(__func__, [&] { known(mmap)->stop(); });
}
doca_error_t doca_mmap_add_dev(doca_mmap* mmap, doca_dev* dev)
{
    return call(__func__, [&] { known(mmap)->add(known(dev)); });
}
doca_error_t doca_mmap_rm_dev(doca_mmap* mmap, doca_dev* dev)
{
    return call(__func__, [&] { known(mmap)->remove(known(dev).get()); });
}
doca_error_t doca_mmap_set_permissions(doca_mmap* mmap, std::uint32_t access_flags)
{
    return call(__func__, [&] { known(mmap)->set_permissions(access_flags); });
}
doca_error_t doca_mmap_set_memrange(doca_mmap* mmap, void* address, std::size_t bytes)
{
    return call(__func__, [&] { known(mmap)->set_range(address, bytes); });
}
doca_error_t doca_mmap_set_dmabuf_memrange(doca_mmap* mmap, int, void*, std::size_t, std::size_t)
{
    return call(__func__, [&] {
        known(mmap);
        fail(DOCA_ERROR_NOT_SUPPORTED, "a software NIC maps memory by its address; call doca_mmap_set_memrange");
    });
}

doca_error_t doca_mmap_export_rdma(doca_mmap* mmap, const doca_dev* dev, const void** descriptor, std::size_t* bytes)
{
    return call(__func__, [&] {
        auto one = known(mmap);
        auto device = known(dev);
        auto& where = result(descriptor, "descriptor");
        auto& size = result(bytes, "bytes");
        const auto& text = one->exported(*device);
        where = text.data();
        size = text.size();
    });
}

doca_error_t doca_mmap_create_from_export(const union doca_data*, const void* descriptor, std::size_t bytes,
                                          doca_dev* dev, doca_mmap** mmap)
{
    return call(__func__, [&] {
        known(dev);
        require(descriptor && bytes >= magic.size() + weftio::remote_region::size_bytes, DOCA_ERROR_INVALID_VALUE,
                "{} bytes are too few for what doca_mmap_export_rdma makes", bytes);
        const auto* text = static_cast<const std::uint8_t*>(descriptor);
        require(std::equal(magic.begin(), magic.end(), text), DOCA_ERROR_INVALID_VALUE,
                "the bytes are not from doca_mmap_export_rdma of this version");
        make(mmap, weftio::remote_region::of_bytes({text + magic.size(), weftio::remote_region::size_bytes}));
    });
}
