// Finds the MACs of hosts without blocking whoever asks.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "net/neighbor_messages.hpp"
#include "net/roce_headers.hpp"
#include "rdma/rdma_device.hpp"

namespace weftio::connections {

/// Any thread. The destructor waits for questions under way.
class mac_resolver {
 public:
    using answer = std::function<void(std::optional<net::mac_address>)>;

    struct question {
        unsigned gid_index; ///< of the local address from which it is asked
        net::roce_gid peer;
        std::chrono::milliseconds patience; ///< how long an answer is waited for
        answer told;
    };

    explicit mac_resolver(std::shared_ptr<const rdma::local_addresses> from) : from_(std::move(from)) {}
    mac_resolver(const mac_resolver&) = delete;
    mac_resolver& operator=(const mac_resolver&) = delete;
    ~mac_resolver();

    /// Asks for the MAC of `peer`, and calls `told` from a thread of its own.
    /// @return false: too many wait; nothing will be told
    bool ask(question what);

 private:
    static constexpr std::size_t most_threads = 8, most_waiting = 1024;
    void run();
    std::optional<net::mac_address> find(const question& of) const noexcept;

    const std::shared_ptr<const rdma::local_addresses> from_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<question> waiting_;
    std::vector<std::thread> threads_;
    std::size_t idle_ = 0;
    bool ending_ = false;
};

} // namespace weftio::connections
