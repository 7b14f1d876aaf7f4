// The last packets of a port's queue pairs, as a file.
#pragma once

#include <string>

#include "nic/rdma_backend.hpp"

namespace weftio::rdma {

/// @param who  the kind of the queue, for errors
/// @throws weftio::error as rdma_queue::write_trace()
void write_trace(const char* who, const nic::rdma_queue& queue, const std::string& path);

} // namespace weftio::rdma
