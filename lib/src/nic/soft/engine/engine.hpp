// Who drives the software NIC: a thread of its own, or a worker from its own calls.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "nic/soft/engine/unit.hpp"
#include "weftio/port.hpp"

namespace weftio::nic {

/// Runs turns, one at a time, and lets others change things between two of them.
class engine {
 public:
    /// @param units  in the order of their turns; must outlive this
    /// @throws weftio::error errc::invalid_argument, errc::permission_denied: the thread cannot be a real-time one
    engine(std::vector<unit*> units, const port_options& options, std::string name);
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;
    ~engine();

    /// Inline mode: one turn. Returns what it moved. One thread at a time.
    unsigned turn();
    /// The same of what sends only, behind `before`: what a push needs, which wakes its queue.
    template <class Before>
    unsigned send_turn(Before&& before)
    {
        return send_turn_behind([&] { before(); });
    }
    /// Whether a change waits for its share of a busy engine's time.
    enum class pace { fair, at_once };
    /// Runs `change` between two turns and returns what it returns, or throws what it throws. Any thread but one that
    /// runs turns.
    ///
    /// Whoever runs turns runs the change too, and so waits for nobody: neither for a thread that has no core, nor for
    /// a wake-up. Where nobody does, the calling thread runs it. Blocks as long as one turn takes; while there are
    /// packets to move, changes get a 256th of the time, so that no queue that is reset all the time slows its
    /// neighbors, and this blocks up to 1 ms. One that comes `at_once`, because another engine stands still for it,
    /// waits for the end of the turn alone.
    template <class Change>
    decltype(auto) between_turns(Change&& change, pace pace = pace::fair)
    {
        using result = std::invoke_result_t<Change>;
        if constexpr (std::is_void_v<result>) {
            carry_out([&] { change(); }, pace);
        } else if constexpr (std::is_reference_v<result>) {
            std::remove_reference_t<result>* made = nullptr;
            carry_out([&] { made = &change(); }, pace);
            return static_cast<result>(*made);
        } else {
            std::optional<result> made;
            carry_out([&] { made.emplace(change()); }, pace);
            return result(std::move(*made));
        }
    }
    bool has_thread() const noexcept { return has_thread_; }
    /// For good: nobody runs turns any more but who calls last_turn(). Returns whether that has come about, for want of
    /// which it waits a second. Not from a turn of this engine's own, for which that never comes.
    bool stop_turns() noexcept;
    bool turns_stopped() const noexcept { return ending_.load(std::memory_order_relaxed); }
    /// A turn for who tears down what is left. @pre stop_turns(), or inline mode
    unsigned last_turn();

 private:
    enum class sides { both, send };
    struct wanted_change {
        const std::function<void()>& make;
        std::exception_ptr failure{};
    };

    unsigned send_turn_behind(const std::function<void()>& before);
    void carry_out(const std::function<void()>& make, pace pace);
    void make_wanted_change() noexcept;
    unsigned one_turn(sides which);
    void run();
    void idle(unsigned empty_turns) const;
    bool deadline_is_near() const;
    void pin(int core) const;
    void make_realtime(int priority);
    void end() noexcept;

    const std::vector<unit*> units_;
    const std::string name_;
    idle_policy idle_;
    const bool has_thread_;
    std::mutex changers_; ///< one change at a time
    // Lines of their own: one is looked at by whoever waits for a change, the other written in every turn.
    alignas(64) std::atomic<wanted_change*> wanted_{nullptr}; ///< until it has been made
    std::atomic<unsigned> at_once_{0}; ///< changes that want to be made, or to come next, at once
    alignas(64) std::mutex turns_;     ///< held by whoever runs turns or a change
    std::atomic<std::uint32_t> turns_run_{0};
    bool busy_ = false;             ///< the last turn has moved something; guarded by turns_, as is the next
    std::uint64_t next_change_ = 0; ///< while busy: in ticks
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

} // namespace weftio::nic
