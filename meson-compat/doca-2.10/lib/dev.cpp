#include "dev.hpp"

#include <algorithm>
#include <cstring>

#include "log.hpp"

namespace {

using namespace weftio::doca;

/// The array that a program holds as a list.
struct device_list {
    std::vector<doca_devinfo*> entries;
};

/// Lists that are alive, by the arrays that programs hold.
std::mutex lists_mutex;
std::vector<std::shared_ptr<device_list>>& lists()
{
    static auto* all = new std::vector<std::shared_ptr<device_list>>;
    return *all;
}

/// A region is registered by one thread at a time, also where several devices share it.
std::mutex registrations_mutex;

doca_devinfo_rep* no_representors[1] = {}; ///< every list of them

/// As of devices of weftio-run: from the range for tests (RFC 2544).
std::string address_of(const std::array<std::uint8_t, 6>& mac)
{
    return fmt::format("198.18.{}.{}", mac[4], mac[5] % 254 + 1);
}
/// RFC 4291, appendix A.
std::string link_local_of(const std::array<std::uint8_t, 6>& mac)
{
    require(mac != std::array<std::uint8_t, 6>{}, DOCA_ERROR_NOT_SUPPORTED,
            "the device has no MAC address, and so no link-local address");
    return fmt::format("fe80::{:x}:{:x}:{:x}:{:x}", (mac[0] ^ 2) << 8 | mac[1], mac[2] << 8 | 0xff, 0xfe00 | mac[3],
                       mac[4] << 8 | mac[5]);
}

void copy_name(const std::string& name, char* out, std::uint32_t size)
{
    require(out, DOCA_ERROR_INVALID_VALUE, "the buffer for the name is a null pointer");
    require(name.size() < size, DOCA_ERROR_INVALID_VALUE, "a buffer of {} bytes is too small for \"{}\"", size, name);
    std::memcpy(out, name.c_str(), name.size() + 1);
}

std::string interface_of(const doca_devinfo& info)
{
    for (const std::string_view prefix : {"iface:", "tap:"})
        if (info.spec.starts_with(prefix))
            return info.spec.substr(prefix.size(), info.spec.find(',') - prefix.size());
    fail(DOCA_ERROR_NOT_SUPPORTED, "{} is {}, which is no Linux interface", info.pci, info.spec);
}

} // namespace

std::shared_ptr<opened_device> doca_devinfo::open()
{
    std::lock_guard lock(mutex_);
    auto opened = opened_.lock();
    if (!opened) {
        start_eal(whole_pci_address(spec).empty());
        auto dpdk = std::make_unique<program_port>();
        opened = std::make_shared<opened_device>(opened_device{std::move(dpdk), weftio::port::open(spec)});
        opened->dpdk->attach(opened->port);
        opened_ = opened;
    }
    return opened;
}

std::shared_ptr<weftio::rdma_device> doca_devinfo::rdma(const weftio::port& port, bool is_link_local)
{
    std::lock_guard lock(mutex_);
    auto& place = rdma_[is_link_local];
    auto device = place.lock();
    if (!device) {
        const auto own = is_link_local ? link_local_of(port.mac()) : address.empty() ? address_of(port.mac()) : address;
        device = std::make_shared<weftio::rdma_device>(port, weftio::rdma_device_options{.address = own});
        place = device;
    }
    return device;
}

void doca_dev::add(const std::shared_ptr<weftio::memory_region>& region)
{
    std::lock_guard lock(registrations_mutex);
    region->register_with(port());
    if (dma_)
        region->register_with(*dma_);
    std::erase_if(regions_, [](const auto& weak) { return weak.expired(); });
    regions_.push_back(region);
}

void weftio::doca::withdraw_from_peers(weftio::memory_region& region, const weftio::memory& memory)
{
    std::lock_guard lock(registrations_mutex);
    region.replace(memory, {.rights = weftio::access::local_write});
}

const weftio::dma_engine& doca_dev::dma()
{
    std::lock_guard lock(registrations_mutex);
    if (dma_)
        return *dma_;
    weftio::dma_engine made;
    for (const auto& weak : regions_)
        if (auto region = weak.lock())
            region->register_with(made);
    return dma_.emplace(std::move(made));
}

std::shared_ptr<weftio::rdma_device> doca_dev::rdma(std::uint32_t gid_index)
{
    const bool is_link_local = gid_index == 1;
    std::lock_guard lock(registrations_mutex);
    auto& device = rdma_[is_link_local];
    if (!device)
        device = info->rdma(port(), is_link_local);
    return device;
}

