// Queue pairs by verbs' rules: rings that anybody posts to, completions in completion_queues, states that are moved one by
// one.
//
// rdma_queue is the short way, for kernels that use weftio/device/rdma.h. A queue_pair is for code that writes mlx5
// entries and reads mlx5 completions itself (docs/formats.md): a library below libibverbs, device code that was not
// written for Weftio.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "weftio/completion_queue.hpp"
#include "weftio/rdma.hpp"
#include "weftio/rdma_state.hpp"

namespace weftio {

struct queue_pair_options {
    rdma_service service = rdma_service::reliable; ///< the same at both ends
    std::uint32_t send_blocks = 64;                ///< of 64 bytes, of the send ring; a power of two, 1 to 32768
    std::uint32_t receive_entries = 64;            ///< a power of two, 1 to 32768; 0: the queue pair takes no receives
    std::uint32_t receive_stride = 16;             ///< bytes of a receive entry; a power of two, 16 to 512
    bool signal_all = false;                       ///< each entry completes; false: those that ask, and those that fail
    std::uint32_t user_index = 0;                  ///< in completions, beside the number; 24 bits
    protection_domain domain{};  ///< local memory of entries, and memory that the peer names, is of this one
    memory_place send_ring{};    ///< at a multiple of 16
    memory_place receive_ring{}; ///< at a multiple of 16
    /// 8 bytes, at a multiple of 4: receives posted, then blocks committed; each a big-endian word of which 16 bits count.
    /// All 0 when the queue pair leaves RESET.
    memory_place record{};
    /// 8 bytes, at a multiple of 8, where whoever posts stores something other than 0 once the record has moved. The NIC
    /// sets them to 0 when it has seen that. Several queue pairs may share them. With them the NIC reads the records of
    /// many sleeping queue pairs only when somebody has rung. Without them it polls the records.
    memory_place doorbell{};
    bool two_doorbells = false; ///< with doorbell: stores alternate between that and the 8 bytes at 256 bytes behind it
};

/// What modify() sets. In brackets what verbs call it. What is not set stays as it is.
struct queue_pair_attributes {
    std::optional<std::uint16_t>
        partition_key{}; ///< (in place of pkey_index) the key itself, 0xffff everywhere but in networks with partitions
    std::optional<access> rights{};            ///< (qp_access_flags) what the peer may ask for
    std::optional<std::string> peer_address{}; ///< (ah_attr.grh.dgid) IPv4 or IPv6, of the same kind as the device's
    /// With peer_address: of the peer, or of the router on the way. Nothing: modify() asks for it, 3 s at most.
    std::optional<std::array<std::uint8_t, 6>> peer_mac{};
    std::uint8_t gid_index = 0;                ///< (sgid_index) with peer_address: which of rdma_device::gids() is ours
    std::uint8_t traffic_class = 0;            ///< with peer_address
    std::uint8_t hop_limit = 64;               ///< with peer_address
    std::optional<std::uint32_t> path_mtu{};   ///< (path_mtu) in bytes
    std::optional<std::uint32_t> peer_queue{}; ///< (dest_qp_num)
    std::optional<std::uint32_t> receive_psn{};       ///< (rq_psn)
    std::optional<std::uint32_t> send_psn{};          ///< (sq_psn)
    std::optional<std::uint8_t> most_reads_of_peer{}; ///< (max_dest_rd_atomic) 0 to 16
    std::optional<std::uint8_t> most_reads{};         ///< (max_rd_atomic) 0 to 16
    std::optional<std::uint8_t> min_rnr_timer{};      ///< code, 0 to 31
    std::optional<std::uint8_t> timeout{};            ///< code, 0 to 31
    std::optional<std::uint8_t> retry_count{};        ///< (retry_cnt) 0 to 7
    std::optional<std::uint8_t> rnr_retry{};          ///< 0 to 7; 7: for ever
};

/// A queue pair whose rings are memory and nothing else.
///
/// What ends it without an entry to complete (a record that claims too much, a request of the peer's that is refused, a
/// completion queue that overruns) makes it ERR, and no completion tells why: attach it to a progress_engine, which does.
/// Completions of an earlier life stay in a completion queue, with the same number, and indices begin at 0 again: read
/// them before modify() goes to RESET, or discard them, as libmlx5 does.
///
/// - Ownership: move-only; keeps its rdma_device and its completion queues alive at the NIC, and its memory as
///   memory_place says. The destructor flushes nothing and tells nobody: completions that are due are lost.
/// - Threads: create, move, modify and destroy from one thread at a time; the rest from any.
class queue_pair {
 public:
    /// In RESET. One completion queue may serve both sides, and any number of queue pairs of the same port.
    /// @throws weftio::error errc::invalid_argument an option that its comment excludes, a completion queue of another
    ///         port; errc::not_reachable the NIC cannot reach the memory; errc::not_supported as rdma_queue;
    ///         errc::out_of_memory
    queue_pair(const rdma_device& at, const device& device, const completion_queue& sends,
               const completion_queue& receives, queue_pair_options options = {});
    queue_pair(queue_pair&&) noexcept;
    queue_pair& operator=(queue_pair&&) noexcept;
    ~queue_pair();

