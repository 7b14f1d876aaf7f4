// Receive entries of a queue pair, or of a queue that several share, as a responder sees them.
#pragma once

#include <cstdint>
#include <span>

#include "roce/transport.hpp"

namespace weftio::roce {

/// What filled a receive entry.
enum class filled_by : std::uint8_t { send, send_immediate, send_invalidate, write_immediate };

struct receive_completion {
    refusal result = refusal::none; ///< none, flushed, the result of deliver(), lost_memory or not_invalidated
    filled_by by = filled_by::send;
    std::uint32_t bytes = 0;            ///< of the whole message; 0 after an error
    std::uint32_t immediate_or_key = 0; ///< immediate, or the key that was invalidated
    bool solicited = false;
    std::uint32_t source = 0; ///< of a datagram: weftio_cqe::flags_rqpn_be, in host byte order
};

enum class taken : std::uint8_t {
    entry,  ///< the oldest posted entry is now the current one
    none,   ///< no entry is posted
    refused ///< the ring is broken: its doorbell record claims more entries than it holds
};

/// At most one entry is current: from take() to complete() or give_back(). Called by one thread; never blocks.
class receive_entries {
 public:
    /// Makes the oldest posted entry the current one.
    virtual taken take() = 0;
    /// Writes bytes of a message to the memory of the current entry, `offset` bytes after its start.
    /// @return none, receive_too_short (the entry is too small), or what is wrong with its memory. On error nothing is
    ///   written; if memory has gone, a part may be written.
    virtual refusal deliver(std::uint32_t offset, std::span<const std::uint8_t> bytes) = 0;
    /// Completes the current entry.
    virtual void complete(const receive_completion& completion) = 0;
    /// Makes the current entry the oldest posted one again. Its memory may have been written.
    virtual void give_back() = 0;
    /// Credits for the peer, as the syndrome of an ACK; net::no_credits when entries are not counted.
    virtual std::uint8_t credits() const noexcept { return net::no_credits; }

 protected:
    ~receive_entries() = default;
};

} // namespace weftio::roce