doca_error_t doca_devinfo_create_list(doca_devinfo*** list, std::uint32_t* count)
{
    return call(__func__, [&] {
        auto& array = result(list, "list");
        auto& entries = result(count, "count");
        auto made = std::make_shared<device_list>();
        for (const auto& info : configured_devices())
            made->entries.push_back(info.get());
        entries = static_cast<std::uint32_t>(made->entries.size());
        if (made->entries.empty())
            log_warning("there are no devices: name them in WEFTIO_DOCA_DEVICES, as in 0000:b5:00.0=iface:eth0");
        made->entries.push_back(nullptr); // so that the array has an address
        array = made->entries.data();
        std::lock_guard lock(lists_mutex);
        lists().push_back(std::move(made));
    });
}

doca_error_t doca_devinfo_destroy_list(doca_devinfo** list)
{
    return call(__func__, [&] {
        std::lock_guard lock(lists_mutex);
        auto found =
            std::find_if(lists().begin(), lists().end(), [&](const auto& one) { return one->entries.data() == list; });
        require(found != lists().end(), DOCA_ERROR_INVALID_VALUE, "there is no such list of devices");
        lists().erase(found);
    });
}

doca_error_t doca_devinfo_is_equal_pci_addr(const doca_devinfo* devinfo, const char* pci_address,
                                            std::uint8_t* is_equal)
{
    return call(__func__, [&] {
        auto info = known(devinfo);
        require(pci_address, DOCA_ERROR_INVALID_VALUE, "the PCI address is a null pointer");
        const std::string address = whole_pci_address(pci_address);
        require(!address.empty(), DOCA_ERROR_INVALID_VALUE, "\"{}\" is no PCI address; write one as in 0000:b5:00.0",
                pci_address);
        result(is_equal, "is_equal") = address == info->pci;
    });
}

doca_error_t doca_devinfo_get_ibdev_name(const doca_devinfo* devinfo, char* name, std::uint32_t size)
{
    return call(__func__, [&] { copy_name(known(devinfo)->ibdev, name, size); });
}

doca_error_t doca_devinfo_get_iface_name(const doca_devinfo* devinfo, char* name, std::uint32_t size)
{
    return call(__func__, [&] { copy_name(interface_of(*known(devinfo)), name, size); });
}

doca_error_t doca_devinfo_get_mac_addr(const doca_devinfo* devinfo, std::uint8_t* mac, std::uint32_t size)
{
    return call(__func__, [&] {
        auto info = known(devinfo);
        require(mac && size >= DOCA_DEVINFO_MAC_ADDR_SIZE, DOCA_ERROR_INVALID_VALUE,
                "a MAC address needs a buffer of {} bytes", DOCA_DEVINFO_MAC_ADDR_SIZE);
        const auto address = info->open()->port.mac();
        std::copy(address.begin(), address.end(), mac);
    });
}

doca_error_t doca_dev_open(doca_devinfo* devinfo, doca_dev** dev)
{
    return call(__func__, [&] {
        auto info = known(devinfo);
        result(dev, "dev");
        make(dev, info);
    });
}

doca_error_t doca_dev_close(doca_dev* dev)
{
    return call(__func__, [&] { living<doca_dev>::remove(dev); });
}

doca_devinfo* doca_dev_as_devinfo(const doca_dev* dev)
{
    doca_devinfo* info = nullptr;
    call(__func__, [&] { info = known(dev)->info.get(); });
    return info;
}

doca_error_t doca_devinfo_rep_create_list(doca_dev* dev, int, doca_devinfo_rep*** list, std::uint32_t* count)
{
    return call(__func__, [&] {
        known(dev);
        result(count, "count") = 0;
        result(list, "list") = no_representors;
    });
}

doca_error_t doca_devinfo_rep_destroy_list(doca_devinfo_rep** list)
{
    return call(__func__, [&] {
        require(list == no_representors, DOCA_ERROR_INVALID_VALUE, "there is no such list of representors");
    });
}

namespace {
[[noreturn]] void no_representor()
{
    fail(DOCA_ERROR_INVALID_VALUE, "there are no representors: a port of Weftio is no DPU");
}
} // namespace

doca_error_t doca_devinfo_rep_get_vuid(const doca_devinfo_rep*, char*, std::uint32_t)
{
    return call(__func__, no_representor);
}
doca_error_t doca_devinfo_rep_is_equal_pci_addr(const doca_devinfo_rep*, const char*, std::uint8_t*)
{
    return call(__func__, no_representor);
}
doca_error_t doca_dev_rep_open(doca_devinfo_rep*, doca_dev_rep**)
{
    return call(__func__, no_representor);
}
