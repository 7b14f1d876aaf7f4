// What a NIC must be able to do. The objects that users make (port/, memory/, eth/, flow/) know nothing else of one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/process.hpp"
#include "device/backend.hpp"
#include "weftio/device/cqe.h"
#include "weftio/device/wqe.h"
#include "weftio/eth_rxq.hpp"
#include "weftio/eth_txq.hpp"
#include "weftio/flow.hpp"
#include "weftio/memory.hpp"
#include "weftio/port.hpp"

namespace weftio::nic {

/// Memory that a NIC has been told of. The destructor takes it from the NIC, and waits for frames that lie there and are
/// on their way out, at most a second; then the memory is kept until they have come back.
class region {
 public:
    virtual ~region() = default;
    /// The NIC refuses the key from now on, and uses nothing any more that it has found by it.
    virtual void revoke() noexcept = 0;
};

/// Memory that a NIC is told of.
struct region_request {
    std::shared_ptr<const detail::memory_block> block;
    std::uint32_t key = 0;      ///< names it in entries, in host byte order; 0: only the NIC itself uses it
    protection_domain domain{}; ///< whose queues may name it
};

/// Whoever is told of memory: a port's NIC, a DMA engine.
class memory_user {
 public:
    virtual ~memory_user() = default;
    /// @throws weftio::error errc::not_reachable it cannot see memory of that kind; errc::out_of_memory
    virtual std::unique_ptr<region> register_memory(const region_request& wanted) = 0;
};

/// Where packets go from their slots. Slot k there is slot k here.
struct staging_target {
    std::shared_ptr<detail::copy_queue> copies; ///< empty: nowhere, kernels read the slots themselves
    std::byte* slots = nullptr;                 ///< address for the device
};

/// Memory of a receive ring, in CPU addresses. Its owner keeps it until the queue is closed or has another ring.
struct rx_ring {
    weftio_cqe* completions = nullptr;
    const std::uint32_t* dbrec = nullptr; ///< written by the kernel: entries posted in all, low 16 bits, big-endian
    std::byte* slots = nullptr;     ///< where the packet of slot 0 begins; `headroom_bytes` before it belong to it too
    std::uint32_t depth = 0;        ///< power of two, at most 32768
    std::uint32_t stride_bytes = 0; ///< from slot to slot
    std::uint32_t slot_bytes = 0;   ///< the longest packet
    std::uint32_t cut_bytes = UINT32_MAX; ///< the driver may have cut a packet that is so long; the NIC fills it in
    std::uint32_t number = 0;             ///< of the queue; the NIC fills it in
    bool verify_checksums = true;
    staging_target staged{}; ///< where packets are copied before the kernel hears of them

    /// What a driver wants in front of a packet, for a VLAN tag that it puts back.
    static constexpr std::uint32_t headroom_bytes = 128;
};

/// A ring of entries, in CPU addresses.
struct entry_ring {
    const std::uint32_t* words = nullptr; ///< depth x 16, written by the kernel
    std::uint32_t depth = 0;
    std::uint32_t queue = 0; ///< its number, which the NIC fills in
};

/// Memory of a send ring, in CPU addresses. Its owner keeps it until the queue is closed or has another ring.
struct tx_ring {
    entry_ring entries;
    const std::uint32_t* dbrec = nullptr; ///< written by the kernel: entries committed in all, low 16 bits, big-endian
    const std::uint64_t* doorbell = nullptr; ///< written by the kernel: a change means "look"
    weftio_cqe* completion = nullptr;        ///< the collapsed one
    std::uint64_t horizon_ns = 0;
    protection_domain domain{}; ///< that of the regions which entries may name
};

/// What a CPU kernel calls from inside its own calls, when nobody else drives the NIC.
struct inline_turn {
    void (*turn)(void*) = nullptr; ///< nullptr: the NIC is driven
    void* context = nullptr;       ///< a queue, which the kernel keeps
};

/// What queues of both directions can do. Any thread, but for what says otherwise. Blocks as long as one turn.
class queue {
 public:
    virtual ~queue() = default;
    virtual std::uint32_t number() const noexcept = 0; ///< at its port
    virtual inline_turn turn() noexcept = 0;
    /// How many rings it has had before the present one. One that is closed has none any more, and more before it.
    virtual std::uint32_t ring_number() const noexcept = 0;
    /// The ring of that number is given up: what it has not completed is flushed. Nothing, when it has gone.
    virtual void stop(std::uint32_t ring) = 0;
    /// "eth_rxq 0 on null: 64 slots, 3 delivered, ...", and whether that ring has gone.
    virtual std::string describe(std::uint32_t ring) const = 0;
    /// The NIC forgets the queue. Once; afterwards only turn(), stop() and describe() may be called.
    virtual void close() noexcept = 0;
};

/// A queue of a port that has engines.
class movable {
 public:
    virtual unsigned engine() const noexcept = 0;
    /// @pre engine < backend::engine_count()
    /// @throws weftio::error errc::in_use, errc::out_of_memory: as eth_rxq::move_to() and eth_txq::move_to() say
    virtual void move_to(unsigned engine) = 0;

