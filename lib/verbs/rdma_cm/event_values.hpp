// Values of librdmacm (rdma/rdma_cma.h) that the kernel's user headers do not define.
#pragma once

#include <cstdint>

namespace weftio::verbs::rdma_cm {

/// enum rdma_cm_event_type
enum event_code : std::uint32_t {
    address_resolved,
    address_error,
    route_resolved,
    route_error,
    connect_request,
    connect_response,
    connect_error,
    unreachable,
    rejected,
    established,
    disconnected,
    device_removal,
    multicast_join,
    multicast_error,
    address_change,
    time_wait_exit,
};

} // namespace weftio::verbs::rdma_cm
