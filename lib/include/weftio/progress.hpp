// What happens on send queues, brought to the host.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "weftio/detail/internals.hpp"
#include "weftio/events.hpp"

namespace weftio {

/// Brings what happens on send queues, an eth_txq, a dma_queue, a file_queue, an rdma_queue or a queue_pair, to the host,
/// in a thread that the application owns.
///
/// Twice as many events as the queue has entries are kept until progress() takes them. Notifications leave an eighth of
/// that free for failures; one that finds no room is lost, and counted (`lost_events` of the queue's counters).
///
/// - Ownership: a queue that ends while it is attached executes no more, and its last events can still be had; it is
///   let go in the next progress().
/// - Threads: one at a time. Callbacks run inside progress(); they must not attach(). An exception of a callback passes
///   through progress(); the next call goes on with the event behind.
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
    /// Calls back for everything that has happened since the last call, queue by queue: notifications in the order of
    /// positions, and a failure when the engine has found it, which may be before entries in front of it have ended.
    /// Returns how much that was. Does not block, but to let a queue go that has ended: until its port has given back
    /// its frames, at most 1 s.
    unsigned progress();

 private:
    void attach(std::shared_ptr<queues::reported_queue> queue, callbacks callbacks);

    struct attachment;
    std::vector<attachment> attached_;
};

} // namespace weftio
