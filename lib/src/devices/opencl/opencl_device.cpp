#include "devices/opencl/opencl_device.hpp"

#include <fmt/format.h>

#include "devices/opencl/running.hpp"
#include "devices/opencl/source.hpp"
#include "weftio/error.hpp"

namespace weftio::devices::opencl {

namespace {

/// The start of a compiler's log; later errors mostly follow from the first ones.
std::string_view first_lines(std::string_view log)
{
    constexpr int lines = 12;
    std::size_t end = 0;
    for (int line = 0; line < lines && end < log.size(); ++line)
        end = std::min(log.find('\n', end), log.size() - 1) + 1;
    log = log.substr(0, end);
    return log.substr(0, log.find_last_not_of('\n') + 1);
}

/// The name of the source in the compiler's messages.
const char* file_of(const launch_request& request)
{
    return *request.file ? request.file : request.name;
}

void set_scalar(cl::Kernel& kernel, const launch_request& request, cl_uint position)
{
    const launch_request::argument& argument = request.arguments[position];
    cl_int status = clSetKernelArg(kernel(), position, argument.bytes, argument.value);
    if (status == CL_INVALID_ARG_SIZE)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: opencl: argument {} of kernel {} has {} bytes, its parameter has another "
                                "size; pass the type that the kernel declares",
                                position + 1, request.name, argument.bytes));
    if (status != CL_SUCCESS)
        throw cl::Error(status, "clSetKernelArg");
}

error driver_refusal(std::string_view what, const std::string& device, const cl::Error& failure)
{
    return {errc::device_error,
            fmt::format("weftio: opencl: {} on device \"{}\": {} returned {}; run \"clinfo\" to check the driver", what,
                        device, failure.what(), failure.err())};
}

} // namespace

opencl_device::opencl_device(const found_device& found, build_method method)
    : facts_(found.facts), name_("opencl: " + facts_.name), method_(method), device_(found.device), context_(device_),
      memory_(context_, facts_),
      clock_(static_cast<weftio_dev_clock*>(memory_.allocate(sizeof(weftio_dev_clock), alignof(weftio_dev_clock)))),
      occupancy_(facts_, clock_)
{}

device_backend::allocation opencl_device::allocate(std::size_t bytes, std::size_t alignment, memory_kind kind)
{
    void* address = memory_.allocate(bytes, alignment);
    return {.cpu = kind == memory_kind::device ? nullptr : address, .device = address};
}

void opencl_device::release(const allocation& allocation, memory_kind) noexcept
{
    if (!occupancy_.left_behind()) // a kernel left behind may still use the memory
        memory_.release(allocation.device);
}

std::shared_ptr<running_backend> opencl_device::launch(const launch_request& request,
                                                       std::shared_ptr<device_backend> self)
try {
    check_shape(request, facts_.max_lanes);
    check_deadly(request);
    cl::Kernel kernel = make_kernel(request);
    check_shape(request, kernel.getWorkGroupInfo<CL_KERNEL_WORK_GROUP_SIZE>(device_));
    set_arguments(kernel, request);
    auto started =
        std::make_shared<running>(request, kernel, cl::CommandQueue(context_, device_), std::move(self), occupancy_);
    started->start(request);
    if (facts_.pocl)
        started->wait_until_compiled();
    return started;
} catch (const cl::Error& failure) {
    throw driver_refusal(fmt::format("starting kernel {} failed", request.name), facts_.name, failure);
}

void opencl_device::check_shape(const launch_request& request, std::size_t max_lanes) const
{
    const auto [blocks, lanes] = request.shape;
    if (blocks == 0 || lanes == 0 || lanes > max_lanes)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: opencl: kernel {} cannot run as {} x {} (blocks x lanes) on device \"{}\"; "
                                "launch at least 1 block, of 1 to {} lanes",
                                request.name, blocks, lanes, facts_.name, max_lanes));
}

void opencl_device::check_deadly(const launch_request& request) const
{
    std::uint32_t lanes = request.shape.lanes;
    if (lanes > 1 && lanes <= facts_.deadly_lanes)
        throw error(errc::not_supported,
                    fmt::format("weftio: opencl: kernel {} cannot run with {} lanes on device \"{}\": its compiler "
                                "aborts on barriers in small blocks; use 1 lane or more than {}, or set "
                                "POCL_FULL_REPLICATION_THRESHOLD=1 before the program starts",
                                request.name, lanes, facts_.name, facts_.deadly_lanes));
}

