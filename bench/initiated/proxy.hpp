// CPU threads that take requests of kernels and post them to queue pairs of the host.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "initiated/fabric.hpp"
#include "initiated/report.hpp"

namespace weftio::bench {

/// The threads. They take the requests that a kernel posts after the construction. Thread t serves the rings n with
/// n % threads == t, and posts all that it finds in one of them with one commit for each run of requests for the same
/// queue pair.
class proxies {
 public:
    /// Starts the threads. Requests name queue pairs by their index in `queues`; a queue pair belongs to one ring.
    /// @param cores  one for each thread; empty: the system decides, and the threads yield
    proxies(std::span<const proxy_ring> rings, std::vector<proxy_queue> queues, std::uint32_t threads,
            const std::vector<int>& cores);
    proxies(const proxies&) = delete;
    proxies& operator=(const proxies&) = delete;
    ~proxies();
    /// Ends the threads when all that was posted is done. @throws weftio::error errc::device_error a queue has failed
    void end();

 private:
    class taker;
    void serve(std::span<taker> mine);
    void join();

    std::vector<proxy_queue> queues_;
    std::vector<std::vector<taker>> takers_; ///< of each thread
    const bool shares_a_core_;
    std::atomic<bool> ending_ = false, failed_ = false;
    std::vector<std::jthread> threads_;
};

/// The proxies of a column; nullptr if the kernel posts.
std::unique_ptr<proxies> proxies_for(const ways& ways, const column& how, const fabric& fabric);
/// Waits for the end of the kernels, and then of their proxies, if any.
/// @throws weftio::error errc::timed_out one has not ended in a minute; errc::device_error a proxy has failed
void end(std::span<running_kernel> kernels, proxies* serving, const column& how);

} // namespace weftio::bench
