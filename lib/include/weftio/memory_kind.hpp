// The kinds of memory.
#pragma once

namespace weftio {

/// Where memory lies and who can access it.
enum class memory_kind {
    device,     ///< on the device; only the device can access it
    device_cpu, ///< on the device; the CPU can access it too
    cpu_device, ///< on the CPU; the device can access it too; a software NIC can always reach it
};

const char* to_string(memory_kind kind) noexcept;

} // namespace weftio
