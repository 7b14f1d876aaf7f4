// Devices as DPDK ports.
#pragma once

#include <cstdint>
#include <memory>

#include "dev.hpp"

namespace weftio::doca {

/// The device with this number. @throws failure DOCA_ERROR_NOT_FOUND
std::shared_ptr<doca_dev> probed_device(std::uint16_t number);

} // namespace weftio::doca
