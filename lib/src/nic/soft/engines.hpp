// The engines of a port, and the map from queues to engines.
#pragma once

#include <algorithm>
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
#include "nic/soft/rdma/rdma_unit.hpp"
#include "nic/soft/receive/receiver.hpp"
#include "nic/soft/send/sender.hpp"
#include "nic/soft/work/completion_unit.hpp"
#include "weftio/options.hpp"

namespace weftio::nic::soft {

/// Number of the engine that a queue is at. It changes only while every engine of the port is between two turns. Any
/// thread may read it.
using home = std::atomic<unsigned>;

/// What a port passes to the engines that it makes.
struct engine_supplies {
    struct engine_queue {
        dpdk::port_queue port_queue;
        slot_pool* pool = nullptr; ///< pool from which the driver takes slots; nullptr: it takes none
    };
    std::vector<engine_queue> queues; ///< one port queue for each engine
    /// A packet waits when its queue is full, instead of being dropped.
    bool hold = false;
    /// Capture file behind the port; empty when there is none.
    std::string capture;
    unsigned slot = 0;     ///< of the port on its wire; 0 without one
    std::string interface; ///< network interface behind the port; empty: there is none (see port_watch)
    std::string name;
};

/// Engines that share nothing during a turn: each has a receive and a send queue of the port, a receiver and a sender.
///
/// Some state is read by several engines during their turns: rules, and the engine of each queue. This state changes
/// only while all engines are between two turns. Keys may be added at any time, but are removed only between turns.
///
/// The number of a queue is unique at the port, whichever engine the queue is at.
class engines final : core::moving {
 public:
    /// @throws weftio::error see the constructor of engine
    engines(const engine_supplies& supplies, const keys::nic_keys& keys, send_pool& pool, const port_options& options);
    ~engines() { leave(); }

    unsigned count() const noexcept { return static_cast<unsigned>(engines_.size()); }
    nic::soft::engine& engine(unsigned number) noexcept { return engines_[number]; }
    nic::soft::receiver& receiver(unsigned engine) noexcept
    {
        return units_[engine].receiver;
    }                                                                                     ///< between two turns only
    nic::soft::sender& sender(unsigned engine) noexcept { return units_[engine].sender; } ///< between two turns only
    rdma_unit& rdma(unsigned engine) noexcept { return units_[engine].rdma; }             ///< between two turns only
    completion_unit& completions(unsigned engine) noexcept
    {
        return units_[engine].completions;
    } ///< between two turns only
    /// Who receives RoCE packets. It changes between two turns of all engines only.
    roce_directory& directory() noexcept { return directory_; }
    /// Whether each of them sleeps: see engine::sleeps().
    bool sleep() noexcept
    {
        return std::ranges::all_of(engines_, [](nic::soft::engine& each) { return each.sleeps(); });
    }
    bool have_threads() const noexcept { return engines_.front().has_thread(); }
    bool stand_still() noexcept override;
    /// Inline mode: runs one turn of each engine. Returns how much they moved.
    unsigned turn();

    /// Runs `change` while no engine of the port is in a turn. Throws what `change` throws. Blocks as
    /// engine::between_turns does, for each engine.
    template <class Change>
    void between_all_turns(Change&& change)
    {
        if (count() == 1)
            return engines_.front().between_turns(change);
        std::scoped_lock one_at_a_time(everyone_);
        // Captures one reference, so std::function allocates nothing: destructors may call this.
        carry_out_from(0, [&] { change(); });
    }
    /// Runs `change` between two turns of the queue's engine, even if the queue moves meanwhile. Blocks as
    /// engine::between_turns does.
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
    /// Calls `try_once` again and again until it returns true, at most for `bound`. In inline mode the calling thread
    /// runs turns between the calls. Returns whether `try_once` returned true.
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

    /// Adds a receive queue at `engine`. Returns its number, the lowest free one. The memory of the ring must stay
    /// until remove_rx().
    /// @pre every engine is between two turns
    std::uint32_t add_rx(unsigned engine, const rx_ring& ring);
    void remove_rx(unsigned engine, std::uint32_t number) noexcept;
    std::uint32_t add_tx(unsigned engine, const tx_ring& ring);
    /// Moves a receive queue, with the packets that are on their way to it, to another engine. Returns false, and
    /// changes nothing, when the inbox of that engine has no room for these packets now.
    /// @pre every engine is between two turns
    bool move_rx(std::uint32_t number, unsigned from, unsigned to);
    /// Moves a send queue to another engine.
    /// @pre every engine is between two turns; sender(from).driver_holds_none(number)
    void move_tx(std::uint32_t number, unsigned from, unsigned to);
    /// The engine with the fewest queues; among equals, the one with the lowest number.
    /// @pre every engine is between two turns
    unsigned emptiest_rx() const noexcept;
    unsigned emptiest_tx() const noexcept;

    /// Adds to `counters` what all engines have received and where those packets are. Blocks as between_all_turns()
    /// does.
    void count(port_counters& counters);
    /// exhausted() and gone() may be called by any thread. A capture file has one reader, the first engine.
    bool exhausted() const noexcept { return units_.front().receiver.exhausted(); }
    bool gone() const noexcept;

 private:
    /// The units of one engine.
    struct engine_units {
        engine_units(const engine_supplies::engine_queue& queue, const engine_supplies& supplies,
                     const keys::nic_keys& keys, send_pool& pool, roce_directory& directory, turn_rounds& rounds,
                     bool rdma_by_packet, const std::string& name);

        nic::soft::sender sender;
        nic::soft::receiver receiver;
        rdma_unit rdma;
        completion_unit completions;
        nic::soft::link link;
    };

    void note_rounds();
    void carry_out_from(unsigned first, const std::function<void()>& change);
    void last_turns();

    roce_directory directory_;
    turn_rounds rounds_;
    std::deque<engine_units> units_;
    std::mutex everyone_;                   ///< held while all engines stand between two turns
    std::deque<nic::soft::engine> engines_; ///< destroyed before units_: each may have packets for any of them
};

} // namespace weftio::nic::soft
