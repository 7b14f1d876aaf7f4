// Tells AddressSanitizer and ThreadSanitizer about fibers. Empty without them.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFTIO_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define WEFTIO_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define WEFTIO_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define WEFTIO_TSAN 1
#endif

#if defined(WEFTIO_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(WEFTIO_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace weftio::devices::cpu {

#if defined(WEFTIO_ASAN) || defined(WEFTIO_TSAN)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// A stack for AddressSanitizer. Around every switch, the side that leaves calls leave() and the side that arrives
/// calls arrive().
struct asan_stack {
    const void* bottom = nullptr;
    std::size_t bytes = 0;
    void* fake = nullptr;

    /// Leaves this stack for `other`. @param last  this stack is never entered again
    void leave([[maybe_unused]] const asan_stack& other, [[maybe_unused]] bool last = false)
    {
#if defined(WEFTIO_ASAN)
        __sanitizer_start_switch_fiber(last ? nullptr : &fake, other.bottom, other.bytes);
#endif
    }
    /// Arrives on this stack, also for the first time. Learns the bounds of `other`, which was left.
    void arrive([[maybe_unused]] asan_stack& other)
    {
#if defined(WEFTIO_ASAN)
        __sanitizer_finish_switch_fiber(fake, &other.bottom, &other.bytes);
#endif
    }
};

/// Clears the poison that earlier users have left on a stack.
inline void asan_renew([[maybe_unused]] void* bottom, [[maybe_unused]] std::size_t bytes)
{
#if defined(WEFTIO_ASAN)
    __asan_unpoison_memory_region(bottom, bytes);
#endif
}

/// A flow of execution for ThreadSanitizer. A switch orders everything before it with everything after it.
class tsan_flow {
 public:
    /// The running flow.
    static tsan_flow current()
    {
#if defined(WEFTIO_TSAN)
        return tsan_flow(__tsan_get_current_fiber());
#else
        return tsan_flow(nullptr);
#endif
    }
    static tsan_flow create()
    {
#if defined(WEFTIO_TSAN)
        return tsan_flow(__tsan_create_fiber(0));
#else
        return tsan_flow(nullptr);
#endif
    }
    void switch_to() const
    {
#if defined(WEFTIO_TSAN)
        __tsan_switch_to_fiber(flow_, 0);
#endif
    }
    /// @pre made by create(), not running
    void destroy() const
    {
#if defined(WEFTIO_TSAN)
        __tsan_destroy_fiber(flow_);
#endif
    }

 private:
    explicit tsan_flow(void* flow) : flow_(flow) {}

    [[maybe_unused]] void* flow_;
};

} // namespace weftio::devices::cpu
