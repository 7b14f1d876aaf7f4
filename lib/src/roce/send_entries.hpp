// Entries of a send queue as a requester sees them.
#pragma once

#include <cstdint>
#include <span>

#include "roce/transport.hpp"

namespace weftio::roce {

/// What one entry asks for.
struct send_request {
    roce_operation operation =
        roce_operation::none;                      ///< send, write, read_request, compare_swap, fetch_add; none: a NOP
    net::roce_extra extra = net::roce_extra::none; ///< of send and write
    bool solicited = false;
    bool fence = false; ///< waits until all READs and atomics before it have been answered
    /// Another entry has been committed behind it, and it is no NOP: an ACK is asked for there, and not here.
    bool more = false;
    std::uint8_t blocks = 1; ///< of 64 bytes: the next entry is so far behind
    std::uint32_t bytes = 0; ///< of the message: at most 2^31; 8 of an atomic
    std::uint32_t immediate_or_key = 0;
    std::uint32_t remote_key = 0;
    std::uint64_t remote_address = 0;
    std::uint64_t swap_or_add = 0;
    std::uint64_t compare = 0;
    /// Sum of all bytes of the entry, inline data too: an entry that has changed before a repeat has another one.
    std::uint32_t fingerprint = 0;
};

enum class entry_state : std::uint8_t { none, ready };

/// The queue keeps entries until they complete, and the requester no copy of them. Called by one thread; never blocks.
class send_entries {
 public:
    /// Reads the entry at `index` from memory, each time anew.
    /// @param request  `blocks` is right also when the entry is refused
    /// @param refused  why the entry cannot be executed; success when it can
    /// @return none: no entry has been committed there
    virtual entry_state read(std::uint32_t index, send_request& request, status& refused) = 0;
    /// Finds local bytes [offset, offset + bytes) of the message of the entry that was read last.
    /// @return success, or local_protection
    virtual status gather(std::uint32_t index, std::uint32_t offset, std::uint32_t bytes, pieces& found) = 0;
    /// The sink could not read what gather() has found: packet_sink::payload_gone(). @return how the entry is to end
    virtual status lose(std::uint32_t) noexcept { return status::local_protection; }
    /// Writes bytes of an answer, `offset` bytes behind its begin, to the local memory of an entry. An atomic has the 8
    /// bytes of the word as they were in the peer's memory on a host of this byte order.
    /// @return success, local_protection, or local_operation when the entry is no longer the one with this fingerprint;
    ///         of local_protection a part may be written, when memory is not there
    virtual status place(std::uint32_t index, std::uint32_t fingerprint, std::uint32_t offset,
                         std::span<const std::uint8_t> bytes) = 0;
    /// The entry at `index` has ended. Entries end in their order.
    virtual void complete(std::uint32_t index, status result, std::uint32_t bytes) = 0;

 protected:
    ~send_entries() = default;
};

} // namespace weftio::roce
