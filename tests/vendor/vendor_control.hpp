// What tests see of, and let happen in, the library that stands in for NVIDIA's.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace weftio::test {

/// That of one loaded library. Threads: any.
struct vendor_control {
    std::atomic<int> refuse_files{0};    ///< what cuFileHandleRegister returns
    std::atomic<int> refuse_memory{0};   ///< what cuFileBufRegister returns
    std::atomic<std::size_t> most{~0ul}; ///< bytes of one call
    std::atomic<long> fail_after{-1};    ///< reads and writes that work, and then one fails; -1: none does
    std::atomic<long> failure{0};        ///< what that one returns; -1: with `failure_errno`
    std::atomic<int> failure_errno{0};
    std::atomic<long> drivers{0}, files{0}, memories{0}; ///< open or registered now
    std::atomic<long> files_ever{0}, reads{0}, writes{0};
    std::atomic<int> version{0}; ///< what a call of cuFileGetVersion by the library itself says

    /// Calls with their arguments, in order.
    std::vector<std::string> calls()
    {
        const std::lock_guard lock(mutex);
        return log;
    }
    void add(std::string call)
    {
        const std::lock_guard lock(mutex);
        log.push_back(std::move(call));
    }
    /// As it was after loading, but for what is registered.
    void reset()
    {
        refuse_files = refuse_memory = failure_errno = 0;
        most = ~0ul;
        fail_after = -1;
        failure = files_ever = reads = writes = 0;
        const std::lock_guard lock(mutex);
        log.clear();
    }

    std::mutex mutex;
    std::vector<std::string> log;
};

/// What the library exports beside cuFile's functions, as vendor_stand_in().
using vendor_stand_in_function = vendor_control*();

} // namespace weftio::test
