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

/// Bytes of a message that a packet needs.
struct wanted_bytes {
    std::uint32_t count = 0;
    std::uint32_t ahead = 0;   ///< bytes of the same message that follow them in memory: later packets need those
    std::uint32_t message = 0; ///< the sequence number of its first packet
};

/// Copies that end later, in the order in which they were begun. Whoever sends packets waits for those that were begun
/// before. One thread only; never blocks.
class staged_memory {
 public:
    /// Whether a device copies to and from these bytes.
    virtual bool reaches(const keys::located& memory) const noexcept = 0;
    /// Begins to copy `bytes` there. They may change as soon as this returns.
    /// @return none, not_now, or out_of_reach: no device copies there
    virtual refusal write(const keys::located& to, std::span<const std::uint8_t> bytes) = 0;
    /// Begins to copy what.count bytes from there, and perhaps some ahead, unless an earlier call has. Returns in
    /// `bytes` where they will be, for the sink of packets only.
    /// @pre the memory is at least what.count + what.ahead bytes long
    /// @return none or out_of_reach; without room the sink takes no packet with these bytes
    virtual refusal read(const keys::located& from, const wanted_bytes& what, std::span<const std::uint8_t>& bytes) = 0;
    /// The next `count` bytes of the READ that the responder answers, and how many more may be fetched with them.
    virtual wanted_bytes part_of_read(std::uint32_t count) = 0;

 protected:
    ~staged_memory() = default;
};

} // namespace weftio::roce
