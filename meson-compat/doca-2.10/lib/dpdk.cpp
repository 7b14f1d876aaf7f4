#include "dpdk.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "doca_dpdk.h"

namespace weftio::doca {
namespace {

std::mutex mutex;
std::vector<std::weak_ptr<doca_dev>>& probed() ///< by number
{
    static auto* all = new std::vector<std::weak_ptr<doca_dev>>;
    return *all;
}

} // namespace

std::shared_ptr<doca_dev> probed_device(std::uint16_t number)
{
    std::lock_guard lock(mutex);
    auto device = number < probed().size() ? probed()[number].lock() : nullptr;
    require(device != nullptr, DOCA_ERROR_NOT_FOUND,
            "there is no DPDK port {}; call doca_dpdk_port_probe for its device first", number);
    return device;
}

} // namespace weftio::doca

using namespace weftio::doca;

doca_error_t doca_dpdk_port_probe(doca_dev* dev, const char* devargs)
{
    return call(__func__, [&] {
        auto device = known(dev);
        require(devargs, DOCA_ERROR_INVALID_VALUE, "the arguments are a null pointer");
        std::lock_guard lock(weftio::doca::mutex);
        const bool has_number = std::any_of(probed().begin(), probed().end(), [&](const auto& one) {
            auto other = one.lock();
            return other && other->info == device->info;
        });
        if (!has_number)
            probed().push_back(device);
    });
}

doca_error_t doca_dpdk_get_first_port_id(const doca_dev* dev, std::uint16_t* port_id)
{
    return call(__func__, [&] {
        auto device = known(dev);
        auto& number = result(port_id, "port_id");
        std::lock_guard lock(weftio::doca::mutex);
        auto found = std::find_if(probed().begin(), probed().end(), [&](const auto& one) {
            auto other = one.lock();
            return other && other->info == device->info;
        });
        require(found != probed().end(), DOCA_ERROR_NOT_FOUND, "the device was not probed; call doca_dpdk_port_probe");
        number = static_cast<std::uint16_t>(found - probed().begin());
    });
}
