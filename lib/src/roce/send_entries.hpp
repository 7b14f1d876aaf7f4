// Entries of a send queue, as a requester sees them.
#pragma once

#include <cstdint>
#include <span>

#include "roce/transport.hpp"

namespace weftio::roce {

/// One message: what its entry asks for, read once, and its place among the messages in flight. The data segments stay
/// in the ring, because a message may have 62 of them; they are resolved again for each packet.
struct message {
    std::uint64_t remote_address = 0;
    std::uint64_t swap_or_add = 0;
    std::uint64_t compare = 0;
    std::uint32_t entry = 0; ///< index of the entry
    std::uint32_t bytes = 0; ///< length of the message: at most 2^31; 8 for an atomic
    std::uint32_t remote_key = 0;
    std::uint32_t immediate_or_key = 0;

    std::uint32_t first_psn = 0;
    std::uint32_t packets = 0;        ///< sequence numbers that the message takes; 0: a local operation
    std::uint32_t packets_before = 0; ///< request packets of all earlier messages, free-running; a READ is one
    std::uint32_t reads_before = 0;   ///< READs and atomics among the earlier messages, free-running

    /// send, write, read_request, compare_swap, fetch_add; none: a local operation, such as a NOP.
    roce_operation operation = roce_operation::none;
    net::roce_extra extra = net::roce_extra::none; ///< of send and write
    bool solicited : 1 = false;
    bool fence : 1 = false; ///< waits for the answers of all earlier READs and atomics
    /// When the entry was read, another one followed that is not a NOP: that one asks for an ACK instead of this one.
    bool more : 1 = false;
    bool executed : 1 = false;       ///< the local operation is done
    bool in_parts : 1 = false;       ///< a READ that is requested in parts
    std::uint8_t blocks = 1;         ///< length in blocks of 64 bytes: the next entry is at entry + blocks
    std::uint8_t segments = 1;       ///< length in segments of 16 bytes
    std::uint8_t first_data = 1;     ///< index of the first data segment
    std::uint8_t opcode = 0;         ///< of the entry
    refusal refused = refusal::none; ///< not none: the message fails the queue when it becomes the oldest

    /// Whether the message sends no packet.
    bool is_local() const noexcept { return operation == roce_operation::none; }
    /// Whether the message is a READ or an atomic, which completes with its result and not with an ACK.
    bool wants_result() const noexcept
    {
        return operation == roce_operation::read_request || operation == roce_operation::compare_swap ||
               operation == roce_operation::fetch_add;
    }
    std::uint32_t request_packets() const noexcept { return wants_result() ? 1 : packets; }
};
static_assert(sizeof(message) <= 64, "a busy queue has 128 of them");

/// The queue keeps entries until they complete. One thread only; never blocks.
class send_entries {
 public:
    /// Reads the entry at `index`, once: sets the fields of `out` that come from the entry, which are those up to
    /// `immediate_or_key`, without `entry`, and those from `operation` on, without `executed` and `in_parts`.
    /// `refused` says why the entry cannot be executed; `blocks` is right even then.
    /// @return false: no entry is committed at `index`
    virtual bool read(std::uint32_t index, message& out) = 0;
    /// Finds the local bytes [offset, offset + bytes) of a message. @pre `found` is empty
    /// @return none, what is wrong with their memory, or changed: the entry no longer names so many bytes
    virtual refusal gather(const message& of, std::uint32_t offset, std::uint32_t bytes, pieces& found) = 0;
    /// Writes a part of an answer, `offset` bytes after its start, to the local memory of a message. The answer of an
    /// atomic is the old value of the word, 8 bytes in the byte order of this host.
    /// @return as gather()
    virtual refusal scatter(const message& of, std::uint32_t offset, std::span<const std::uint8_t> bytes) = 0;
    /// Executes a local operation. Called once, in the order of the entries.  @return why the entry fails, or none
    virtual refusal execute(const message& of) = 0;
    /// Whether the last local operation is in force everywhere. Until then it does not complete, and no later entry
    /// begins.
    virtual bool in_force() { return true; }
    /// The message is done. Messages end in order.
    virtual void end(const message& done, refusal result) = 0;

 protected:
    ~send_entries() = default;
};

} // namespace weftio::roce