    /// The NIC's answer: entries carry it, and peers name it.
    std::uint32_t number() const noexcept;
    /// Where `device`'s kernels ring: 8 bytes in the form of a control segment's first half. A hint: the NIC believes the
    /// record.
    std::uint64_t* doorbell() const noexcept;
    void* send_ring() const noexcept;    ///< device address
    void* receive_ring() const noexcept; ///< device address; nullptr: there is none
    void* record() const noexcept;       ///< device address

    /// Moves the queue pair to another state. Blocks as long as one turn, or until the peer has answered for its MAC.
    ///
    /// The ways, and what each must and may set, are those of verbs (ibv_modify_qp):
    ///
    /// - RESET - INIT: partition_key, rights; they may be set again from INIT to INIT, and on the way to RTR
    /// - INIT - RTR: peer_address, path_mtu, peer_queue, receive_psn; RC also most_reads_of_peer, min_rnr_timer
    /// - RTR - RTS: send_psn; RC also timeout, retry_count, rnr_retry, most_reads; may: rights, RC min_rnr_timer
    /// - RTS - SQD, SQD - RTS, RTS - RTS, of UC SQE - RTS; may: rights, RC min_rnr_timer, but nothing to SQD
    /// - SQD - SQD; may: partition_key, rights, peer_address, RC all of RTR and RTS that are of RC
    /// - to RESET and ERR from everywhere, with nothing
    ///
    /// When it returns from RESET, the NIC is out of all memory of the queue pair, and both rings begin at index 0. In
    /// SQD attributes can be set once draining() is false.
    /// @throws weftio::error errc::invalid_argument there is no such way; an attribute is missing, may not be set there,
    ///         or has a value that its comment excludes; errc::timed_out nobody has answered for the peer's MAC;
    ///         errc::closed the port's device has gone. The queue pair is as before then.
    void modify(rdma_state to, const queue_pair_attributes& with = {});
    /// The short way, from RESET or INIT to RTS: with what both ends told each other, and rdma_queue_options' values for
    /// the rest. @throws weftio::error as modify(), and as rdma_queue::connect()
    void connect(const rdma_address& peer);
    /// What the peer's connect() wants. @pre in RESET or INIT
    rdma_address address() const;

    /// Blocks as long as one turn.
    rdma_state state() const;
    /// Whether entries that were begun before SQD have not ended yet. Blocks as long as one turn.
    bool draining() const;
    rdma_counters counters() const; ///< any thread; blocks as long as one turn
    /// What it waits for, and what it has done last, also while a kernel waits. Any thread; blocks as long as one turn.
    rdma_dump dump() const;
    void write_trace(const std::string& path) const; ///< as rdma_queue::write_trace()

 private:
    friend detail::internals;
    struct members;
    std::shared_ptr<members> state_;
};

} // namespace weftio
