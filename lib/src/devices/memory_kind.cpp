#include <fmt/format.h>

#include "devices/backend.hpp"
#include "weftio/device.hpp"
#include "weftio/error.hpp"

namespace weftio {

const char* to_string(memory_kind kind) noexcept
{
    switch (kind) {
        case memory_kind::device: return "device";
        case memory_kind::device_cpu: return "device_cpu";
        case memory_kind::cpu_device: return "cpu_device";
    }
    return "unknown";
}

void devices::require_kind(std::string_view who, memory_kind kind)
{
    if (kind != memory_kind::device && kind != memory_kind::device_cpu && kind != memory_kind::cpu_device)
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: {} is {}, not a kind of memory; use memory_kind::cpu_device, device_cpu or device",
                        who, static_cast<int>(kind)));
}

} // namespace weftio
