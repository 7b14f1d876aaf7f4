// A kernel that was launched on an OpenCL device.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "devices/backend.hpp"
#include "devices/opencl/occupancy.hpp"
#include "weftio/device.hpp"

namespace weftio::devices::opencl {

/// The result of a kernel, set once by the driver's callback.
class outcome {
 public:
    void set(cl_int status) noexcept;
    /// Waits up to `bound`. Returns the event status, or nothing if the kernel still runs. Blocks without using the
    /// CPU.
    std::optional<cl_int> wait_for(std::chrono::nanoseconds bound);

 private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<cl_int> status_;
};

/// A launched kernel. Constructed before the kernel starts, so that every running kernel has an owner.
///
/// - Ownership: keeps the device alive. If it is destroyed while the kernel runs, the kernel and the device stay for
///   good.
/// - Threads: any, one at a time.
class running final : public running_backend {
 public:
    /// @param taken  a part of `device`
    running(const launch_request& request, cl::Kernel kernel, cl::CommandQueue queue,
            std::shared_ptr<device_backend> device, occupancy& taken);
    ~running() override;

    /// Starts the kernel and returns. The kernel's blocks leave `taken` when it ends.
    /// @throws weftio::error errc::invalid_argument the blocks do not fit beside those that run
    /// @throws cl::Error the driver refuses; a kernel that had begun was asked to end, and has ended unless it took
    ///         more than 5 s
    void start(const launch_request& request);
    /// Waits until the driver has compiled the kernel and runs it, at most 30 s. PoCL compiles a kernel for its grid on
    /// a thread of its own when it first runs, and a process that ends meanwhile destroys the compiler beneath it.
    void wait_until_compiled() const noexcept;
    bool wait_for(std::chrono::nanoseconds bound) override;
    bool starts_late() const noexcept override { return true; }

 private:
    void call_off(const launch_request& request, bool end_is_reported) noexcept;

    const std::string name_;
    cl::Kernel kernel_;
    cl::CommandQueue queue_; ///< its own queue, so that no other kernel waits behind it
    cl::Event event_;
    std::shared_ptr<device_backend> device_;
    std::vector<std::shared_ptr<lifeline>> lines_; ///< keep the memory of queues until the kernel has ended
    occupancy& taken_;
    std::shared_ptr<outcome> outcome_ = std::make_shared<outcome>();
    bool started_ = false;
};

} // namespace weftio::devices::opencl
