// The engines of a port, and where its queues are.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/process.hpp"
#include "nic/soft/engine/engine.hpp"
#include "nic/soft/link.hpp"
#include "nic/soft/receive/receiver.hpp"
#include "nic/soft/send/sender.hpp"
#include "weftio/port.hpp"

namespace weftio::nic {

/// The engine that a queue is at. Changes only while every engine of the port is between two turns; any thread may
/// look.
using home = std::atomic<unsigned>;

/// What a port gives its engines.
struct engine_supplies {
    struct port_queue {
        nic::wire wire;
        rx_pool* pool = nullptr; ///< see receiver
    };
    std::vector<port_queue> queues; ///< one for each engine
    bool hold = false;
    std::string capture;
    std::string interface; ///< see port_watch
    std::string name;
};

/// Engines that share nothing in a turn: each has a port queue in both directions, a receiver and a sender. What
/// several of them read in their turns (rules, where queues are) changes only while all are between two turns; keys
/// come at any time, and go only then.
///
/// Queues have numbers of the port, whichever engine they are at.
class engines final : detail::moving {
 public:
    /// @throws weftio::error as nic::engine
    engines(const engine_supplies& supplies, const nic_keys& keys, send_pool& pool, const port_options& options);
    ~engines() { leave(); }

    unsigned count() const noexcept { return static_cast<unsigned>(engines_.size()); }
    nic::engine& engine(unsigned number) noexcept { return engines_[number]; }
    nic::receiver& receiver(unsigned engine) noexcept { return rooms_[engine].receiver; } ///< between two turns only
    nic::sender& sender(unsigned engine) noexcept { return rooms_[engine].sender; }       ///< between two turns only
    bool have_threads() const noexcept { return engines_.front().has_thread(); }
    bool stand_still() noexcept override;
    /// Inline mode: one turn of each. Returns what they moved.
    unsigned turn();

    /// As engine::between_turns, of all of them: runs `change` while none is in a turn, and throws what it throws.
    template <class Change>
    void between_all_turns(Change&& change)
    {
        if (count() == 1)
            return engines_.front().between_turns(change);
        std::scoped_lock one_at_a_time(everyone_);
        carry_out_from(0, [&] { change(); }); // a reference alone: needs no memory, so destructors may change things
    }
    /// As engine::between_turns, of the engine of a queue, wherever that goes meanwhile.
    template <class Change>
    void between_turns_at(const home& home, Change&& change)
    {
        bool done = false;
        while (!done) {
            const unsigned here = home.load(std::memory_order_relaxed);
            engines_[here].between_turns([&] {
                if (home.load(std::memory_order_relaxed) == here) {
                    done = true;
                    change();
                }
            });
        }
    }
    /// Runs `try_once`, which brings about what is wanted and returns whether it has come, again and again until it
    /// returns true, at most for `bound`; in inline mode this thread runs the turns in between. Returns whether it has.
    template <class TryOnce>
    bool keep_trying(TryOnce&& try_once, std::chrono::nanoseconds bound)
    {
        for (auto end = std::chrono::steady_clock::now() + bound; !try_once();) {
            if (std::chrono::steady_clock::now() > end)
                return false;
            if (have_threads() && !engines_.front().turns_stopped())
                std::this_thread::sleep_for(std::chrono::microseconds(100));
            else
                last_turns();
        }
        return true;
    }

    /// Between all turns: takes up a queue at `engine`. Returns its number, the lowest free one. The ring's memory must
    /// stay until it is removed.
    std::uint32_t add_rx(unsigned engine, const rx_ring& ring);
    void remove_rx(unsigned engine, std::uint32_t number) noexcept;
    std::uint32_t add_tx(unsigned engine, const tx_ring& ring);
    /// Between all turns: takes a queue, with what is on its way to it, from one engine to another. Returns false, and
    /// changes nothing, when the other's inbox has no room for that now.
    bool move_rx(std::uint32_t number, unsigned from, unsigned to);
    /// Between all turns: likewise. @pre sender(from).settled(number)
    void move_tx(std::uint32_t number, unsigned from, unsigned to);
    /// Between all turns: the engine with the fewest queues, the first one of these.
    unsigned emptiest_rx() const noexcept;
    unsigned emptiest_tx() const noexcept;

    /// Counts what all engines have received, and where it is, between two turns of all: takes as long as
    /// between_all_turns().
    void count(port_counters& counters);
    /// Any thread, like what follows.
    bool exhausted() const noexcept { return rooms_.front().receiver.exhausted(); } // a capture file has one reader
    bool gone() const noexcept;

 private:
    /// What an engine owns.
    struct room {
        room(const engine_supplies::port_queue& queue, const engine_supplies& supplies, const nic_keys& keys,
             send_pool& pool, const std::string& name);

        nic::sender sender;
        nic::receiver receiver;
        nic::link link;
    };

    void carry_out_from(unsigned first, const std::function<void()>& change);
    void last_turns();

    std::deque<room> rooms_;
    std::mutex everyone_;             ///< one change of all at a time
    std::deque<nic::engine> engines_; ///< end before the first room does: each may have packets for every other
};

} // namespace weftio::nic
