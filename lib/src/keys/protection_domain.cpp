// Which queues may name which memory: domains are numbers of the process.
#include <atomic>
#include <cstdint>

#include "weftio/access.hpp"

namespace weftio {

protection_domain protection_domain::make() noexcept
{
    static std::atomic<std::uint64_t> made{0};
    return protection_domain(made.fetch_add(1, std::memory_order_relaxed) + 1);
}

} // namespace weftio
