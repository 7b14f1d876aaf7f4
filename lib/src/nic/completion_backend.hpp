// The interface of completion queues: what a NIC must be able to do to complete the entries of several queues in one
// ring.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "nic/backend.hpp"
#include "weftio/completion_overrun.hpp"

namespace weftio::nic {

/// The memory of a completion queue (docs/formats.md, "Completions").
struct completion_memory {
    ring_memory entries;            ///< depth x entry_bytes; each is marked as never written
    std::uint32_t depth = 0;        ///< power of two, at most 2^22
    std::uint32_t entry_bytes = 64; ///< 64, or 128 with the completion in the last 64
    /// Two words that the program writes, big-endian: its consumer index (low 24 bits) and the arming word.
    ring_memory record;
    completion_overrun overrun = completion_overrun::hold;
    std::function<void()> event{}; ///< notifies the program; neither blocks nor throws. Empty: there are no events
};

/// Where the ring of a completion queue has ended: completions with indices from `first` up to `end` are unread.
struct ring_end {
    std::uint32_t first = 0, end = 0;
};

/// Queues that complete here keep it alive. The destructor removes it from the NIC.
class completion_queue {
 public:
    virtual ~completion_queue() = default;
    virtual std::uint32_t number() const noexcept = 0;
    /// See completion_overrun::fail. Any thread.
    virtual bool overrun() const noexcept = 0;
    virtual inline_turn turn() noexcept = 0;
    /// Takes over entries, depth and entry_bytes of `to`, between two turns; the rest stays. The NIC ends the old ring
    /// with a completion of opcode WEFTIO_CQE_OPCODE_RESIZE, whose index is `end`, advances the record's consumer index
    /// by one, and no longer uses the old ring when this returns. The caller copies each unread completion to its index
    /// plus one in the new ring.
    /// @throws weftio::error errc::invalid_argument `to` is too small for the unread completions; errc::in_use the old
    ///   ring is full; errc::closed it has overrun; errc::not_supported the NIC cannot resize. On error nothing has
    ///   changed.
    virtual ring_end resize(const completion_memory& to);
};

} // namespace weftio::nic
