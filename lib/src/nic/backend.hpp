// The interface between the public objects and a NIC: what a NIC must be able to do. ports/, regions/, eth/ and flows/
// know a NIC by this header only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/process.hpp"
#include "devices/backend.hpp"
#include "nic/rings.hpp"
#include "weftio/access.hpp"
#include "weftio/counters.hpp"
#include "weftio/device/cqe.h"
#include "weftio/device/wqe.h"
#include "weftio/events.hpp"
#include "weftio/flow_match.hpp"
#include "weftio/port_info.hpp"
#include "weftio/rdma_state.hpp"

namespace weftio::nic {

/// A request to register memory with a NIC.
struct region_request {
    std::shared_ptr<const devices::memory_block> block;
    /// The region's key in the table of the process (keys/key_table.hpp). A NIC that looks keys up there returns this
    /// key; a NIC with its own keys returns another. 0: only the NIC uses the memory, and no entry names it.
    std::uint32_t process_key = 0;
    /// Queues of this domain may name the memory.
    protection_domain domain{};
    std::uint64_t address = 0;    ///< address by which entries name the first byte
    std::uint64_t offset = 0;     ///< offset in the block of the first byte that entries may name
    std::uint64_t bytes = 0;      ///< how many bytes they may name
    access rights = access::none; ///< accesses other than local reads
};

/// Memory that is registered with a NIC. The destructor unregisters it. It blocks while frames in the memory are being
/// sent, at most 1 s; after that the NIC keeps the memory until the frames have come back.
class region {
 public:
    virtual ~region() = default;
    /// The key that the NIC has returned: entries at this NIC, and peers of its queue pairs, name the memory by it, in
    /// host byte order. It stays the same until renew(), also after revoke(). 0: region_request::process_key was 0.
    virtual std::uint32_t key() const noexcept = 0;
    /// From now on, the NIC refuses the key and uses no address that it has found by the key.
    virtual void revoke() noexcept = 0;
    /// Of a NIC with windows of its own, which key_table::hold() counts: frees those that are bound to the region, and
    /// binds none to it until renew(). @return how many there were
    virtual std::uint32_t free_windows() noexcept { return 0; }
    /// From now on, entries name the memory by the key of `now`, and key() returns that.
    /// @pre revoke(), or it was registered without a key; the same block
    virtual void renew(const region_request& now) noexcept = 0;
};

/// A memory window of a NIC. The destructor frees it, blocks until no peer uses it, and removes it.
class window {
 public:
    virtual ~window() = default;
    /// Any thread; takes no lock.
    virtual memory_window_standing standing() const noexcept = 0;
};

/// An object that uses registered memory: the NIC of a port, or a DMA engine.
class memory_user {
 public:
    virtual ~memory_user() = default;
    /// @throws weftio::error errc::not_reachable it cannot access memory of that kind; errc::out_of_memory
    virtual std::unique_ptr<region> register_memory(const region_request& wanted) = 0;
};

/// The function by which a CPU kernel runs the NIC in inline mode, from its receive and push calls.
struct inline_turn {
    void (*turn)(void*) = nullptr; ///< nullptr: the NIC has a thread
    void* context = nullptr;       ///< argument of `turn`: the queue, which the kernel keeps alive
};

/// What queues of both directions can do. Any thread may call these functions, unless a function says otherwise. They
/// block at most as long as one turn of the engine.
class queue {
 public:
    virtual ~queue() = default;
    /// The number that the NIC has assigned; entries and completions contain it. Unique among the queues of its kind at
    /// the port or DMA engine.
    virtual std::uint32_t number() const noexcept = 0;
    virtual inline_turn turn() noexcept = 0;
    /// The number of rings that the queue had before its present ring. After close() the queue has no present ring, and
    /// this counts all rings that it had.
    virtual std::uint32_t ring_number() const noexcept = 0;
    /// Ends the ring of that number: flushes what the ring has not completed. Does nothing when the queue has another
    /// ring by now, or none.
    virtual void stop(std::uint32_t ring) = 0;
    /// One line of text about the ring of that number, such as "eth_rxq 0 on null: 64 slots, 3 delivered, ...". The
    /// text says so when the queue has another ring by now, or none.
    virtual std::string describe(std::uint32_t ring) const = 0;
    /// Removes the queue from the NIC. Call it once; afterwards only turn(), stop() and describe() may be called.
    virtual void close() noexcept = 0;
};

/// A queue that can move from one engine of its port to another.
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
    /// Gives the queue a new ring, of the same depth as the present one, and starts again at index 0.
    /// @throws weftio::error errc::out_of_memory
    virtual void restart(const receive_ring& ring) = 0;
};

using weftio::outcome_of;

/// What the host is told about one entry: a notification that the entry requested, or a failure.
struct send_outcome {
    std::uint32_t position = 0;
    std::uint8_t syndrome = 0; ///< 0: the entry succeeded
    std::string text;          ///< why the entry failed; empty when it succeeded
    std::uint64_t time_ns = 0;
    outcome_of what = outcome_of::send_ring;
    refusal reason = refusal::none; ///< reason of a failure, more precise than the syndrome; none: not reported
};

class send_queue : public queue {
 public:
    /// Device address of the doorbell, for kernels of the device that owns the ring. Several queues may share it.
    virtual std::uint64_t* doorbell() const noexcept = 0;
    virtual bool failed() const = 0;
    /// Stops the queue: flushes all entries that have not been handed over.
    virtual void stop_sending() = 0;
    /// Gives the queue a new ring of the same depth, and starts again at position 0. Blocks until all entries that were
    /// handed over have come back, at most 1 s.
    /// @throws weftio::error errc::in_use, errc::closed: see eth_txq::reset()
    virtual void restart(const send_ring& ring) = 0;
    /// Takes the next outcome, oldest first. Returns false when there is none. One thread at a time.
    virtual bool next(send_outcome& outcome) = 0;
};