cl::Program opencl_device::compiled(const launch_request& request)
{
    std::lock_guard lock(programs_mutex_);
    std::pair shape_and_source(request.shape.lanes == 1, std::string(request.source));
    auto known = programs_.find(shape_and_source);
    if (known == programs_.end())
        known = programs_.emplace(std::move(shape_and_source), compile(request)).first;
    return known->second;
}

/// Refuses a name that the language or the driver has already, as a function, a type or a macro: a kernel that does
/// nothing else has no such name either.
void opencl_device::require_free_name(const launch_request& request) const
{
    cl::Program program(context_, fmt::format("__kernel void {}(__global int *word) {{ *word = 1; }}\n", request.name));
    try {
        program.build(device_, "-cl-std=CL3.0");
        cl::Kernel(program, request.name);
    } catch (const cl::Error& failure) {
        if (failure.err() == CL_BUILD_PROGRAM_FAILURE || failure.err() == CL_INVALID_KERNEL_NAME)
            throw error(errc::invalid_argument,
                        fmt::format("weftio: opencl: kernel {} has a name that OpenCL C or the compiler of device "
                                    "\"{}\" already uses, such as a built-in function; rename it",
                                    request.name, facts_.name));
    }
}

cl::Program opencl_device::compile(const launch_request& request) const
{
    const bool one_lane = request.shape.lanes == 1;
    const std::string_view before = one_lane ? "" : text_before(method_);
    cl::Program program(context_, translation_unit(request.source, file_of(request), before));
    try {
        program.build(device_, one_lane ? "-cl-std=CL3.0 -DWEFTIO_OPENCL_ONE_LANE" : "-cl-std=CL3.0");
    } catch (const cl::BuildError& failure) {
        std::string log = failure.getBuildLog().empty() ? std::string() : failure.getBuildLog().front().second;
        require_free_name(request);
        throw error(
            errc::device_error,
            fmt::format("weftio: opencl: {} does not compile for device \"{}\":", file_of(request), facts_.name),
            first_lines(log));
    }
    return program;
}

cl::Kernel opencl_device::make_kernel(const launch_request& request)
{
    cl::Program program = compiled(request);
    try {
        return cl::Kernel(program, request.name);
    } catch (const cl::Error& failure) {
        if (failure.err() != CL_INVALID_KERNEL_NAME)
            throw;
        require_free_name(request);
        throw error(errc::device_error,
                    fmt::format("weftio: opencl: {} has no WEFTIO_KERNEL function named {}; it has: {}",
                                file_of(request), request.name, program.getInfo<CL_PROGRAM_KERNEL_NAMES>()));
    }
}

void opencl_device::set_arguments(cl::Kernel& kernel, const launch_request& request) const
{
    cl_uint parameters = kernel.getInfo<CL_KERNEL_NUM_ARGS>();
    if (parameters != request.arguments.size())
        throw error(errc::invalid_argument,
                    fmt::format("weftio: opencl: kernel {} has {} parameters, but {} arguments were passed",
                                request.name, parameters, request.arguments.size()));
    for (cl_uint position = 0; position < parameters; ++position)
        set_argument(kernel, request, position);
    // OpenCL must know all memory that the kernel uses: handles point to rings, records and slots that no argument
    // names.
    kernel.setSVMPointers(memory_.pieces());
}

void opencl_device::set_argument(cl::Kernel& kernel, const launch_request& request, cl_uint position) const
{
    const launch_request::argument& argument = request.arguments[position];
    if (!argument.pointer) {
        set_scalar(kernel, request, position);
        return;
    }
    const void* address = *static_cast<void* const*>(argument.value);
    if (address && !memory_.contains(address))
        throw error(errc::not_reachable, fmt::format("weftio: opencl: argument {} of kernel {} points to {}, which is "
                                                     "not memory of device \"{}\"; allocate it with device::allocate",
                                                     position + 1, request.name, address, facts_.name));
    if (cl_int status = clSetKernelArgSVMPointer(kernel(), position, address); status != CL_SUCCESS)
        throw cl::Error(status, "clSetKernelArgSVMPointer");
}

} // namespace weftio::devices::opencl

namespace weftio::devices {

std::shared_ptr<device_backend> open_opencl(int index)
{
    std::vector<opencl::found_device> devices = opencl::find_devices();
    const opencl::found_device& chosen = opencl::choose(devices, index);
    try {
        const opencl::build_method method =
            opencl::choose_build(chosen, static_cast<unsigned>(&chosen - devices.data()));
        return core::make_shared_here<opencl::opencl_device>(chosen, method);
    } catch (const cl::Error& failure) {
        throw opencl::driver_refusal("no context", chosen.facts.name, failure);
    }
}

} // namespace weftio::devices
