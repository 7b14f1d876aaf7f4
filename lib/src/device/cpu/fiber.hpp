// A function that can stop in the middle and go on later, in the same thread.
#pragma once

#include <functional>

#include <boost/context/fiber.hpp>

#include "device/cpu/sanitizers.hpp"
#include "device/cpu/stack_pool.hpp"

namespace weftio::detail::cpu {

/// A Boost.Context fiber that AddressSanitizer and ThreadSanitizer can follow.
///
/// - Ownership: stays where it was made; holds one stack of `stacks` until its body has ended, which must be before it
///   dies.
/// - Threads: the one that made it.
class fiber {
 public:
    /// Runs nothing yet. `body` must not throw.
    /// @throws std::bad_alloc no stack
    fiber(stack_pool& stacks, std::function<void()> body);
    fiber(const fiber&) = delete;
    fiber& operator=(const fiber&) = delete;
    ~fiber();

    /// Runs the body until it suspends or ends. Returns whether it can be resumed again.
    bool resume();
    /// For the body: returns when resume() is called the next time.
    void suspend();

 private:
    boost::context::fiber enter(boost::context::fiber&& caller);

    std::function<void()> body_;
    boost::context::stack_context stack_;
    asan_stack own_stack_;
    asan_stack caller_stack_;
    tsan_flow own_flow_;
    tsan_flow caller_flow_;
    boost::context::fiber own_;
    boost::context::fiber caller_;
};

} // namespace weftio::detail::cpu
