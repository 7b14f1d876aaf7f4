// The seam of completion queues: what a NIC must be able to do that completes the entries of several queues in one ring.
#pragma once

#include <cstdint>
#include <memory>

#include "nic/backend.hpp"
#include "weftio/completion_overrun.hpp"

namespace weftio::nic {

/// The memory of a completion queue (docs/formats.md, "Completions").
struct completion_memory {
    ring_memory entries;            ///< depth x entry_bytes; each is marked as never written
    std::uint32_t depth = 0;        ///< power of two, at most 2^22
    std::uint32_t entry_bytes = 64; ///< 64, or 128 of which the last 64 are used
    /// Two words that the program writes, big-endian: its consumer index, low 24 bits; its wish to be told.
    ring_memory record;
    completion_overrun overrun = completion_overrun::hold;
    std::shared_ptr<const int>
        event{}; ///< eventfd that tells the program; it stays open as long as this. nullptr: none
};

/// Where the ring of a completion queue has ended, by indices: completions from `first` up to `end` were not consumed.
struct ring_end {
    std::uint32_t first = 0, end = 0;
};

/// Queues that complete there keep it alive. The destructor takes it from the NIC.
class completion_queue {
 public:
    virtual ~completion_queue() = default;
    virtual std::uint32_t number() const noexcept = 0;
    /// See completion_overrun::fail. Any thread.
    virtual bool overrun() const noexcept = 0;
    virtual inline_turn turn() noexcept = 0;
    /// Takes entries, depth and entry_bytes of `to`, between two turns; the rest stays. The NIC ends the old ring with a
    /// completion of opcode WEFTIO_CQE_OPCODE_RESIZE, whose index is `end`, moves the consumer index of the record on by one,
    /// and is out of the old ring when this returns. The caller copies each completion that was not consumed to its index
    /// plus one in the new ring.
    /// @throws weftio::error errc::invalid_argument more are not consumed than `to` has places; errc::in_use the old ring
    ///         is full; errc::closed it has overrun; errc::not_supported the NIC cannot. Nothing has changed then.
    virtual ring_end resize(const completion_memory& to);
};

} // namespace weftio::nic
