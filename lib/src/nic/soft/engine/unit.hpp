// A unit: one part of what an engine does, such as receiving or sending.
#pragma once

#include <cstdint>
#include <limits>

namespace weftio::nic::soft {

/// Limits of one turn of a unit.
struct turn_budget {
    std::uint32_t entries = std::numeric_limits<std::uint32_t>::max(); ///< most entries to execute, for each queue
    bool busy = false; ///< the engine has moved something in this turn or in the turn before
};

/// A unit belongs to one engine. The thread that runs the turns of that engine calls everything here, or a change
/// between two turns does.
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
    /// attend(): the thread of the engine starts to run turns. leave(): it has run its last turn.
    virtual void attend() noexcept {}
    virtual void leave() noexcept {}

 protected:
    ~unit() = default;
};

} // namespace weftio::nic::soft
