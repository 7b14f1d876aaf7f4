#include "devices/opencl/running.hpp"

#include <algorithm>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "weftio/error.hpp"

namespace weftio::devices::opencl {

namespace {

constexpr std::chrono::seconds patience{5}, compile_patience{30};

/// State of the driver's callback. It may outlive everything but the device of a running kernel.
struct watch {
    std::shared_ptr<outcome> result;
    occupancy& taken;
    std::uint32_t blocks;
};

void CL_CALLBACK kernel_ended(cl_event, cl_int status, void* context)
{
    std::unique_ptr<watch> ended(static_cast<watch*>(context));
    ended->taken.leave(ended->blocks); // before set(): whoever learns of the end may destroy the device
    ended->result->set(status);
}

/// Everything that a kernel left behind goes on using. Reachable for ever, so that leak checkers do not report it.
struct left_behind {
    cl::Kernel kernel;
    cl::CommandQueue queue;
    cl::Event event;
    std::shared_ptr<device_backend> device;
    std::vector<std::shared_ptr<lifeline>> lines;
};

void keep_for_good(left_behind kernel)
{
    static std::mutex mutex;
    static auto* const kept = new std::vector<left_behind>;
    std::lock_guard lock(mutex);
    kept->push_back(std::move(kernel));
}

} // namespace

void outcome::set(cl_int status) noexcept
{
    std::lock_guard lock(mutex_);
    status_ = status;
    changed_.notify_all();
}

std::optional<cl_int> outcome::wait_for(std::chrono::nanoseconds bound)
{
    std::chrono::nanoseconds longest = std::chrono::hours(24 * 365); // so that now + bound does not overflow
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::min(bound, longest), [this] { return status_.has_value(); });
    return status_;
}

running::running(const launch_request& request, cl::Kernel kernel, cl::CommandQueue queue,
                 std::shared_ptr<device_backend> device, occupancy& taken)
    : name_(request.name), kernel_(std::move(kernel)), queue_(std::move(queue)), device_(std::move(device)),
      lines_(request.lines), taken_(taken)
{}

running::~running()
{
    if (!started_ || outcome_->wait_for(std::chrono::nanoseconds(0)))
        return;
    taken_.leave_behind();
    keep_for_good({kernel_, queue_, event_, device_, lines_});
}

void running::start(const launch_request& request)
{
    const grid shape = request.shape;
    taken_.enter(shape.blocks, name_);
    std::unique_ptr<watch> context(new watch{outcome_, taken_, shape.blocks});
    try {
        cl::NDRange all(static_cast<std::size_t>(shape.blocks) * shape.lanes);
        queue_.enqueueNDRangeKernel(kernel_, cl::NullRange, all, cl::NDRange(shape.lanes), nullptr, &event_);
    } catch (...) {
        taken_.leave(shape.blocks);
        throw;
    }
    started_ = true;
    try {
        event_.setCallback(CL_COMPLETE, kernel_ended, context.get());
        static_cast<void>(context.release()); // owned by the callback now
        queue_.flush();
    } catch (...) {
        call_off(request, context == nullptr);
        throw;
    }
}

/// Ends a kernel whose launch has failed although it may be running: raises the abort flags and waits for its end.
void running::call_off(const launch_request& request, bool end_is_reported) noexcept
{
    for (weftio_dev_control* control : request.controls)
        weftio_store_release_sys_u32(&control->abort, 1);
    clFlush(queue_());
    cl_int status = CL_QUEUED;
    for (auto end = std::chrono::steady_clock::now() + patience; !outcome_->wait_for(std::chrono::milliseconds(1));) {
        if (std::chrono::steady_clock::now() > end)
            return;
        if (end_is_reported ||
            clGetEventInfo(event_(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) !=
                CL_SUCCESS ||
            status > CL_COMPLETE)
            continue;
        taken_.leave(request.shape.blocks);
        outcome_->set(status);
    }
}

void running::wait_until_compiled() const noexcept
{
    cl_int status = CL_QUEUED;
    for (auto end = std::chrono::steady_clock::now() + compile_patience; std::chrono::steady_clock::now() < end;
         std::this_thread::sleep_for(std::chrono::microseconds(50)))
        if (clGetEventInfo(event_(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr) !=
                CL_SUCCESS ||
            status <= CL_RUNNING)
            return;
}

bool running::wait_for(std::chrono::nanoseconds bound)
{
    std::optional<cl_int> status = outcome_->wait_for(bound);
    if (status && *status < 0)
        throw error(errc::device_error,
                    fmt::format("weftio: opencl: kernel {} on {} failed with error {} of the OpenCL driver; set "
                                "POCL_DEBUG=err (or your driver's own switch) to see its message",
                                name_, device_->name(), *status));
    return status.has_value();
}

} // namespace weftio::devices::opencl