class eth_send_queue : public send_queue, public movable {
 public:
    virtual eth_txq_counters counters() const = 0;
    virtual schedule_error schedule() const = 0;
};

/// An installed rule. The destructor removes it.
class rule {
 public:
    virtual ~rule() = default;
    virtual flow_hits hits() const = 0;
    virtual flow_place where() const noexcept = 0;
};

/// A rule to install. flows/validate.hpp has checked it.
struct rule_request {
    flow_match match;
    flow_kind action = flow_kind::drop;
    std::vector<std::uint32_t> queues; ///< queue numbers: one for `queue`, 1 to 128 for `rss`, none for `drop`
    rss_key key = rss_key::standard;
    std::uint32_t priority = 0;
};

class held_rdma_address;
struct completion_memory;
class rdma_queue;
struct rdma_own_address;
struct rdma_rings;
class shared_receives;
struct shared_receive_ring;

/// When bytes that a NIC has written into memory of a device are there, for kernels of that device.
enum class payload_arrival : std::uint8_t {
    before_completion, ///< the NIC publishes a completion when they have arrived
    by_platform,       ///< the NIC writes both, and the platform orders them or not: ordering_of()
    when_flushed,      ///< when the NIC has read the same memory (WEFTIO_OPCODE_DUMP)
};

/// The NIC of one weftio::port. Any thread may call it. Queues, regions and rules that it makes keep it alive.
class backend : public memory_user {
 public:
    /// Whether the calling thread may destroy what belongs to the port; see core::maker::may_end().
    bool may_end() const noexcept { return maker_.may_end(); }

    /// The functions up to engine_count() behave as the functions of the same names of weftio::port.
    virtual const std::string& spec() const noexcept = 0;
    virtual const std::string& driver() const noexcept = 0;
    virtual port_info info() const { return {.driver = driver()}; }
    virtual std::array<std::uint8_t, 6> mac() const noexcept = 0;
    virtual std::uint16_t mtu() const noexcept = 0;
    virtual bool link_up() const noexcept = 0;
    virtual port_counters counters() = 0;
    /// As rdma_device::counters(). The default has counted nothing.
    virtual rdma_port_counters rdma_counts() { return {}; }
    virtual bool exhausted() const noexcept = 0;
    virtual bool gone() const noexcept = 0;
    virtual unsigned engine_count() const noexcept = 0;
    /// Whether the port is in inline mode: it has no thread, and only turn() runs its engines.
    virtual bool is_inline() const noexcept = 0;
    virtual unsigned turn() = 0;
    virtual payload_arrival arrival() const noexcept { return payload_arrival::before_completion; }
    /// @pre engine < engine_count()
    virtual unsigned turn(unsigned engine) = 0;

    /// Makes a queue at `engine`; -1 chooses the engine with the fewest queues. @pre -1 <= engine < engine_count()
    /// @throws weftio::error errc::not_supported the port cannot send (make_send_queue); errc::out_of_memory
    virtual std::shared_ptr<receive_queue> make_receive_queue(const receive_ring& ring, int engine) = 0;
    virtual std::shared_ptr<eth_send_queue> make_send_queue(const send_ring& ring, int engine) = 0;
    /// Makes a completion queue (nic/completion_backend.hpp). @throws weftio::error as make_rdma_queue();
    /// errc::not_reachable the NIC cannot write its memory
    virtual std::shared_ptr<completion_queue> make_completion_queue(const completion_memory& memory);
    /// Makes a queue pair (nic/rdma_backend.hpp), which is not connected yet.
    /// @throws weftio::error errc::not_supported the NIC or the port does not support RDMA, or not this service;
    /// errc::out_of_memory
    virtual std::shared_ptr<rdma_queue> make_rdma_queue(const rdma_rings& rings, rdma_service service);
    /// Makes a shared receive queue (nic/rdma_backend.hpp). @throws weftio::error as make_completion_queue()
    virtual std::shared_ptr<shared_receives> make_shared_receives(const shared_receive_ring& ring);
    /// Makes a memory window, which is free. @throws weftio::error as make_rdma_queue()
    virtual std::unique_ptr<window> make_window(window_type type, protection_domain domain);
    /// Adds an address of the port's own (nic/rdma_backend.hpp).
    /// @throws weftio::error as make_rdma_queue(); errc::in_use the port has it already
    virtual std::unique_ptr<held_rdma_address> add_rdma_address(const rdma_own_address& own);
    /// Installs all rules in one step, or none: each packet is matched against all of them or none. Among equal
    /// priorities, the first in `wanted` decides first. Returns them in the same order.
    /// @throws weftio::error errc::out_of_memory
    virtual std::vector<std::unique_ptr<rule>> install(std::span<const rule_request> wanted) = 0;

 private:
    const core::maker maker_{};
};

/// Checks the number of an engine. @param who  the object whose option it is, for the error text
/// @throws weftio::error errc::invalid_argument the port has no engine of that number
void require_engine(const backend& port, std::string_view who, unsigned engine);
/// Checks the number of the engine where a queue is made: as require_engine(), but -1 (any engine) is allowed.
void require_engine_or_any(const backend& port, std::string_view who, int engine);

} // namespace weftio::nic
