// The system calls by which threads of the process change mappings, seen while they wait for the reader of their event.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "registrations/node.hpp"

namespace weftio::verbs {

struct stale_call {
    int thread = 0; ///< 0: not known
    char name[16] = "";
    long number = -1; ///< of the system call
    std::array<std::uint64_t, 6> arguments{};
    std::uint64_t when_ns = 0;
    std::array<std::uint64_t, 128> stack{}; ///< words from the stack pointer up
    unsigned words = 0;

    /// The bytes that it names; of brk(), all from the new end on.
    registrations::range bytes() const noexcept;
    /// The same of what mremap() replaces; else none.
    registrations::range also() const noexcept;
    bool says_bytes() const noexcept;
    /// Whether the pages are other ones afterwards, also for a device that has pinned them.
    bool drops() const noexcept;
};

/// A mapping of this process, as /proc/self/maps has it.
struct stale_mapping {
    registrations::range bytes{};
    bool shared = false;
};
/// The mapping at the address; without bytes: there is none. Allocates nothing.
stale_mapping find_mapping(std::uintptr_t address) noexcept;

/// Nanoseconds of CLOCK_MONOTONIC.
std::uint64_t stale_now_ns() noexcept;
/// The name of a thread of this process.
void read_thread_name(int thread, char (&name)[16]) noexcept;

/// Looks by files of /proc, and keeps the last calls. One thread, unless a comment says otherwise: no lock, nothing
/// allocated.
class stale_calls {
 public:
    /// Call it on the thread that will look. @param with_stacks  stacks are copied
    void begin(bool with_stacks) noexcept;
    /// Finds the threads that are in such a call now.
    void look() noexcept;
    /// Keeps a call of the calling thread. Any thread. @return its number
    std::uint32_t keep_own(const stale_call& call) noexcept;
    /// The call that names such a byte, of those that look() has found; 0: none.
    std::uint32_t naming(const registrations::range& bytes) const noexcept;
    /// Those that look() has found.
    template <class Each>
    void for_each(Each&& each) const
    {
        for (std::uint32_t number = first_; number != next_; ++number)
            each(number, at(number));
    }
    /// A call by its number, which may have been overwritten: then its thread is 0. Any thread.
    stale_call find(std::uint32_t number) const noexcept;
    /// @pre look() has found it
    const stale_call& at(std::uint32_t number) const noexcept { return kept_[number % kept_.size()].call; }

 private:
    struct kept {
        std::atomic<std::uint32_t> number{0}; ///< 0: it is being written
        stale_call call;
    };
    static constexpr std::uint32_t is_own = 1u << 31; ///< in a number
    void look_at(int thread) noexcept;
    void keep(const stale_call& seen, std::uint64_t stack_pointer) noexcept;

    int threads_ = -1; ///< /proc/self/task
    bool with_stacks_ = false;
    std::array<kept, 64> kept_, own_;
    std::atomic<std::uint32_t> next_own_{0};
    std::uint32_t first_ = 1, next_ = 1; ///< numbers of those that look() has found
};

} // namespace weftio::verbs
