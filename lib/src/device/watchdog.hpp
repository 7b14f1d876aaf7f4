// Notices kernels that no longer beat.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "device/backend.hpp"
#include "weftio/device.hpp"

namespace weftio::detail {

std::vector<queue_trace> traces_of(const std::vector<std::shared_ptr<lifeline>>& lines);
/// A line for each queue.
std::string text_of(const std::vector<queue_trace>& traces);

/// Of all queues together.
std::uint64_t beats_of(const std::vector<std::shared_ptr<lifeline>>& lines) noexcept;

/// A thread beside one kernel, from start() on. The destructor ends it; run by the thread's own callback, it lets the
/// thread end behind it.
class watchdog {
 public:
    watchdog(std::string name, std::shared_ptr<running_backend> kernel, std::vector<std::shared_ptr<lifeline>> lines,
             std::uint64_t beats_at_launch, watch_options options);
    watchdog(const watchdog&) = delete;
    watchdog& operator=(const watchdog&) = delete;
    ~watchdog();

    /// Call it once, when the object has its owner: the first report may come before it returns, and end both.
    void start();
    /// The host has asked the kernel to end: nothing is to be reported any more.
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
    std::uint64_t beats_;  ///< as last seen
    bool started_ = false; ///< the kernel: there was a sign of life, or the kernel needs no time to start
    std::mutex mutex_;
    std::condition_variable dismissed_changed_;
    bool dismissed_ = false;
    std::thread thread_;
};

} // namespace weftio::detail
