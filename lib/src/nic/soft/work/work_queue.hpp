// A send queue that has one ring and executes its entries by itself.
#pragma once

#include "nic/soft/work/work_ring.hpp"

namespace weftio::nic::soft {

class work_queue : public work_ring, public turn_taker {
 public:
    bool idle() const noexcept override { return work_ring::idle(); }
    bool waits_for_others() const noexcept final { return work_ring::waits_for_others(); }
    bool is_held() const noexcept final { return work_ring::is_held(); }
    watched_word wakes_by() const noexcept final { return work_ring::wakes_by(); }
    const tx_ring& ring() const noexcept final { return work_ring::ring(); }

 protected:
    using work_ring::work_ring;
};

} // namespace weftio::nic::soft
