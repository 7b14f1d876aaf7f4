// Finds the MACs of hosts without blocking whoever asks.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "net/neighbor_messages.hpp"
#include "net/roce_headers.hpp"
#include "weftio/rdma.hpp"

namespace weftio::connections {

/// Any thread. The destructor waits for questions under way, 3 s at most.
class mac_resolver {
 public:
    using answer = std::function<void(std::optional<net::mac_address>)>;

    explicit mac_resolver(const rdma_device& at) : at_(at) {}
    mac_resolver(const mac_resolver&) = delete;
    mac_resolver& operator=(const mac_resolver&) = delete;
    ~mac_resolver();

    /// Asks for the MAC of `peer` from the local address of this index, and calls `told` from a thread of its own.
    /// @return false: too many wait; nothing will be told
    bool ask(unsigned gid_index, const net::roce_gid& peer, answer told);

 private:
    static constexpr std::size_t most_threads = 8, most_waiting = 1024;
    struct question {
        unsigned gid_index;
        net::roce_gid peer;
        answer told;
    };
    void run();
    std::optional<net::mac_address> find(const question& of) const noexcept;

    const rdma_device at_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<question> waiting_;
    std::vector<std::thread> threads_;
    std::size_t idle_ = 0;
    bool ending_ = false;
};

} // namespace weftio::connections
