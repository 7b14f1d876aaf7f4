// Finds OpenCL devices, and checks which can run kernels that own queues.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "devices/opencl/api.hpp"

namespace weftio::devices::opencl {

/// Facts that decide whether a device is usable, and how many blocks and lanes it takes.
struct device_facts {
    std::string name;
    bool available = false;
    bool compiler = false;   ///< compiles source text
    bool opencl_c_3 = false; ///< supports OpenCL C 3.0 or newer
    bool pocl = false;       ///< the platform is PoCL
    cl_device_svm_capabilities svm = 0;
    cl_device_atomic_capabilities atomics = 0;
    unsigned compute_units = 0; ///< work-groups that certainly run at once
    std::size_t max_lanes = 0;  ///< work-items of one work-group
    std::size_t max_bytes = 0;  ///< largest allocation
    /// Blocks of 2 to this many lanes are refused; 0: none are. PoCL 3 compiles such small blocks by replicating
    /// work-items, and then its compiler aborts the process at barriers in a loop.
    unsigned deadly_lanes = 0;
};

struct found_device {
    cl::Device device;
    device_facts facts;
};

/// The devices of all platforms, numbered as in `opencl:N`. Empty if there is no platform.
/// @throws weftio::error errc::device_error a platform refuses a query
std::vector<found_device> find_devices();

/// PoCL's cache folder; PoCL offers no device without one.
std::filesystem::path pocl_cache();

/// What the device lacks, as a text that follows "lacks"; empty if the device is usable.
std::string lacking(const device_facts& facts);

/// Returns device `index` of `devices`, or the first usable one if `index` < 0.
/// @throws weftio::error errc::not_found no device at all, or none of that index; errc::not_supported it lacks
/// something
const found_device& choose(const std::vector<found_device>& devices, int index);

} // namespace weftio::devices::opencl
