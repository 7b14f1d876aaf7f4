#include "devices/cpu/fiber.hpp"

#include <memory>
#include <utility>

namespace weftio::devices::cpu {

namespace {

/// Boost.Context's allocator interface to the pool that gets the stack back.
struct returning {
    stack_pool* stacks;

    void deallocate(boost::context::stack_context& stack) const noexcept { stacks->give(stack); }
};

} // namespace

fiber::fiber(stack_pool& stacks, std::function<void()> body)
    : body_(std::move(body)), stack_(stacks.take()), own_flow_(tsan_flow::create()), caller_flow_(tsan_flow::current())
{
    own_stack_.bytes = stack_.size;
    own_stack_.bottom = static_cast<char*>(stack_.sp) - stack_.size;
    own_flow_.switch_to(); // constructing a fiber runs its first instructions
    own_ = boost::context::fiber(std::allocator_arg, boost::context::preallocated(stack_.sp, stack_.size, stack_),
                                 returning{&stacks},
                                 [this](boost::context::fiber&& caller) { return enter(std::move(caller)); });
    caller_flow_.switch_to();
}

fiber::~fiber()
{
    own_flow_.destroy();
}

bool fiber::resume()
{
    caller_stack_.leave(own_stack_);
    own_flow_.switch_to();
    own_ = std::move(own_).resume();
    caller_stack_.arrive(own_stack_);
    if (own_)
        return true;
    caller_flow_
        .switch_to(); // the body has ended without a switch: its last frames return in the flow that entered them
    return false;
}

void fiber::suspend()
{
    own_stack_.leave(caller_stack_);
    caller_flow_.switch_to();
    caller_ = std::move(caller_).resume();
    own_stack_.arrive(caller_stack_);
}

boost::context::fiber fiber::enter(boost::context::fiber&& caller)
{
    caller_ = std::move(caller);
    own_stack_.arrive(caller_stack_);
    body_();
    own_stack_.leave(caller_stack_, true);
    return std::move(caller_);
}

} // namespace weftio::devices::cpu
