#include "devices/cpu/stack_pool.hpp"

#include <algorithm>
#include <new>

namespace weftio::devices::cpu {

stack_pool::~stack_pool()
{
    for (auto& stack : free_) {
        asan_renew(static_cast<char*>(stack.sp) - stack.size, stack.size); // these addresses will be reused
        source_.deallocate(stack);
    }
}

boost::context::stack_context stack_pool::take()
{
    std::scoped_lock lock(mutex_);
    if (free_.empty()) {
        if (made_ == limit)
            throw std::bad_alloc();
        if (free_.capacity() == made_) // capacity for every stack, so that give() allocates nothing
            free_.reserve(std::max<std::size_t>(64, 2 * made_));
        free_.push_back(source_.allocate());
        ++made_;
    }
    boost::context::stack_context stack = free_.back();
    free_.pop_back();
    /* A lane's last frames never return, so AddressSanitizer's red zones remain on the stack. */
    asan_renew(static_cast<char*>(stack.sp) - stack.size, stack.size);
    return stack;
}

void stack_pool::give(boost::context::stack_context stack) noexcept
{
    std::scoped_lock lock(mutex_);
    free_.push_back(stack);
}

} // namespace weftio::devices::cpu
