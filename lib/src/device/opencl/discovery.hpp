// Which OpenCL devices there are, and which of them can run kernels that own queues.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "device/opencl/api.hpp"

namespace weftio::detail::opencl {

/// What decides whether a device is usable, and how much of it.
struct device_facts {
    std::string name;
    bool available = false;
    bool compiler = false;   ///< it compiles source text
    bool opencl_c_3 = false; ///< OpenCL C 3.0 or newer is among its languages
    bool pocl = false;       ///< the platform is PoCL
    cl_device_svm_capabilities svm = 0;
    cl_device_atomic_capabilities atomics = 0;
    unsigned compute_units = 0; ///< work-groups that surely run at once
    std::size_t max_lanes = 0;  ///< work-items of one work-group
    std::size_t max_bytes = 0;  ///< of one allocation
    /// Blocks of 2 to this many lanes are not to be tried; 0: there are none. PoCL 3 compiles such small ones by
    /// replicating work-items, and its compiler aborts the process on barriers in a loop then.
    unsigned deadly_lanes = 0;
};

struct found_device {
    cl::Device device;
    device_facts facts;
};

/// The devices of all platforms, in the order that `opencl:N` counts. Empty when there is no platform.
/// @throws weftio::error errc::device_error a platform that cannot be asked
std::vector<found_device> find_devices();

/// Where PoCL keeps what it compiles; without such a folder it has no device.
std::filesystem::path pocl_cache();

/// What the device lacks, as words that fit behind "lacks"; empty when it is usable.
std::string lacking(const device_facts& facts);

/// Device `index` of `devices`, the first usable one when `index` < 0.
/// @throws weftio::error errc::not_found no device at all, or none of that index; errc::not_supported it lacks
/// something
const found_device& choose(const std::vector<found_device>& devices, int index);

} // namespace weftio::detail::opencl
