// An OpenCL device as a place where kernels run.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "devices/backend.hpp"
#include "devices/opencl/canary.hpp"
#include "devices/opencl/discovery.hpp"
#include "devices/opencl/occupancy.hpp"
#include "devices/opencl/svm_pool.hpp"
#include "weftio/device.hpp"

namespace weftio::devices::opencl {

/// All three memory kinds are fine-grained shared memory; kind `device` merely has no CPU address.
///
/// - Ownership: memory and running kernels hold the device by shared_ptr.
/// - Threads: any. Memory may be freed while kernels run that do not use it.
class opencl_device final : public device_backend {
 public:
    /// @throws cl::Error, weftio::error
    explicit opencl_device(const found_device& found, build_method method = build_method::unoptimized);

    const std::string& name() const noexcept override { return name_; }
    allocation allocate(std::size_t bytes, std::size_t alignment, memory_kind kind) override;
    void release(const allocation& allocation, memory_kind kind) noexcept override;
    std::shared_ptr<running_backend> launch(const launch_request& request,
                                            std::shared_ptr<device_backend> self) override;
    const weftio_dev_clock* clock() const noexcept override { return clock_; }

 private:
    void check_shape(const launch_request& request, std::size_t max_lanes) const;
    void check_deadly(const launch_request& request) const;
    cl::Program compiled(const launch_request& request);
    cl::Program compile(const launch_request& request) const;
    void require_free_name(const launch_request& request) const;
    cl::Kernel make_kernel(const launch_request& request);
    void set_arguments(cl::Kernel& kernel, const launch_request& request) const;
    void set_argument(cl::Kernel& kernel, const launch_request& request, cl_uint position) const;

    const device_facts facts_;
    const std::string name_;
    const build_method method_; ///< for kernels of several lanes; kernels of one lane have no barriers
    const cl::Device device_;
    const cl::Context context_;
    svm_pool memory_;
    weftio_dev_clock* const clock_; ///< allocated in `memory_`
    occupancy occupancy_;           ///< after `memory_`: its thread writes the clock
    std::mutex programs_mutex_;
    /// Keyed by whether blocks have one lane (platform/opencl.h differs then) and by the source of the kernel's header.
    std::map<std::pair<bool, std::string>, cl::Program> programs_;
};

} // namespace weftio::devices::opencl
