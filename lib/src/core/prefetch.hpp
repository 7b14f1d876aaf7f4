// Cache lines that are needed soon.
#pragma once

namespace weftio::core {

/// Has the cache line fetched for writing, which takes it away from other cores. Returns at once; a hint, for any
/// address. GCC has the instruction for it only where it may count on newer processors; older ones ignore it.
inline void fetch_to_write(const void* at) noexcept
{
#if defined(__x86_64__)
    asm volatile("prefetchw (%0)" : : "r"(at));
#else
    __builtin_prefetch(at, 1);
#endif
}

} // namespace weftio::core