 protected:
    ~movable() = default;
};

class receive_queue : public queue, public movable {
 public:
    virtual eth_rxq_counters counters() const = 0;
    /// Goes on in `ring`, which is as deep as the one before, from index 0. @throws weftio::error errc::out_of_memory
    virtual void restart(const rx_ring& ring) = 0;
};

/// What the host is told of an entry.
struct send_outcome {
    std::uint32_t position = 0;
    std::uint8_t syndrome = 0; ///< 0: it was sent
    std::string text;          ///< of a failure
    std::uint64_t time_ns = 0;
};

class send_queue : public queue {
 public:
    virtual bool failed() const = 0;
    /// Nothing more is handed to the port; what has not been is flushed.
    virtual void stop_sending() = 0;
    /// Goes on in `ring`, which is as deep as the one before, from position 0, when the port has given back what it
    /// holds: blocks at most 1 s. @throws weftio::error errc::in_use, errc::closed: as eth_txq::reset() says
    virtual void restart(const tx_ring& ring) = 0;
    /// Takes the next outcome. One thread at a time. Returns whether there was one.
    virtual bool next(send_outcome& outcome) = 0;
};

class eth_send_queue : public send_queue, public movable {
 public:
    virtual eth_txq_counters counters() const = 0;
    virtual schedule_error schedule() const = 0;
};

/// Closes a queue at the end of its scope.
template <class Queue>
class open_queue {
 public:
    explicit open_queue(std::shared_ptr<Queue> queue) noexcept : queue_(std::move(queue)) {}
    open_queue(const open_queue&) = delete;
    open_queue& operator=(const open_queue&) = delete;
    ~open_queue() { close(); }

    /// At once; nothing the second time.
    void close() noexcept
    {
        if (std::exchange(open_, false))
            queue_->close();
    }

    Queue* operator->() const noexcept { return queue_.get(); }
    const std::shared_ptr<Queue>& share() const noexcept { return queue_; }

 private:
    std::shared_ptr<Queue> queue_;
    bool open_ = true;
};

/// A rule in force, until its destructor.
class rule {
 public:
    virtual ~rule() = default;
    virtual flow_hits hits() const = 0;
    virtual flow_place where() const noexcept = 0;
};

/// A rule that has been checked (flow/validate.hpp).
struct rule_request {
    flow_match match;
    enum flow_action::kind action = flow_action::kind::drop;
    std::vector<std::uint32_t> queues; ///< numbers: one for `queue`, 1 to 128 for `rss`, none for `drop`
    rss_key key = rss_key::standard;
    std::uint32_t priority = 0;
};

/// What a weftio::port stands for. Any thread. What is made here keeps it alive.
class backend : public memory_user {
 public:
    /// Whether this process may still end what belongs to the port.
    bool may_end() const noexcept { return maker_.may_end(); }

    /// As weftio::port says of each.
    virtual const std::string& spec() const noexcept = 0;
    virtual const std::string& driver() const noexcept = 0;
    virtual std::array<std::uint8_t, 6> mac() const noexcept = 0;
    virtual std::uint16_t mtu() const noexcept = 0;
    virtual bool link_up() const noexcept = 0;
    virtual port_counters counters() = 0;
    virtual bool exhausted() const noexcept = 0;
    virtual bool gone() const noexcept = 0;
    virtual unsigned engine_count() const noexcept = 0;
    /// Inline mode: nobody but turn() drives it.
    virtual bool is_inline() const noexcept = 0;
    virtual unsigned turn() = 0;
    /// @pre engine < engine_count()
    virtual unsigned turn(unsigned engine) = 0;

    /// Makes a queue at that engine, or with -1 at the one that has the fewest. @pre -1 <= engine < engine_count()
    /// @throws weftio::error errc::not_supported nothing can be sent; errc::out_of_memory
    virtual std::shared_ptr<receive_queue> make_receive_queue(const rx_ring& ring, int engine) = 0;
    virtual std::shared_ptr<eth_send_queue> make_send_queue(const tx_ring& ring, int engine) = 0;
    /// @throws weftio::error errc::out_of_memory
    virtual std::unique_ptr<rule> install(const rule_request& wanted) = 0;

 private:
    const detail::maker maker_{};
};

/// @throws weftio::error errc::invalid_argument, in the name of `who`, when there is no engine of that number
void require_engine(const backend& port, std::string_view who, unsigned engine);
/// The same of an engine to begin at, which may also be -1.
void require_engine_or_any(const backend& port, std::string_view who, int engine);

} // namespace weftio::nic
