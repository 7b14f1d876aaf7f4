#include <unistd.h>

#include <bit>

#include "registrations/memory_source.hpp"

namespace weftio::registrations {

host_memory::host_memory(std::size_t budget_bytes)
    : budget_(budget_bytes), page_bytes_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE)))
{}

unsigned host_memory::shift() const noexcept
{
    return static_cast<unsigned>(std::countr_zero(page_bytes_));
}

memory host_memory::adopt(const range& bytes, const std::shared_ptr<draining>&) const
{
    return host_.adopt(reinterpret_cast<void*>(bytes.begin), bytes.bytes());
}

} // namespace weftio::registrations
