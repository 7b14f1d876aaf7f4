// Completion queues: one ring in which the NIC completes the work of several queues.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "weftio/completion_overrun.hpp"
#include "weftio/detail/internals.hpp"
#include "weftio/device.hpp"
#include "weftio/device/completion_queue.h"
#include "weftio/port.hpp"

namespace weftio {

/// Bytes of the caller's, for a ring or a record: of memory that a device has allocated or adopted, from `offset` on.
/// The memory stays as long as what is made of it; adopted bytes are their owner's, and must stay, too.
struct memory_place {
    const memory* of = nullptr; ///< nullptr: the object allocates its own
    std::size_t offset = 0;
};

struct completion_queue_options {
    std::uint32_t entries = 1024;   ///< a power of two, 1 to 2^22
    std::uint32_t entry_bytes = 64; ///< 64, or 128 of which the last 64 are used
    completion_overrun overrun = completion_overrun::hold;
    /// entries x entry_bytes bytes, at a multiple of 64. The caller has marked each entry as never written: byte 63 of
    /// its last 64 is 0xf1.
    memory_place ring{};
    /// 8 bytes, at a multiple of 4: the consumer index, which is 0, and the arming word, which asks for nothing before it
    /// changes (docs/formats.md, "Completions").
    memory_place record{};
};

/// One completion, by value.
struct completion {
    std::uint32_t queue = 0;       ///< number of the queue whose work it is
    std::uint32_t user_index = 0;  ///< of that queue: queue_pair_options::user_index
    std::uint8_t opcode = 0;       ///< WEFTIO_CQE_OPCODE_*
    std::uint8_t entry_opcode = 0; ///< WEFTIO_OPCODE_* of a send entry; 0 of a receive
    std::uint16_t index = 0;       ///< of the entry's first block, or of the receive, low 16 bits
    std::uint32_t bytes = 0;
    std::uint32_t immediate = 0; ///< host byte order; or the key that was invalidated
    bool solicited = false;
    std::uint8_t syndrome = 0; ///< 0: it succeeded
    std::uint8_t reason = 0;   ///< of a failure, finer than the syndrome
    std::uint64_t time_ns = 0; ///< UTC; 0 of a failure

    bool failed() const noexcept { return syndrome != 0; }
};

/// A ring of mlx5 completions, which kernels, the host, or code that was not written for Weftio polls: one reader at a
/// time.
///
/// - Ownership: move-only; keeps its port and its device alive. Queues that complete there keep the ring alive, so it
///   may be destroyed before them.
/// - Threads: create, move and destroy from one thread at a time; poll() and arm() from one at a time; the rest from
///   any.
class completion_queue {
 public:
    /// @param device  whose kernels may poll
    /// @throws weftio::error errc::invalid_argument an option that its comment excludes; errc::not_reachable the NIC
    ///         cannot write the memory; errc::not_supported the port's NIC has no completion queues, or the port has
    ///         several engines; errc::out_of_memory
    completion_queue(const port& port, const device& device, completion_queue_options options = {});
    completion_queue(completion_queue&&) noexcept;
    completion_queue& operator=(completion_queue&&) noexcept;
    ~completion_queue();

    /// For kernels: pass the queue itself to device::launch.
    weftio_dev_completion_queue* handle() const noexcept;
    weftio_dev_control* control() const noexcept;
    std::uint32_t number() const noexcept; ///< at its port
    std::uint32_t entries() const noexcept;
    void* ring() const noexcept;   ///< device address of the first entry
    void* record() const noexcept; ///< device address of the record

    /// The host polls: reads the completions that have come, `into.size()` at most, and consumes them. Returns how many.
    /// Never blocks; in inline mode it runs the engine once.
    /// With completion_overrun::ignore it stops where completions were overwritten: consume in time.
    /// @pre neither a kernel nor other code polls the queue
    std::size_t poll(std::span<completion> into);

    /// Asks to be told, once, of a completion that poll() has not read and that was not there when the program was last
    /// told. One that has come already tells at once, and so does an overrun. Never blocks.
    /// The last call counts: arm(true) takes back arm(false).
    /// @param solicited_only  tell only of what the peer asked to tell of, and of failures
    /// @pre as poll()
    void arm(bool solicited_only = false);
    /// A descriptor that becomes readable then, for poll(2) and the like; the caller reads 8 bytes from it, which resets
    /// it. It is closed with the queue and those that complete there.
    int descriptor() const noexcept;
    /// Gives the queue another ring, between two turns of the NIC; no completion is lost. Blocks as long as one turn, and
    /// as the copy of what is not consumed.
    ///
    /// The old ring keeps its completions and ends with one of opcode WEFTIO_CQE_OPCODE_RESIZE, which takes an index. So the
    /// consumer index of the record moves on by one, and each completion that is not consumed lies in the new ring too, at
    /// its index plus one: poll() and kernels that are launched later go on there, and so can code that polls by itself,
    /// or it copies them as libmlx5 does. When it returns, the NIC is out of the old ring, whose memory may end.
    /// @param entries, entry_bytes, ring  as in completion_queue_options
    /// @pre nobody polls the queue or calls entries() or ring() meanwhile; the record has what was consumed
    /// @throws weftio::error errc::invalid_argument an option that its comment excludes, or `entries` is less than what is
    ///         not consumed; errc::in_use the old ring is full, so its end has no place; errc::closed it has overrun;
    ///         errc::not_reachable, errc::out_of_memory as the constructor; errc::not_supported the port's NIC cannot.
    ///         Nothing has changed then.
    void resize(std::uint32_t entries, std::uint32_t entry_bytes = 64, memory_place ring = {});

    /// Whether the queue overran, with completion_overrun::fail: it gets no more completions. Any thread; never blocks.
    bool overrun() const noexcept;

 private:
    friend detail::internals;
    struct state;
    std::shared_ptr<state> state_;
};

} // namespace weftio
