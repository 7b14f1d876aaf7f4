// A shared receive queue (SRQ of verbs): one ring of receive entries for the messages of many queue pairs.
//
// A queue pair takes the oldest entry when a message begins, and completes it in its own completion queue. So the
// memory for receives follows the traffic, not the number of peers.
#pragma once

#include <cstdint>
#include <memory>

#include "weftio/completion_queue.hpp"
#include "weftio/detail/internals.hpp"
#include "weftio/rdma.hpp"
#include "weftio/rdma_state.hpp"

namespace weftio {

struct shared_receives_options {
    std::uint32_t entries = 64; ///< a power of two, 2 to 32768, of which one is always free
    std::uint32_t stride =
        32; ///< size of an entry in bytes; a power of two, 32 to 512: a link, then pointers of 16 bytes
    protection_domain domain{}; ///< entries may name regions of this domain only, whatever that of the queue pair is
    /// entries x stride bytes, at a multiple of 16. The caller has linked the entries (docs/formats.md, "Shared
    /// receives").
    memory_place ring{};
    /// 4 bytes, at a multiple of 4: number of entries posted, a big-endian word of which the low 16 bits count. 0 at
    /// the beginning.
    memory_place record{};
};

/// A ring whose entries form a linked list: those that are posted come first, in the order in which queue pairs take
/// them. Whoever posts links a free entry behind them and counts it in the record (docs/formats.md, "Shared receives").
///
/// - Without a posted entry, a message waits (RC: RNR NAK) or is lost (UC).
/// - An entry whose key or memory is wrong fails the queue pair that has taken it, and no other.
/// - A queue pair that fails completes the one entry that it has taken, if any, and leaves the others. One that is
///   reset or destroyed gives it back: the next message takes it.
///
/// - Ownership: move-only; keeps the port alive. Queue pairs keep the ring alive, so the object may be destroyed before
///   them.
/// - Threads: create, move and destroy from one thread at a time; the rest from any.
class shared_receives {
 public:
    /// @param device  the device whose kernels may post
    /// @throws weftio::error errc::invalid_argument an option that its comment excludes; errc::not_reachable the NIC
    ///         cannot read the memory; errc::not_supported the port's NIC has no RDMA; errc::out_of_memory
    shared_receives(const rdma_device& at, const device& device, shared_receives_options options = {});
    shared_receives(shared_receives&&) noexcept;
    shared_receives& operator=(shared_receives&&) noexcept;
    ~shared_receives();

    std::uint32_t number() const noexcept; ///< SRQ number
    void* ring() const noexcept;           ///< device address of entry 0
    void* record() const noexcept;         ///< device address

    /// Counts once in shared_receives_standing::limits_reached as soon as fewer than `limit` entries are waiting;
    /// then the limit is 0, which is none (IBTA, 10.2.9.2: SRQ limit reached). Blocks for up to one iteration of the
    /// engine.
    /// @throws weftio::error errc::invalid_argument `limit` is not less than the number of entries
    void set_limit(std::uint32_t limit);
    /// Blocks for up to one iteration of the engine.
    shared_receives_standing standing() const;

 private:
    friend detail::internals;
    struct state;
    std::shared_ptr<state> state_;
};

} // namespace weftio
