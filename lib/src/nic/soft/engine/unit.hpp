// A unit: one part of what an engine does, such as receiving or sending.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace weftio::nic::soft {

/// Limits of one turn of a unit.
struct turn_budget {
    std::uint32_t entries = std::numeric_limits<std::uint32_t>::max(); ///< most entries to execute in each queue
    bool busy = false;         ///< the engine has moved something in this turn or the previous one
    unsigned moved_before = 0; ///< what all units of the engine have moved in the previous turn
};

/// The state of the link behind a port, as last polled.
struct link_state {
    bool up = true;        ///< frames can leave
    bool given_up = false; ///< the link has been down for longer than a flap
    std::uint32_t mtu = 0; ///< MTU of the interface behind the port; 0: there is none, or it has not been read yet
    bool operator==(const link_state&) const = default;
};

/// A unit belongs to one engine. Everything here is called by the thread that runs that engine's turns, in a turn or in
/// a change between two turns.
class unit {
 public:
    /// Does the work that is ready. Never blocks. Returns how much it moved.
    virtual unsigned turn(const turn_budget& budget) = 0;
    /// Whether the unit has a turn when a kernel pushes in inline mode: true for units that send.
    virtual bool sends() const noexcept { return true; }
    /// UTC time at which the unit needs a turn at the latest; 0: none.
    virtual std::uint64_t deadline_ns() const noexcept { return 0; }
    /// Called before a change between two turns is made.
    virtual void before_change() {}
    /// Called when the engine has no work: sleeps until something that the unit waits for comes, at most `longest`.
    /// @return false: the unit waits for nothing, and has not slept
    virtual bool rest(std::chrono::nanoseconds /*longest*/) noexcept { return false; }
    /// The link has changed since the last call; before the first call it is as a default link_state.
    virtual void link_changed(const link_state&) noexcept {}
    /// The port's device is gone for good: no frame can be sent or received any more, and nothing may wait for one.
    virtual void port_lost() {}
    /// attend(): the engine's thread begins to run turns. leave(): it has run its last turn.
    virtual void attend() noexcept {}
    virtual void leave() noexcept {}

 protected:
    ~unit() = default;
};

} // namespace weftio::nic::soft
