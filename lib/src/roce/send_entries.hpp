// Entries of a send queue, as a requester sees them.
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
    bool fence = false; ///< waits for the answers of all earlier READs and atomics
    /// Another committed entry follows, and it is not a NOP: that one asks for an ACK instead of this one.
    bool more = false;
    std::uint8_t blocks = 1; ///< length in blocks of 64 bytes: the next entry is at index + blocks
    std::uint32_t bytes = 0; ///< length of the message: at most 2^31; 8 for an atomic
    std::uint32_t immediate_or_key = 0;
    std::uint32_t remote_key = 0;
    std::uint64_t remote_address = 0;
    std::uint64_t swap_or_add = 0;
    std::uint64_t compare = 0;
    /// Sum of all bytes of the entry with its inline data: shows whether the entry has changed before a retry.
    std::uint32_t fingerprint = 0;
};

enum class entry_state : std::uint8_t { none, ready };

/// The queue keeps entries until they complete; the requester keeps no copy. One thread only; never blocks.
class send_entries {
 public:
    /// Reads the entry at `index` from memory again.
    /// @param request  `blocks` is right even when the entry is refused
    /// @param refused  why the entry cannot be executed; none when it can
    /// @return none: no entry is committed at `index`
    virtual entry_state read(std::uint32_t index, send_request& request, refusal& refused) = 0;
    /// Finds the local bytes [offset, offset + bytes) of the message of the entry that was read last.
    /// @return none, or what is wrong with its memory
    virtual refusal gather(std::uint32_t index, std::uint32_t offset, std::uint32_t bytes, pieces& found) = 0;
    /// Writes a part of an answer, `offset` bytes after its start, to the local memory of an entry. The answer of an
    /// atomic is the old value of the word, 8 bytes in the byte order of this host.
    /// @return none; what is wrong with its memory; or changed: the entry no longer has this fingerprint
    virtual refusal deliver(std::uint32_t index, std::uint32_t fingerprint, std::uint32_t offset,
                            std::span<const std::uint8_t> bytes) = 0;
    /// The entry at `index` is done. Entries end in order.
    virtual void end(std::uint32_t index, refusal result, std::uint32_t bytes) = 0;

 protected:
    ~send_entries() = default;
};

} // namespace weftio::roce
