// Writes the last packets of a port's queue pairs to a file.
#pragma once

#include <string>

#include "nic/rdma_backend.hpp"

namespace weftio::rdma {

/// @param who  kind of the queue, for error texts
/// @throws weftio::error as rdma_queue::write_trace()
void write_trace(const char* who, const nic::rdma_queue& queue, const std::string& path);

} // namespace weftio::rdma
