// One connection of this process, as its user and the connection manager see it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "cm/manager.hpp"
#include "rdma/connectable.hpp"

namespace weftio::connections {

/// From the REQ on. Events come from the thread of the manager, the rest from the user's.
class connection_end {
 public:
    enum class phase : std::uint8_t {
        asked,       ///< a REQ has been sent, or has come
        answered,    ///< active: a REP has come
        established, ///< both sides have agreed
        over,
    };

    /// @param first  passive: the event that announces it
    explicit connection_end(cm::event first = {}) : first_(std::move(first)), last_(first_) {}
    connection_end(const connection_end&) = delete;
    connection_end& operator=(const connection_end&) = delete;

    void told(const cm::event& next);

    /// From now on, the end of the connection moves `queue` to ERR and calls `on_disconnect`.
    void use(std::shared_ptr<rdma::connectable> queue, std::function<void()> on_disconnect);
    /// The active side has sent an RTU. @return false: it is over
    bool establish();
    /// The queue pair is in ERR, and nobody is called any more.
    /// @return whether the connection was established until now
    bool end();

    phase now() const;
    const cm::event& first() const { return first_; } ///< passive: with the REQ, whatever has come since
    cm::event last() const;                           ///< that has led to this phase
    /// Blocks until now() is not `before`, but not beyond `until`. @return whether it is not
    bool wait(phase before, std::chrono::steady_clock::time_point until) const;

 private:
    void finish();

    const cm::event first_;
    mutable std::mutex mutex_; ///< guards the next ones
    mutable std::condition_variable changed_;
    phase now_ = phase::asked;
    bool local_ = false; ///< the user has ended it
    cm::event last_;
    std::shared_ptr<rdma::connectable> queue_;
    std::function<void()> on_disconnect_;
};

} // namespace weftio::connections
