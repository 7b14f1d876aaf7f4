#include "dpdk.hpp"

#include "doca_dpdk.h"

namespace weftio::doca {

std::shared_ptr<doca_dev> probed_device(std::uint16_t number)
{
    std::shared_ptr<doca_dev> device;
    living<doca_dev>::any([&](const std::shared_ptr<doca_dev>& one) {
        if (one->opened->dpdk->is_probed && one->opened->dpdk->id() == number)
            device = one;
        return device != nullptr;
    });
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
        device->opened->dpdk->open();
        device->opened->dpdk->is_probed = true;
    });
}

doca_error_t doca_dpdk_get_first_port_id(const doca_dev* dev, std::uint16_t* port_id)
{
    return call(__func__, [&] {
        auto device = known(dev);
        auto& number = result(port_id, "port_id");
        require(device->opened->dpdk->is_probed, DOCA_ERROR_NOT_FOUND,
                "the device was not probed, or its port was closed; call doca_dpdk_port_probe first");
        number = device->opened->dpdk->id();
    });
}
