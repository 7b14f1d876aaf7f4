// Events of send queues, for the host.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weftio/detail/internals.hpp"
#include "weftio/events.hpp"

namespace weftio {

/// Delivers events of send queues to the host, by callbacks in a thread of the application. An event is a notification
/// of an entry that is done (WEFTIO_DEV_SEND_NOTIFY), or a failure. Queues are eth_txq, dma_queue, file_queue,
/// rdma_queue and queue_pair.
///
/// Up to twice as many events as the queue has entries are kept until progress() takes them. Notifications leave an
/// eighth of that free for failures. An event that finds no free slot is lost, and counted as `lost_events` of the
/// queue.
///
/// - Ownership: a queue that is destroyed while it is attached executes no further entries; its last events are still
///   delivered, and the next progress() releases it.
/// - Threads: one at a time. Callbacks run inside progress() and must not call attach(). An exception of a callback
///   passes through progress(); the next call delivers the event after it.
class progress_engine {
 public:
    struct callbacks {
        std::function<void(const send_notification&)> on_sent{};
        std::function<void(const send_failure&)> on_error{};
    };

    progress_engine();
    progress_engine(progress_engine&&) noexcept;
    progress_engine& operator=(progress_engine&&) noexcept;
    ~progress_engine();

    /// A queue belongs to one progress engine. @throws weftio::error errc::in_use it is attached already
    void attach(const eth_txq& queue, callbacks callbacks);
    void attach(const dma_queue& queue, callbacks callbacks);
    void attach(const file_queue& queue, callbacks callbacks);
    void attach(const rdma_queue& queue, callbacks callbacks);
    void attach(const queue_pair& queue, callbacks callbacks);
    /// Calls back for each event since the last call, queue by queue: notifications in the order of positions, and a
    /// failure when the engine has found it, which may be before earlier entries are done. Returns the number of
    /// events. Does not block, except to release a destroyed queue: until its port has returned its frames, at most 1
    /// s.
    unsigned progress();

 private:
    void attach(std::shared_ptr<queues::reported_queue> queue, callbacks callbacks);

    struct attachment;
    std::vector<attachment> attached_;
};

} // namespace weftio
