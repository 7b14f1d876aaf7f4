// What the host enqueues by itself: it does what a kernel on device "cpu" does.
#pragma once

#include <cstdint>
#include <string_view>

#include "weftio/device.hpp"
#include "weftio/device/queue/send.h"

namespace weftio::queues {

/// A queue that the host submits to, for the texts of errors.
struct host_queue {
    const char* kind; ///< "dma_queue"
    std::uint32_t number;
    const device& where; ///< whose kernels own it
    bool stopped;        ///< what is submitted would be flushed
};

/// @param known, names  the flags that its entries take
/// @throws weftio::error errc::invalid_argument other flags, or the queue is one of another device than "cpu";
///         errc::device_error it is stopped
void require_submit(const host_queue& queue, std::uint32_t flags, std::uint32_t known, std::string_view names);

/// Commits and pushes, as weftio_dev_send_queue_submit() does for kernels. Where another is at it, a kernel gives up
/// once it has been asked to end, and leaves its entries to the next commit; the host, which nobody has asked, waits.
void commit_from_host(weftio_dev_send_queue& queue);

} // namespace weftio::queues
