#include "queues/needs_flush.hpp"

#include "weftio/gpu_memory.hpp"

namespace weftio::queues {

bool needs_flush(const nic::backend& nic, const device& kernels)
{
    switch (nic.arrival()) {
        case nic::payload_arrival::before_completion: return false;
        case nic::payload_arrival::by_platform: return ordering_of(kernels).remote_writes < writes_ordering::owner;
        case nic::payload_arrival::when_flushed: break;
    }
    return true;
}

} // namespace weftio::queues
