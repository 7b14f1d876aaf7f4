// The engine: the loop that runs the software NIC, in a thread of its own or inside the calls of a kernel.
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

#include "nic/soft/engine/crowd.hpp"
#include "nic/soft/engine/turn_rounds.hpp"
#include "nic/soft/engine/unit.hpp"
#include "weftio/options.hpp"

namespace weftio::nic::soft {

/// Runs turns, one at a time. Lets other threads make changes between two turns.
class engine {
 public:
    /// @param units  in the order of their turns; must outlive the engine
    /// @throws weftio::error errc::invalid_argument the core or the real-time priority does not exist;
    /// errc::permission_denied the thread may not be a real-time one; errc::device_error no thread could be started
    engine(std::vector<unit*> units, const port_options& options, std::string name);
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;
    ~engine();

    /// Inline mode: runs one turn of all units. Returns how much the turn moved. One thread at a time.
    unsigned turn();
    /// Inline mode: calls `before`, which wakes the pushed queue, then runs one turn of the units that send. A push
    /// calls it.
    template <class Before>
    unsigned send_turn(Before&& before)
    {
        return send_turn_behind([&] { before(); });
    }
    /// fair: the change waits for its share of a busy engine's time. at_once: it is made before the next turn.
    enum class pace { fair, at_once };
    /// Runs `change` between two turns. Returns what `change` returns, or throws what it throws. Any thread may call
    /// it, except the thread that runs the turns.
    ///
    /// The thread that runs the turns also runs the change, so that the engine waits neither for a thread without a
    /// core nor for a wake-up. When no thread runs turns, the calling thread runs the change.
    ///
    /// Blocks as long as one turn takes. While there are packets to move, changes get 1/256 of the time, so that
    /// resetting a queue repeatedly does not slow its neighbors, and a `fair` change blocks up to 1 ms. An `at_once`
    /// change only waits for the end of the current turn, because another engine stands still until the change is made.
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
    /// How many turns it has run, modulo 2^32. Any thread.
    std::uint32_t turns_run() const noexcept { return turns_run_.load(std::memory_order_relaxed); }
    /// Stops turns for good; afterwards only last_turn() runs a turn. Blocks until the current turn has ended, at most
    /// 1 s. Returns whether turns have stopped; always false when called from a turn of this engine.
    bool stop_turns() noexcept;
    bool turns_stopped() const noexcept { return ending_.load(std::memory_order_relaxed); }
    /// From now on, each turn that begins notes the last round. @pre it runs no turn yet, or is between two turns
    void note_rounds(const turn_rounds& of) noexcept { rounds_ = &of; }
    /// Whether a turn has begun since that round had begun, or none runs now. Call it in a turn of some engine.
    bool has_passed(std::uint64_t round) noexcept;
    /// Whether the engine's thread sleeps between two turns: what the caller has withdrawn before is found by no later
    /// turn, and no earlier one uses it. Does not wake the thread.
    bool sleeps() noexcept
    {
        // Changes nothing, but the thread sees what was written before when it wakes and changes it.
        return sleeps_.fetch_add(0, std::memory_order_acq_rel) != 0;
    }
    /// Runs one turn after turns have stopped, for teardown. Returns how much the turn moved.
    /// @pre stop_turns(), or inline mode
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
    std::unique_lock<std::mutex> lock_turns();
    unsigned one_turn(sides which);
    void run();
    void idle(unsigned empty_turns);
    std::chrono::nanoseconds next_nap();
    bool deadline_is_near() const;
    void pin(int core) const;
    void make_realtime(int priority);
    void end() noexcept;

    const std::vector<unit*> units_;
    unsigned moved_ = 0; ///< by all units in the last turn; guarded by turns_
    const std::string name_;
    idle_policy idle_;
    crowd crowd_;                       ///< of idle_policy::adaptive
    std::chrono::nanoseconds slept_{0}; ///< since the engine had work
    const bool has_thread_;
    std::mutex changers_; ///< one change at a time
    // Two cache lines: threads that wait for a change poll the first; every turn writes the second.
    alignas(64) std::atomic<wanted_change*> wanted_{nullptr}; ///< the change to make; nullptr once it has been made
    std::atomic<unsigned> at_once_{0};                        ///< number of `at_once` changes that are waiting
    alignas(64) std::mutex turns_;                            ///< held by the thread that runs a turn or a change
    std::atomic<std::uint32_t> turns_run_{0};
    const turn_rounds* rounds_ = nullptr; ///< nullptr: the port has one engine
    std::atomic<std::uint64_t> round_{0}; ///< begun when the present or last turn began
    /// Earliest time of the next change while the engine is busy, in TSC ticks; guarded by turns_.
    std::uint64_t next_change_ = 0;
    std::atomic<bool> ending_{false};
    std::atomic<unsigned> sleeps_{0}; ///< 1: the thread sleeps between two turns
    std::thread thread_;
};

} // namespace weftio::nic::soft
