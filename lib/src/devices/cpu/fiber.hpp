// A function that can suspend and resume, in one thread.
#pragma once

#include <functional>

#include <boost/context/fiber.hpp>

#include "devices/cpu/sanitizers.hpp"
#include "devices/cpu/stack_pool.hpp"

namespace weftio::devices::cpu {

/// A Boost.Context fiber that AddressSanitizer and ThreadSanitizer can follow.
///
/// - Ownership: not movable; holds a stack of `stacks` until its body has ended, which must be before the destructor.
/// - Threads: the constructing thread.
class fiber {
 public:
    /// Makes a suspended fiber. `body` must not throw.
    /// @throws std::bad_alloc no stack
    fiber(stack_pool& stacks, std::function<void()> body);
    fiber(const fiber&) = delete;
    fiber& operator=(const fiber&) = delete;
    ~fiber();

    /// Runs the body until it suspends or ends. Returns whether it can be resumed again.
    bool resume();
    /// Called by the body: returns at the next resume().
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

} // namespace weftio::devices::cpu
