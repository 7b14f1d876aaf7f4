// Controls and counts of the library that stands in for NVIDIA's in tests.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>
#include <vector>

namespace weftio::test {

/// The controls of one loaded library. Threads: any.
struct vendor_control {
    std::atomic<int> refuse_files{0};    ///< result of cuFileHandleRegister
    std::atomic<int> refuse_memory{0};   ///< result of cuFileBufRegister
    std::atomic<std::size_t> most{~0ul}; ///< most bytes that one call transfers
    std::atomic<long> fail_after{-1};    ///< reads and writes that succeed before one fails; -1: none fails
    std::atomic<long> failure{0};        ///< result of the failing call; -1: with `failure_errno`
    std::atomic<int> failure_errno{0};
    std::atomic<long> drivers{0}, files{0}, memories{0}; ///< open or registered now
    std::atomic<long> files_ever{0}, reads{0}, writes{0};
    std::atomic<int> version{0}; ///< result of a call of cuFileGetVersion by the library itself

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
    /// Restores the state after loading, except for registrations.
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

/// The function that the library exports in addition to cuFile's, as vendor_stand_in().
using vendor_stand_in_function = vendor_control*();

} // namespace weftio::test
