#include "queues/placed.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "weftio/error.hpp"

namespace weftio::queues {

nic::ring_memory placed(const part& wanted, const memory_place& callers, const device& device)
{
    constexpr std::size_t two_cache_lines = 128;
    if (!callers.of) {
        const std::size_t alignment = std::max(wanted.alignment, two_cache_lines);
        return {detail::internals::block(
            device.allocate(std::max(wanted.bytes, wanted.alignment), memory_kind::cpu_device, alignment))};
    }
    const std::size_t all = callers.of->bytes();
    if (callers.offset > all || wanted.bytes > all - callers.offset)
        throw error(errc::invalid_argument, fmt::format("weftio: {}: {} needs {} bytes at offset {}, which exceeds its "
                                                        "memory of {} bytes; use a larger one, or a smaller offset",
                                                        wanted.who, wanted.name, wanted.bytes, callers.offset, all));
    const nic::ring_memory at{detail::internals::block(*callers.of), callers.offset};
    if (reinterpret_cast<std::uintptr_t>(at.device<std::byte>()) % wanted.alignment != 0)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: {} is at {}; the address must be a multiple of {}", wanted.who,
                                wanted.name, static_cast<const void*>(at.device<std::byte>()), wanted.alignment));
    return at;
}

} // namespace weftio::queues
