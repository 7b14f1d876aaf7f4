// Detects kernels that have stopped making progress.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "devices/backend.hpp"
#include "weftio/device.hpp"

namespace weftio::devices {

std::vector<queue_trace> traces_of(const std::vector<std::shared_ptr<lifeline>>& lines);
/// Formats traces, a line for each queue.
std::string text_of(const std::vector<queue_trace>& traces);

/// Sum of the beats of all queues.
std::uint64_t beats_of(const std::vector<std::shared_ptr<lifeline>>& lines) noexcept;

/// Watches one kernel from a thread of its own, from start() on. The destructor ends the thread; called by the thread's
/// own callback, it detaches the thread, which then ends.
class watchdog {
 public:
    watchdog(std::string name, std::shared_ptr<running_backend> kernel, std::vector<std::shared_ptr<lifeline>> lines,
             std::uint64_t beats_at_launch, watch_options options);
    watchdog(const watchdog&) = delete;
    watchdog& operator=(const watchdog&) = delete;
    ~watchdog();

    /// Call it once, after the object has its owner: the first report may come before start() returns, and destroy
    /// both.
    void start();
    /// Ends reporting, because the host has asked the kernel to end.
    void dismiss() noexcept;

 private:
    void run();
    bool sleep(std::chrono::milliseconds bound);
    bool kernel_ended() const;
    std::chrono::milliseconds bound() const;
    std::string finding(bool ended) const;
    void describe(kernel_report& report) const;
    void report(bool ended);

    std::string name_;
    std::shared_ptr<running_backend> kernel_;
    std::vector<std::shared_ptr<lifeline>> lines_;
    watch_options options_;
    std::uint64_t beats_;  ///< at the last check
    bool started_ = false; ///< the kernel has left a beat, or its device starts kernels at once
    std::mutex mutex_;
    std::condition_variable dismissed_changed_;
    bool dismissed_ = false;
    std::thread thread_;
};

} // namespace weftio::devices
