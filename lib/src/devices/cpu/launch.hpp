// A launch on the CPU: a thread for every block.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "devices/backend.hpp"
#include "devices/cpu/stack_pool.hpp"
#include "weftio/device.hpp"

namespace weftio::devices::cpu {

inline constexpr std::uint32_t max_blocks = 1024;
inline constexpr std::uint32_t max_lanes = 1024;

/// State shared by the threads of a launch and its running_backend. It outlives both.
class launch_state {
 public:
    /// @param device  kept alive until the last block has ended; `stacks` is a part of it
    launch_state(const launch_request& request, std::shared_ptr<device_backend> device, stack_pool& stacks,
                 std::optional<std::uint64_t> shuffle_seed);

    /// Body of a block's thread: waits for open_gate(), then runs all lanes.
    void run_block(std::uint32_t block) noexcept;
    /// Releases the waiting threads; if `run` is false, they end without running the kernel.
    void open_gate(bool run) noexcept;
    /// Waits up to `bound`. Returns whether all blocks have ended.
    bool wait_for(std::chrono::nanoseconds bound);
    /// The first fault, or nullptr; empty if there was no memory for its text. @pre all blocks have ended
    const std::string* fault() const noexcept { return failed_ ? &fault_ : nullptr; }

 private:
    std::string run_lanes(const weftio_cpu_lane& first);
    void fail(std::uint32_t block, std::string_view what) noexcept;

    const std::shared_ptr<device_backend> device_;
    stack_pool& stacks_;
    const std::optional<std::uint64_t> shuffle_seed_;
    const std::string name_;
    const std::function<void()> call_;
    const grid shape_;
    const std::vector<weftio_dev_control*> controls_;
    const std::vector<std::shared_ptr<lifeline>> lines_; ///< keep the memory of queues while a block runs

    enum gate : int { closed, open, canceled };
    std::atomic<int> gate_ = closed;
    std::atomic<bool> failed_ = false; ///< ends the other blocks
    std::mutex mutex_;                 ///< guards the members below
    std::condition_variable ended_;
    std::uint32_t live_blocks_;
    std::string fault_;
};

/// A launch on the CPU.
///
/// - Ownership: joins the threads if all blocks have ended. Otherwise it detaches them, which keeps the shared state
///   alive, and calls `left_behind`.
class cpu_running final : public running_backend {
 public:
    /// Starts the threads of all blocks together.
    /// @throws weftio::error errc::device_error the system gives no more threads; nothing has run then
    cpu_running(std::shared_ptr<launch_state> state, std::uint32_t blocks, std::function<void()> left_behind);
    ~cpu_running() override;

    bool wait_for(std::chrono::nanoseconds bound) override;

 private:
    void join();

    std::shared_ptr<launch_state> state_;
    std::function<void()> left_behind_;
    std::vector<std::thread> threads_;
};

} // namespace weftio::devices::cpu
