// A send queue whose events a progress_engine reports to the host.
#pragma once

#include <atomic>

#include "core/process.hpp"
#include "nic/backend.hpp"

namespace weftio::queues {

class reported_queue {
 public:
    reported_queue() = default;
    reported_queue(const reported_queue&) = delete;
    reported_queue& operator=(const reported_queue&) = delete;
    virtual ~reported_queue() = default;

    virtual const char* kind() const noexcept = 0; ///< "eth_txq", for messages
    virtual nic::send_queue& reports() noexcept = 0;
    /// Whether the calling thread may destroy what belongs to the queue; see maker::may_end().
    bool may_end() const noexcept { return maker_.may_end(); }

    std::atomic<bool> attached{false}; ///< a progress_engine reports the events of this queue

 private:
    const core::maker maker_{};
};

} // namespace weftio::queues
