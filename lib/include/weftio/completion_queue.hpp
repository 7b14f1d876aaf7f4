// Completion queues: one ring in which the NIC completes the work of several queues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "weftio/completion_overrun.hpp"
#include "weftio/detail/internals.hpp"
#include "weftio/device.hpp"
#include "weftio/device/completion_queue.h"
#include "weftio/port.hpp"

namespace weftio {

/// Memory of the caller for a ring or a record: bytes from `offset` on of memory that a device has allocated or
/// adopted. The object that uses it keeps the memory alive; adopted memory belongs to the caller and must outlive the
/// object.
struct memory_place {
    const memory* of = nullptr; ///< nullptr: the object allocates its own
    std::size_t offset = 0;
};

struct completion_queue_options {
    std::uint32_t entries = 1024;   ///< a power of two, 1 to 2^22
    std::uint32_t entry_bytes = 64; ///< 64; or 128, of which the NIC uses the last 64
    completion_overrun overrun = completion_overrun::hold;
    /// entries x entry_bytes bytes, at a multiple of 64. The caller has marked each entry as never written: byte 63 of
    /// its last 64 bytes is 0xf1.
    memory_place ring{};
    /// 8 bytes, at a multiple of 4: the consumer index, initially 0, and the arming word, whose initial value requests
    /// no event (docs/formats.md, "Completions").
    memory_place record{};
    bool events = true; ///< false: arm() has no effect
    /// Called on each event that arm() requests, instead of descriptor(), which is -1 then. Called by the thread of the
    /// engine, or in inline mode by the kernel's: must not block, throw, or call Weftio. Not called any more once the
    /// queue and the queues that complete in it are destroyed.
    std::function<void()> on_event{};
};

/// One completion, by value.
struct completion {
    std::uint32_t queue = 0;       ///< number of the queue that completed an entry
    std::uint32_t user_index = 0;  ///< queue_pair_options::user_index of that queue
    std::uint8_t opcode = 0;       ///< WEFTIO_CQE_OPCODE_*
    std::uint8_t entry_opcode = 0; ///< WEFTIO_OPCODE_* of a send entry; 0 for a receive
    std::uint16_t index = 0;       ///< index of the entry's first block, or of the receive; low 16 bits
    std::uint32_t bytes = 0;
    std::uint32_t immediate = 0;    ///< immediate, or the key that was invalidated; host byte order
    std::uint32_t source_queue = 0; ///< UD: number of the queue pair that has sent the datagram
    bool solicited = false;
    std::uint8_t syndrome = 0; ///< enum weftio_syndrome; 0: success
    std::uint8_t reason = 0;   ///< weftio::refusal of a failure, finer than the syndrome
    std::uint64_t time_ns = 0; ///< UTC; 0 for a failure

    bool failed() const noexcept { return syndrome != 0; }
};

/// A ring of mlx5 completions. One reader at a time polls it: a kernel, the host, or code that was not written for
/// Weftio.
///
/// - Ownership: move-only; keeps its port and its device alive. Queues that complete in it keep the ring alive, so the
///   object may be destroyed before them.
/// - Threads: create, move and destroy from one thread at a time; poll() and arm() from one thread at a time; the rest
///   from any thread.
class completion_queue {
 public:
    /// @param device  the device whose kernels may poll
    /// @throws weftio::error errc::invalid_argument an option that its comment excludes; errc::not_reachable the NIC
    ///         cannot write the memory; errc::not_supported the port's NIC has no completion queues;
    ///         errc::out_of_memory
    completion_queue(const port& port, const device& device, completion_queue_options options = {});
    completion_queue(completion_queue&&) noexcept;
    completion_queue& operator=(completion_queue&&) noexcept;
    ~completion_queue();

    /// For kernels: pass the queue itself to device::launch.
    weftio_dev_completion_queue* handle() const noexcept;
    weftio_dev_control* control() const noexcept;
    std::uint32_t number() const noexcept; ///< number of the queue at its port
    std::uint32_t entries() const noexcept;
    void* ring() const noexcept;   ///< device address of the first entry
    void* record() const noexcept; ///< device address of the record

    /// Polls from the host: reads up to `into.size()` completions and consumes them. Returns how many. Never blocks; in
    /// inline mode it runs the engine once. With completion_overrun::ignore it returns no completions behind one that
    /// was overwritten: consume in time.
    /// @pre neither a kernel nor other code polls the queue
    std::size_t poll(std::span<completion> into);

    /// Requests one event on descriptor(), as ibv_req_notify_cq() does: for the next completion that poll() has not
    /// read and no earlier event was about. If such a completion is there already, or the queue has overrun, the
    /// event comes at once. Never blocks. The last call counts: arm(true) replaces arm(false).
    /// @param solicited_only  only for completions with the solicited bit of the peer, and for failures
    /// @pre neither a kernel nor other code polls the queue
    void arm(bool solicited_only = false);
    /// An eventfd that becomes readable on the event that arm() requests, for poll(2) and the like. The caller reads 8
    /// bytes from it, which resets it. It is closed with the queue and the queues that complete in it. -1: there is
    /// none (completion_queue_options::events, on_event).
    int descriptor() const noexcept;
    /// Replaces the ring, between two iterations of the NIC; no completion is lost. Blocks for up to one iteration of
    /// the engine, and for the copy of completions that are not consumed.
    ///
    /// The old ring keeps its completions and ends with one of opcode WEFTIO_CQE_OPCODE_RESIZE, which takes an index.
    /// The consumer index in the record therefore advances by one, and each completion that is not consumed is also in
    /// the new ring, at its index plus one. poll(), and kernels that are launched later, continue in the new ring. Code
    /// that polls by itself may do so too, or copy the completions itself as libmlx5 does. After the call the NIC no
    /// longer uses the old ring, whose memory may be freed.
    /// @param entries, entry_bytes, ring  as in completion_queue_options
    /// @pre nobody polls the queue or calls entries() or ring() meanwhile; the consumer index in the record is up to
    ///      date
    /// @throws weftio::error errc::invalid_argument a parameter has a value that the comment of its option excludes, or
    ///         `entries` is less than the number of completions that are not consumed; errc::in_use the old ring is
    ///         full and has no slot for its last completion; errc::closed the queue has overrun; errc::not_reachable,
    ///         errc::out_of_memory as the constructor; errc::not_supported the port's NIC cannot resize. On error
    ///         nothing has changed.
    void resize(std::uint32_t entries, std::uint32_t entry_bytes = 64, memory_place ring = {});

    /// Whether the queue has overrun with completion_overrun::fail: it then gets no more completions. Any thread; never
    /// blocks.
    bool overrun() const noexcept;

 private:
    friend detail::internals;
    struct state;
    std::shared_ptr<state> state_;
};

} // namespace weftio
