// Queue pairs with the rules of verbs: rings that any code posts to, completions in completion_queues, and states that
// the program changes one by one.
//
// rdma_queue is the short way, for kernels that use weftio/device/rdma.h. A queue_pair is for code that writes mlx5
// entries and reads mlx5 completions itself (docs/formats.md), such as a library below libibverbs, or device code that
// was not written for Weftio.
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

class shared_receives;

struct queue_pair_options {
    rdma_service service = rdma_service::reliable; ///< the same at both ends
    std::uint32_t send_blocks = 64;                ///< send ring, in blocks of 64 bytes; a power of two, 1 to 32768
    std::uint32_t receive_entries = 64;            ///< a power of two, 1 to 32768; 0: the queue pair takes no receives
    std::uint32_t receive_stride = 16;             ///< size of a receive entry in bytes; a power of two, 16 to 512
    bool signal_all = false;                       ///< every entry has a completion; false: on request or failure only
    std::uint32_t user_index = 0;                  ///< in completions, beside the number; 24 bits
    /// The queue pair takes its receive entries from here; it then has no receive ring, and `receive_entries`,
    /// `receive_stride` and `receive_ring` do not matter. nullptr: it has a receive ring of its own.
    const shared_receives* shared = nullptr;
    /// UD: the queue pair is the port's queue pair 1 (GSI), too: it receives the management datagrams of peers, and
    /// sends as queue pair 1. number() is that of its completions. Its Q_Key by the rules of InfiniBand is 0x80010000.
    bool management = false;
    protection_domain domain{};  ///< entries, and requests of the peer, may name regions of this domain only
    memory_place send_ring{};    ///< at a multiple of 16
    memory_place receive_ring{}; ///< at a multiple of 16
    /// The doorbell record: 8 bytes, at a multiple of 4: number of receives posted, then number of blocks committed,
    /// each a big-endian word of which the low 16 bits count. Both must be 0 when the queue pair leaves RESET.
    memory_place record{};
    /// 8 bytes, at a multiple of 8, to which the posting code stores a value other than 0 after it has moved the
    /// record. The NIC sets them to 0 when it has seen the value. Several queue pairs may share them. With a doorbell,
    /// the NIC reads the records of sleeping queue pairs only after a store to it. Without one, it polls the records.
    memory_place doorbell{};
    bool two_doorbells = false; ///< stores alternate between `doorbell` and the 8 bytes at 256 bytes after it
};

/// Attributes that modify() sets. The name of each in verbs is in brackets. Attributes that are empty keep their value.
struct queue_pair_attributes {
    std::optional<std::uint16_t>
        partition_key{};            ///< (in place of pkey_index) the key itself; 0xffff in networks without partitions
    std::optional<access> rights{}; ///< (qp_access_flags) what the peer may do, if the region also grants it
    std::optional<std::string> peer_address{}; ///< (ah_attr.grh.dgid) IPv4 or IPv6, of the same kind as the device's
    /// With peer_address: MAC of the peer, or of the router on the path. Empty: modify() resolves it by ARP or ND, 3 s
    /// at most.
    std::optional<std::array<std::uint8_t, 6>> peer_mac{};
    std::uint8_t gid_index = 0;     ///< (sgid_index) with peer_address: local address, an index in rdma_device::gids()
    std::uint8_t traffic_class = 0; ///< with peer_address
    std::uint8_t hop_limit = 64;    ///< with peer_address
    /// (qkey) UD: a datagram is accepted if it has this Q_Key. Entries with a Q_Key whose highest bit is set send it.
    std::optional<std::uint32_t> queue_key{};
    std::optional<std::uint32_t> path_mtu{};          ///< (path_mtu) in bytes
    std::optional<std::uint32_t> peer_queue{};        ///< (dest_qp_num)
    std::optional<std::uint32_t> receive_psn{};       ///< (rq_psn)
    std::optional<std::uint32_t> send_psn{};          ///< (sq_psn)
    std::optional<std::uint8_t> most_reads_of_peer{}; ///< (max_dest_rd_atomic) 0 to 16
    std::optional<std::uint8_t> most_reads{};         ///< (max_rd_atomic) 0 to 16
    std::optional<std::uint8_t> min_rnr_timer{};      ///< code, 0 to 31
    std::optional<std::uint8_t> timeout{};            ///< code, 0 to 31
    std::optional<std::uint8_t> retry_count{};        ///< (retry_cnt) 0 to 7
    std::optional<std::uint8_t> rnr_retry{};          ///< 0 to 7; 7: no limit
};

