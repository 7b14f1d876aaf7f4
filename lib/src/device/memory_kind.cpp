#include "weftio/device.hpp"

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

} // namespace weftio
