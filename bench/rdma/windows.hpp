// A memory window for the time of a measurement.
#pragma once

#include "rdma/setup.hpp"
#include "weftio/weftio.hpp"

namespace weftio::bench {

/// A window of all memory of the far end, bound by its queue pair. Its peer accesses the memory through it.
class bound_window {
 public:
    bound_window(const rdma_setup& setup, const rdma_queue& by);
    bound_window(const bound_window&) = delete;
    bound_window& operator=(const bound_window&) = delete;
    const weftio_dev_remote& remote() const noexcept { return to_; }

 private:
    memory_window window_; ///< its destructor frees it
    weftio_dev_remote to_;
};

} // namespace weftio::bench
