// Stacks for lanes.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include <boost/context/protected_fixedsize_stack.hpp>

#include "devices/cpu/sanitizers.hpp"

namespace weftio::devices::cpu {

/// Stacks with a guard page below. A lane's stack is kept for the next launch.
///
/// - Threads: any.
class stack_pool {
 public:
    static constexpr std::size_t stack_bytes = sanitized ? 512 * 1024 : 128 * 1024;
    /// Most stacks at a time. Each takes two mappings, and Linux allows a process 65530.
    static constexpr std::size_t limit = 16384;

    stack_pool() = default;
    stack_pool(const stack_pool&) = delete;
    stack_pool& operator=(const stack_pool&) = delete;
    ~stack_pool();

    /// @throws std::bad_alloc the system has no memory, or `limit` stacks are out
    boost::context::stack_context take();
    void give(boost::context::stack_context stack) noexcept;

 private:
    std::mutex mutex_;
    std::vector<boost::context::stack_context> free_;
    std::size_t made_ = 0;
    boost::context::protected_fixedsize_stack source_{stack_bytes};
};

} // namespace weftio::devices::cpu
