// What an rdma_device has inside, for the queue pairs that are made at it.
#pragma once

#include "net/roce_headers.hpp"
#include "rdma/rdma_end.hpp"

namespace weftio {

struct rdma_device::state {
    state(std::shared_ptr<nic::backend> of, const nic::rdma_own_address& its)
        : nic(std::move(of)), own(its), text(net::text_of(its.address)), held(nic->add_rdma_address(its))
    {}

    const std::shared_ptr<nic::backend> nic;
    const nic::rdma_own_address own;
    const std::string text;                             ///< of the address
    const std::unique_ptr<nic::held_rdma_address> held; ///< the port has it as long
};

} // namespace weftio
