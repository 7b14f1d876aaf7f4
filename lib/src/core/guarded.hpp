// Memory that the application owns may go away while an engine copies it: unmapped, or a file behind it truncated.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFTIO_PROBES_GUARDED_BYTES
#endif
#elif defined(__SANITIZE_THREAD__)
#define WEFTIO_PROBES_GUARDED_BYTES
#endif

namespace weftio::core {

/// The bytes that a guarded call reads and writes. A fault at any other address is not the call's.
class touched {
 public:
    touched() noexcept = default;
    touched(const touched&) = delete;
    touched& operator=(const touched&) = delete;

    /// From here on the call touches these bytes, and no others. At most two ranges at a time.
    void only(const void* first, std::size_t first_bytes, const void* second = nullptr,
              std::size_t second_bytes = 0) noexcept
    {
        first_ = {reinterpret_cast<std::uintptr_t>(first), first_bytes};
        second_ = {reinterpret_cast<std::uintptr_t>(second), second_bytes};
        std::atomic_signal_fence(std::memory_order_seq_cst); // the handler reads it on this thread
        probe(first, first_bytes);
        probe(second, second_bytes);
    }
    bool hold(std::uintptr_t address) const noexcept { return first_.holds(address) || second_.holds(address); }

 private:
    struct range {
        std::uintptr_t begin = 0;
        std::size_t bytes = 0;
        bool holds(std::uintptr_t address) const noexcept { return address - begin < bytes; }
    };
    /// ThreadSanitizer holds a lock of its own during an atomic operation, and must not be left in the midst of one:
    /// memory that is gone is found by a load that it does not see.
#if defined(WEFTIO_PROBES_GUARDED_BYTES)
    static void probe(const void* at, std::size_t bytes) noexcept;
#else
    static void probe(const void*, std::size_t) noexcept {}
#endif
    range first_, second_;
};

namespace detail {
/// Whether guard_memory() was called: before, no memory can go away.
inline constinit std::atomic<bool> guarding{false};
using guarded_body = void (*)(touched&, void*) noexcept;
bool call_guarded(guarded_body body, void* context) noexcept;
} // namespace detail

/// Calls `body(touched&)` and returns true; returns false when memory that it has named by touched::only() was not
/// there. `body` ends where it was then: what it has stored until then stays, and no destructor of its own runs. Any
/// thread; costs 4 ns or so. Before the first guard_memory() nothing is caught, and it costs nothing.
///
/// @pre body throws nothing, takes no lock, has no object with a destructor, and switches to no other fiber. What it
///      keeps for afterwards it stores volatile: else the compiler may have it in a register.
template <class Body>
[[nodiscard]] bool guarded(Body&& body) noexcept
{
    using type = std::remove_reference_t<Body>;
    if (!detail::guarding.load(std::memory_order_relaxed)) {
        touched unguarded;
        body(unguarded);
        return true;
    }
    return detail::call_guarded([](touched& bytes, void* context) noexcept { (*static_cast<type*>(context))(bytes); },
                                const_cast<void*>(static_cast<const void*>(&body)));
}

/// std::memmove(). Returns false when some of the bytes, of either side, are not there: a part may have been copied.
[[nodiscard]] inline bool guarded_copy(void* to, const void* from, std::size_t bytes) noexcept
{
    return guarded([=](touched& there) {
        there.only(to, bytes, from, bytes);
        std::memmove(to, from, bytes);
    });
}

/// From now on guarded calls of this process catch SIGSEGV and SIGBUS; a fault that is not theirs goes to the action
/// that the application has set, with the same information. Call it when memory is adopted or registered: it costs two
/// system calls, and puts the handler in front again when the application has set its own meanwhile.
///
/// An action of the application's that was set later is in front until this or keep_guarding() puts ours before it.
/// It is called for faults that are not ours, as if ours were not there, and may call the action that it has replaced.
void guard_memory() noexcept;

/// What guard_memory() does, at most once in 100 ms, and nothing before the first guard_memory(). Engines call it.
void keep_guarding() noexcept;

} // namespace weftio::core
