#include "devices/opencl/discovery.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "weftio/error.hpp"

namespace weftio::devices::opencl {

namespace {

/// Queries a fact; returns `unknown` if the device is too old for the query.
template <class T>
T fact_or(const cl::Device& device, cl_device_info question, T unknown)
{
    T answer{};
    return clGetDeviceInfo(device(), question, sizeof answer, &answer, nullptr) == CL_SUCCESS ? answer : unknown;
}

bool speaks_opencl_c_3(const cl::Device& device)
{
    std::size_t bytes = 0;
    if (clGetDeviceInfo(device(), CL_DEVICE_OPENCL_C_ALL_VERSIONS, 0, nullptr, &bytes) != CL_SUCCESS)
        return false;
    std::vector<cl_name_version> languages(bytes / sizeof(cl_name_version));
    if (clGetDeviceInfo(device(), CL_DEVICE_OPENCL_C_ALL_VERSIONS, bytes, languages.data(), nullptr) != CL_SUCCESS)
        return false;
    return std::ranges::any_of(languages, [](const auto& language) { return CL_VERSION_MAJOR(language.version) >= 3; });
}

/// The largest block that PoCL 3 compiles by replicating work-items, with its reading of the environment.
unsigned deadly_lanes(const cl::Device& device)
{
    const char* method = std::getenv("POCL_WORK_GROUP_METHOD");
    const char* threshold = std::getenv("POCL_FULL_REPLICATION_THRESHOLD");
    if (std::strtoul(device.getInfo<CL_DRIVER_VERSION>().c_str(), nullptr, 10) > 3)
        return 0;
    if (method && std::string_view(method).starts_with("loop"))
        return 0;
    unsigned long replicated = threshold ? std::strtoul(threshold, nullptr, 10) : 2;
    return replicated < 2 ? 0 : static_cast<unsigned>(replicated);
}

device_facts describe(const cl::Platform& platform, const cl::Device& device)
{
    std::vector<std::size_t> sizes = device.getInfo<CL_DEVICE_MAX_WORK_ITEM_SIZES>();
    std::size_t group = device.getInfo<CL_DEVICE_MAX_WORK_GROUP_SIZE>();
    bool pocl = platform.getInfo<CL_PLATFORM_NAME>() == "Portable Computing Language";
    return {
        .name = device.getInfo<CL_DEVICE_NAME>(),
        .available = fact_or<cl_bool>(device, CL_DEVICE_AVAILABLE, CL_FALSE) == CL_TRUE,
        .compiler = fact_or<cl_bool>(device, CL_DEVICE_COMPILER_AVAILABLE, CL_FALSE) == CL_TRUE,
        .opencl_c_3 = speaks_opencl_c_3(device),
        .pocl = pocl,
        .svm = fact_or<cl_device_svm_capabilities>(device, CL_DEVICE_SVM_CAPABILITIES, 0),
        .atomics = fact_or<cl_device_atomic_capabilities>(device, CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES, 0),
        .compute_units = device.getInfo<CL_DEVICE_MAX_COMPUTE_UNITS>(),
        .max_lanes = sizes.empty() ? group : std::min(group, sizes.front()),
        .max_bytes = static_cast<std::size_t>(device.getInfo<CL_DEVICE_MAX_MEM_ALLOC_SIZE>()),
        .deadly_lanes = pocl ? deadly_lanes(device) : 0,
    };
}

std::vector<cl::Platform> find_platforms()
{
    std::vector<cl::Platform> platforms;
    try {
        cl::Platform::get(&platforms);
    } catch (const cl::Error& failure) {
        if (failure.err() != CL_PLATFORM_NOT_FOUND_KHR)
            throw;
    }
    return platforms;
}

std::vector<cl::Device> devices_of(const cl::Platform& platform)
{
    std::vector<cl::Device> devices;
    try {
        platform.getDevices(CL_DEVICE_TYPE_ALL, &devices);
    } catch (const cl::Error& failure) {
        if (failure.err() != CL_DEVICE_NOT_FOUND)
            throw;
    }
    return devices;
}

std::string list_of(const std::vector<found_device>& devices)
{
    std::vector<std::string> names;
    for (const found_device& each : devices)
        names.push_back(fmt::format("opencl:{} \"{}\"", names.size(), each.facts.name));
    return fmt::format("{}", fmt::join(names, ", "));
}

/// Returns errno if the folder cannot be made or written, else 0.
int obstacle(std::filesystem::path folder)
{
    std::error_code ignored;
    for (;; folder = folder.parent_path()) {
        if (access(folder.c_str(), W_OK | X_OK) == 0)
            return std::filesystem::is_directory(folder, ignored) ? 0 : ENOTDIR;
        const int reason = errno;
        if (reason != ENOENT || folder == folder.parent_path())
            return reason;
    }
}

[[noreturn]] void refuse_without_devices()
{
    std::vector<std::string> names;
    bool pocl = false;
    for (const cl::Platform& platform : find_platforms()) {
        names.push_back(platform.getInfo<CL_PLATFORM_NAME>());
        pocl |= names.back() == "Portable Computing Language";
    }
    if (const int reason = pocl ? obstacle(pocl_cache()) : 0; reason != 0)
        throw error(errc::permission_denied, fmt::format("weftio: opencl: PoCL has no device because it cannot write "
                                                         "its cache {} ({}); set POCL_CACHE_DIR to a writable folder",
                                                         pocl_cache().string(), std::strerror(reason)));
    if (!names.empty())
        throw error(
            errc::not_found,
            fmt::format("weftio: opencl: a driver is installed ({}) but shows no device; run \"clinfo\" to see why",
                        fmt::join(names, ", ")));
    throw error(errc::not_found, "weftio: opencl: no OpenCL device on this machine; install pocl-opencl-icd (\"apt-get "
                                 "install pocl-opencl-icd\") for the CPU, or the OpenCL driver of your GPU");
}

const found_device& first_usable(const std::vector<found_device>& devices)
{
    std::vector<std::string> refusals;
    for (const found_device& each : devices) {
        std::string lack = lacking(each.facts);
        if (lack.empty())
            return each;
        refusals.push_back(fmt::format("\"{}\" lacks {}", each.facts.name, lack));
    }
    throw error(errc::not_supported,
                fmt::format("weftio: opencl: no usable device: {}; install pocl-opencl-icd to run kernels "
                            "on the CPU",
                            fmt::join(refusals, "; ")));
}

} // namespace

std::filesystem::path pocl_cache()
{
    auto variable = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
    if (std::string own = variable("POCL_CACHE_DIR"); !own.empty())
        return own;
    if (std::string folder = variable("XDG_CACHE_HOME"); !folder.empty())
        return std::filesystem::path(folder) / "pocl";
    const std::string home = variable("HOME");
    return home.empty() ? std::filesystem::path("/tmp/pocl") : std::filesystem::path(home) / ".cache" / "pocl";
}

std::vector<found_device> find_devices()
try {
    std::vector<found_device> devices;
    for (const cl::Platform& platform : find_platforms())
        for (const cl::Device& device : devices_of(platform))
            devices.push_back({device, describe(platform, device)});
    return devices;
} catch (const cl::Error& failure) {
    throw error(
        errc::device_error,
        fmt::format(
            "weftio: opencl: {} failed with {} during device discovery; run \"clinfo\" to see which platform is broken",
            failure.what(), failure.err()));
}

std::string lacking(const device_facts& facts)
{
    constexpr cl_device_atomic_capabilities needed_atomics =
        CL_DEVICE_ATOMIC_ORDER_ACQ_REL | CL_DEVICE_ATOMIC_SCOPE_DEVICE;
    std::vector<std::string_view> lacks;

    if (!facts.available)
        lacks.push_back("availability (its driver reports it unavailable)");
    if (!facts.compiler)
        lacks.push_back("a compiler");
    if (!facts.opencl_c_3)
        lacks.push_back("OpenCL C 3.0");
    if (!(facts.svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER))
        lacks.push_back("fine-grained buffer SVM");
    if (!(facts.svm & CL_DEVICE_SVM_ATOMICS))
        lacks.push_back("SVM atomics");
    if ((facts.atomics & needed_atomics) != needed_atomics)
        lacks.push_back("acquire-release atomics at device scope");
    return fmt::format("{}", fmt::join(lacks, ", "));
}

const found_device& choose(const std::vector<found_device>& devices, int index)
{
    if (devices.empty())
        refuse_without_devices();
    if (index < 0)
        return first_usable(devices);
    if (static_cast<std::size_t>(index) >= devices.size())
        throw error(errc::not_found,
                    fmt::format("weftio: opencl:{}: no such device, there {} {}: {}; name one of these", index,
                                devices.size() == 1 ? "is" : "are", devices.size(), list_of(devices)));
    const found_device& wanted = devices[static_cast<std::size_t>(index)];
    if (std::string lack = lacking(wanted.facts); !lack.empty())
        throw error(errc::not_supported,
                    fmt::format("weftio: opencl:{}: device \"{}\" lacks {}; choose another with \"opencl\" "
                                "or opencl:N",
                                index, wanted.facts.name, lack));
    return wanted;
}

} // namespace weftio::devices::opencl
