// What an rdma_device has inside, for the queue pairs that are made at it.
#pragma once

#include "rdma/rdma_end.hpp"

namespace weftio {

struct rdma_device::state {
    state(std::shared_ptr<nic::backend> of, const std::array<std::uint8_t, 16>& its)
        : nic(std::move(of)), address(its), text(detail::to_text(its))
    {}

    const std::shared_ptr<nic::backend> nic;
    const std::array<std::uint8_t, 16> address;
    const std::string text;
};

} // namespace weftio