/// A queue pair whose interface is memory only: rings, a record and doorbells.
///
/// A queue pair of rdma_service::datagram has no connection. The entry of a message names the peer (struct
/// weftio_wqe_datagram_segment, its MAC from rdma_device::mac_of()). A message is one packet, at most
/// rdma_device::most_path_mtu() bytes. A receive begins with 40 bytes for the IP header of the packet: that of IPv6, or
/// 20 bytes of 0 and that of IPv4. The payload is behind them, and the completion counts all these bytes; it also has
/// the number of the sender's queue pair (weftio_cqe::flags_rqpn_be). A datagram with another Q_Key, or for which no
/// receive is posted, is dropped and counted. One that is longer than its receive fails the queue pair, as on a
/// ConnectX.
///
/// Some failures have no entry to complete: a record that claims too much, a request of the peer that is refused, a
/// completion queue that overruns. They move the queue pair to ERR without a completion. Attach the queue pair to a
/// progress_engine, which reports them.
///
/// Completions that a queue pair produced before RESET stay in its completion queue with the same queue number, and
/// indices start at 0 again. Read them before modify() to RESET, or discard them, as libmlx5 does.
///
/// - Ownership: move-only; keeps its rdma_device and its completion queues alive at the NIC, and its memory as
///   memory_place says. The destructor flushes nothing and notifies nobody: completions that are due are lost. If
///   windows of type 2A are bound by the queue pair, it keeps its number in RESET until they have been destroyed, and
///   the log tells how many there are.
/// - Threads: create, move, modify and destroy from one thread at a time; the rest from any.
class queue_pair {
 public:
    /// Makes a queue pair in state RESET. One completion queue may serve both sides, and any number of queue pairs of
    /// the same port.
    /// @throws weftio::error errc::invalid_argument an option has a value that its comment excludes, or a completion
    ///         queue or `shared` belongs to another port; errc::in_use another queue pair of the port has `management`;
    ///         errc::not_reachable the NIC cannot access the memory;
    ///         errc::not_supported as rdma_queue; errc::out_of_memory
    queue_pair(const rdma_device& at, const device& device, const completion_queue& sends,
               const completion_queue& receives, queue_pair_options options = {});
    queue_pair(queue_pair&&) noexcept;
    queue_pair& operator=(queue_pair&&) noexcept;
    ~queue_pair();

    /// Queue pair number, in entries and in packets of peers.
    std::uint32_t number() const noexcept;
    /// The doorbell for kernels of `device`: 8 bytes in the form of the first half of a control segment. A hint: the
    /// NIC relies on the record.
    std::uint64_t* doorbell() const noexcept;
    void* send_ring() const noexcept;    ///< device address
    void* receive_ring() const noexcept; ///< device address; nullptr: there is none
    void* record() const noexcept;       ///< device address

    /// Moves the queue pair to another state. Blocks for up to one iteration of the engine, or until the peer has
    /// answered for its MAC.
    ///
    /// The transitions, and the attributes that each requires and allows, are those of ibv_modify_qp:
    ///
    /// - RESET to INIT: requires partition_key, rights; both may be set again from INIT to INIT, and from INIT to RTR
    /// - INIT to RTR: requires peer_address, path_mtu, peer_queue, receive_psn; RC also most_reads_of_peer,
    ///   min_rnr_timer
    /// - RTR to RTS: requires send_psn; RC also timeout, retry_count, rnr_retry, most_reads; allows rights, RC also
    ///   min_rnr_timer
    /// - RTS to SQD, SQD to RTS, RTS to RTS, for UC also SQE to RTS: allows rights, RC also min_rnr_timer; to SQD: none
    /// - SQD to SQD: allows partition_key, rights, peer_address; RC also all of its attributes of RTR and RTS
    /// - UD: RESET to INIT requires partition_key, queue_key; RTR to RTS requires send_psn. All transitions of UC
    ///   exist, and allow queue_key, except the one to SQD; INIT to INIT, INIT to RTR and SQD to SQD allow
    ///   partition_key, too
    /// - any state to RESET or ERR: no attributes
    ///
    /// When a transition to RESET returns, the NIC no longer uses any memory of the queue pair, and both rings begin at
    /// index 0. In SQD, attributes can be set once draining() is false.
    /// @throws weftio::error errc::invalid_argument there is no such transition; an attribute is missing, is not
    ///         allowed there, or has a value that its comment excludes; errc::timed_out no host has answered for the
    ///         peer's MAC; errc::closed the port's device has been removed. On error the queue pair is unchanged.
    void modify(rdma_state to, const queue_pair_attributes& with = {});
    /// The short way from RESET or INIT to RTS: uses the values that both ends have exchanged, and the defaults of
    /// rdma_queue_options for the rest. RC and UC only.
    /// @throws weftio::error as modify() and rdma_queue::connect()
    void connect(const rdma_address& peer);
    /// The argument for the peer's connect(); with UD, for rdma_device::datagram_peer(), once the Q_Key is set.
    /// @pre with RC and UC the state is RESET or INIT
    rdma_address address() const;
    /// UD only: from now on, datagrams to the multicast group (IPv4 or IPv6) at queue number 0xffffff are for this
    /// queue pair, too, also those that this port sends. Their Q_Key must be that of the queue pair. Blocks for up to
    /// one iteration of the engine. Attaching twice is once.
    /// @throws weftio::error errc::invalid_argument it is no multicast address, or the service is not datagram;
    ///         errc::out_of_memory
    void attach(const std::string& group);
    /// Ends attach(). @throws weftio::error errc::invalid_argument also if the queue pair is not attached to the group
    void detach(const std::string& group);

    /// Blocks for up to one iteration of the engine.
    rdma_state state() const;
    /// Whether entries that were begun before SQD are still being executed. Blocks for up to one iteration of the
    /// engine.
    bool draining() const;
    rdma_counters counters() const; ///< any thread; blocks for up to one iteration of the engine
    /// A snapshot: what the queue pair waits for and what it has done last, also while a kernel waits. Any thread;
    /// blocks for up to one iteration of the engine.
    rdma_dump dump() const;
    void write_trace(const std::string& path) const; ///< as rdma_queue::write_trace()
    void close();                                    ///< as rdma_queue::close()

 private:
    friend detail::internals;
    struct members;
    std::shared_ptr<members> state_;
};

} // namespace weftio
