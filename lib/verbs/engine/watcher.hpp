// The engine's thread for everything other than commands: descriptors that programs close, and a regular poll of what
// does not notify.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "channel.hpp"

namespace weftio::verbs {

/// Any thread may call. The thread blocks signals (core/signals.hpp) and runs the functions one at a time.
class watcher {
 public:
    /// @throws failure, std::system_error
    watcher();
    ~watcher();
    watcher(const watcher&) = delete;
    watcher& operator=(const watcher&) = delete;

    /// Calls `when_ready` whenever the descriptor is readable or hung up, until forget().
    /// @throws failure EBADF: the program has closed the descriptors of this class; a log line says so once
    void watch(int number, std::function<void()> when_ready);
    /// When this returns, the function is not running and will not run again. If the function itself calls this, it
    /// will not run again.
    void forget(int number);
    /// Calls `poll` once per period while want_polls() has a positive sum. Call it once, first.
    void set_poll(std::chrono::milliseconds period, std::function<void()> poll);
    /// Adds to the number of users that request polls.
    void want_polls(int more);

 private:
    /// Whether the descriptors are those that were made. The program can close them, and get their numbers.
    bool has_descriptors() const noexcept;
    void require_descriptors();
    void run();
    bool ends();
    void call(int number);
    int patience_ms();
    std::function<void()> due_poll();

    const descriptor epoll_;
    const descriptor wake_;
    std::mutex mutex_;
    std::condition_variable idle_;
    std::map<int, std::function<void()>> functions_;
    int running_ = -1; ///< the descriptor whose function runs
    std::function<void()> poll_;
    std::chrono::milliseconds period_{0};
    std::chrono::steady_clock::time_point next_poll_{};
    int wanted_ = 0;
    bool ending_ = false;
    std::atomic<bool> said_closed_{false};
    std::thread thread_;
};

} // namespace weftio::verbs
