// Whether kernels must flush what a NIC has received before they read it.
#pragma once

#include "nic/backend.hpp"
#include "weftio/device.hpp"

namespace weftio::queues {

/// Of memory of `kernels`: weftio_dev_rdma_needs_flush(). Never blocks; any thread.
/// @throws weftio::error errc::device_error the platform refuses to tell, and the NIC leaves the order to it
bool needs_flush(const nic::backend& nic, const device& kernels);

} // namespace weftio::queues
