// Counts the occupied compute units of a device, and runs its clock while there are any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "devices/opencl/discovery.hpp"
#include "weftio/device/clock.h"

namespace weftio::devices::opencl {

/// Counts the running blocks and advances `weftio_dev_clock` while there are any.
///
/// Persistent kernels never free a compute unit for a waiting work-group, so blocks that do not all fit would wait for
/// ever: enter() refuses them. One compute unit certainly runs one block; that is the limit. PoCL 3.1 has a thread for
/// each compute unit, shared by all kernels whatever their queues: two kernels of one block run at the same time on two
/// units, a third starts when one of them has ended. POCL_MAX_PTHREAD_COUNT sets the number of units, also above the
/// number of cores.
///
/// - Ownership: `clock` must outlive all running blocks and the destructor.
/// - Threads: any. leave() is called from the OpenCL driver's callback thread.
class occupancy {
 public:
    occupancy(const device_facts& facts, weftio_dev_clock* clock);
    occupancy(const occupancy&) = delete;
    occupancy& operator=(const occupancy&) = delete;

    /// Takes `blocks` compute units. The first ones start the clock.
    /// @throws weftio::error errc::invalid_argument they do not fit beside those that run
    void enter(std::uint32_t blocks, std::string_view kernel);
    /// Frees `blocks` compute units; the clock stops with the last. Does not wait for the clock's thread.
    void leave(std::uint32_t blocks) noexcept;
    /// Records that a running kernel was left behind: its memory must stay from now on.
    void leave_behind() noexcept { left_behind_ = true; }
    bool left_behind() const noexcept { return left_behind_; }

 private:
    void refuse(std::uint32_t blocks, std::string_view kernel) const;
    void tick(std::stop_token stop);
    void advance() noexcept;

    const std::string device_;
    const std::uint32_t units_;
    const bool pocl_;
    weftio_dev_clock* const clock_;
    std::mutex mutex_;
    std::condition_variable_any changed_;
    std::uint32_t running_ = 0;
    std::atomic<bool> left_behind_ = false;
    std::jthread ticker_; ///< started by the first kernel; parked while none runs
};

} // namespace weftio::devices::opencl
