#include "device/cpu/stack_pool.hpp"

#include <algorithm>
#include <new>

namespace weftio::detail::cpu {

stack_pool::~stack_pool()
{
    for (auto& stack : free_) {
        asan_renew(static_cast<char*>(stack.sp) - stack.size, stack.size); // whoever gets these addresses next
        source_.deallocate(stack);
    }
}

boost::context::stack_context stack_pool::take()
{
    std::scoped_lock lock(mutex_);
    if (free_.empty()) {
        if (made_ == limit)
            throw std::bad_alloc();
        if (free_.capacity() == made_) // room for every stack there is, so that give() needs no memory
            free_.reserve(std::max<std::size_t>(64, 2 * made_));
        free_.push_back(source_.allocate());
        ++made_;
    }
    boost::context::stack_context stack = free_.back();
    free_.pop_back();
    /* The frames that a lane ends in never return, so their red zones are still there. */
    asan_renew(static_cast<char*>(stack.sp) - stack.size, stack.size);
    return stack;
}

void stack_pool::give(boost::context::stack_context stack) noexcept
{
    std::scoped_lock lock(mutex_);
    free_.push_back(stack);
}

} // namespace weftio::detail::cpu
