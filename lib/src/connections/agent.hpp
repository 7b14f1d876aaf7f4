// The connection manager of a port at work: its thread, its clock, and the queue pair by which it speaks to peers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include <semaphore.h>

#include "cm/manager.hpp"
#include "connections/mac_resolver.hpp"
#include "connections/management_queue.hpp"
#include "rdma/rdma_device.hpp"

namespace weftio::connections {

/// Wakes a thread that waits. Never blocks the waker, which may be an engine.
class wake_up {
 public:
    wake_up() noexcept { sem_init(&raised_, 0, 0); }
    wake_up(const wake_up&) = delete;
    wake_up& operator=(const wake_up&) = delete;
    ~wake_up() { sem_destroy(&raised_); }
    void raise() noexcept { sem_post(&raised_); }
    /// @param until  of CLOCK_MONOTONIC, in nanoseconds; 0: no matter how long
    void wait(std::uint64_t until) noexcept;

 private:
    sem_t raised_{};
};

/// Any thread.
class agent final : cm::mad_sink {
 public:
    /// @param told  gets each event in the thread of the agent, and may call the agent
    /// @throws weftio::error as management_queue; std::system_error
    agent(const port& port, const rdma_device& at, std::function<void(const cm::event&)> told);
    agent(const agent&) = delete;
    agent& operator=(const agent&) = delete;
    /// No event is told any more. @pre not called by `told`
    ~agent();

    /// Returns what(manager, now). Events that it causes are told later. @param what  must not block or call the agent
    template <class What>
    auto call(What&& what)
    {
        const std::scoped_lock lock(mutex_);
        woken_.raise();
        return what(manager_, now());
    }
    /// Finds out how to reach `peer` from the local address `local`, and calls `found` with whether this has succeeded,
    /// from another thread. Call it before the first message to a peer.
    /// @param patience  how long an answer is waited for  @return false: no such local address, or too many questions
    bool resolve(const cm::path& way, std::function<void(bool)> found,
                 std::chrono::milliseconds patience = usual_patience);

 private:
    static constexpr std::chrono::seconds usual_patience{3};

    void send(const cm::path& to, std::span<const std::uint8_t, cm::mad_bytes> bytes) override;
    static std::uint64_t now() noexcept;
    std::optional<unsigned> index_of(const net::roce_gid& local) const;
    void learn_from(const cm::path& datagram);
    void learn(const net::roce_gid& host, const net::mac_address& mac);
    bool has_left(const net::mac_address& host) const;
    bool has_left(const net::roce_gid& host) const;
    std::uint64_t look_after_peers(std::uint64_t time);
    void run();
    std::uint64_t turn();
    std::optional<cm::event> next_event();

    const std::shared_ptr<const rdma::local_addresses> addresses_;
    const std::function<void(const cm::event&)> told_;
    wake_up woken_;
    std::mutex mutex_; ///< guards the next ones
    management_queue queue_;
    cm::manager manager_;
    std::map<net::roce_gid, net::mac_address> macs_; ///< of the hosts that messages go to
    std::deque<net::roce_gid> by_age_;               ///< keys of macs_, the oldest first
    const bool sees_leaving_;                        ///< whether the port learns that a host has left
    std::set<net::roce_gid> absent_;                 ///< hosts that had left when they were looked after last
    std::uint64_t next_look_ = 0;
    std::atomic<bool> ending_{false};
    mac_resolver resolver_;
    std::thread thread_;
};

} // namespace weftio::connections
