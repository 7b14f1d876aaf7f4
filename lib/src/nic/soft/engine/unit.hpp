// One part of what an engine does: receiving, sending, a transport.
#pragma once

#include <cstdint>
#include <limits>

namespace weftio::nic {

/// What a unit may do in a turn.
struct turn_budget {
    std::uint32_t entries = std::numeric_limits<std::uint32_t>::max(); ///< of one queue
    bool busy = false; ///< the engine has moved something, in this turn or in the one before
};

/// Owned by one engine: everything is called by whoever runs its turns, or between two of them.
class unit {
 public:
    /// Does what there is to do, and never waits. Returns how much it moved.
    virtual unsigned turn(const turn_budget& budget) = 0;
    /// Whether it has a turn when a kernel pushes in inline mode: it has to do with sending.
    virtual bool sends() const noexcept { return true; }
    /// When it wants a turn at the latest, in UTC; 0: it does not matter.
    virtual std::uint64_t deadline_ns() const noexcept { return 0; }
    /// A change is about to be made between two turns.
    virtual void before_change() {}
    /// The engine's thread begins, and ends, to run turns.
    virtual void attend() noexcept {}
    virtual void leave() noexcept {}

 protected:
    ~unit() = default;
};

} // namespace weftio::nic
