// Memory that the CPU cannot access, as a responder sees it: copies reach it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "keys/resolve.hpp"
#include "weftio/refusal.hpp"

namespace weftio::roce {

/// No reason: there is no room for a copy now, and nothing has changed. The same call succeeds later. Nobody outside
/// the transport sees this value.
inline constexpr refusal not_now{0xff};

/// Copies that end later, in the order in which they were begun. Whoever sends packets waits for those that were begun
/// before. One thread only; never blocks.
class staged_memory {
 public:
    /// Whether a device copies to and from these bytes.
    virtual bool reaches(const keys::located& memory) const noexcept = 0;
    /// Begins to copy `bytes` there. They may change as soon as this returns.
    /// @return none, not_now, or out_of_reach: no device copies there
    virtual refusal write(const keys::located& to, std::span<const std::uint8_t> bytes) = 0;
    /// Begins to copy `count` bytes from there. Returns in `bytes` where they will be, for the sink of packets only.
    /// @return none or out_of_reach; without room the sink takes no packet with these bytes
    virtual refusal read(const keys::located& from, std::size_t count, std::span<const std::uint8_t>& bytes) = 0;

 protected:
    ~staged_memory() = default;
};

} // namespace weftio::roce
