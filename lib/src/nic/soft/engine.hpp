// Who drives the software NIC: a thread of its own, or a worker from its own calls.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "nic/soft/receiver.hpp"
#include "nic/soft/sender.hpp"
#include "weftio/port.hpp"

namespace weftio::nic {

/// Runs turns, one at a time, and lets others change things between two of them.
class engine {
 public:
    /// @throws weftio::error errc::invalid_argument, errc::permission_denied: the thread cannot be a real-time one
    engine(receiver& receiver, sender& sender, const port_options& options, std::string name);
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;
    ~engine();

    /// Inline mode: one turn. Returns what it moved. One thread at a time.
    unsigned turn();
    /// The same of the send side only, this queue included: what a push to it needs.
    unsigned send_turn(std::uint32_t queue);
    /// Runs `change` while no turn is in progress; blocks until it has run, as long as one turn takes. Any thread but the
    /// engine's.
    template <class Change>
    decltype(auto) between_turns(Change&& change)
    {
        std::scoped_lock one_at_a_time(changers_);
        change_wanted_.store(true, std::memory_order_relaxed);
        std::unique_lock lock(turns_);
        struct done {
            engine& self;
            ~done()
            {
                self.change_wanted_.store(false, std::memory_order_relaxed);
                self.changed_.notify_all();
            }
        } done{*this};
        return change();
    }
    /// Runs `wanted` between two turns again and again until it returns true, at most for `bound`; in inline mode this thread runs
    /// the turns. Returns whether it has. Any thread but the engine's.
    template <class Wanted>
    bool between_turns_until(Wanted&& wanted, std::chrono::nanoseconds bound)
    {
        for (auto end = std::chrono::steady_clock::now() + bound; !between_turns(wanted);) {
            if (std::chrono::steady_clock::now() > end)
                return false;
            if (has_thread())
                std::this_thread::sleep_for(std::chrono::microseconds(100));
            else
                turn();
        }
        return true;
    }
    bool has_thread() const noexcept { return has_thread_; }

 private:
    enum class sides { both, send };

    unsigned one_turn(sides which);
    void run();
    void idle(unsigned empty_turns) const;
    bool deadline_is_near() const;
    void pin(int core) const;
    void make_realtime(int priority);
    void end() noexcept;

    receiver& receiver_;
    sender& sender_;
    idle_policy idle_;
    const bool has_thread_;
    std::mutex changers_;             ///< one change at a time
    std::mutex turns_;                ///< held by whoever runs turns, or changes things
    std::condition_variable changed_; ///< the engine thread waits here while somebody changes things
    std::atomic<bool> change_wanted_{false};
    std::atomic<bool> ending_{false};
    std::uint32_t turns_run_ = 0;
    std::thread thread_;
};

} // namespace weftio::nic
