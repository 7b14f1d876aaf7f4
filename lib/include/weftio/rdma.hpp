// RDMA over RoCEv2: kernels read, write and atomically change the memory of a peer, and send it messages.
//
// A connection has a queue pair at each end. Each end makes an rdma_queue, sends its address() to the peer over any
// channel, and calls connect() with the address of the peer. Kernels then use both directions (weftio/device/rdma.h). A
// peer accesses local memory through a region that grants it rights, by the key in a remote_region.
//
// The peer may be a queue pair of another implementation, such as a ConnectX or Linux's rdma_rxe: rdma_peer has the
// values that verbs programs exchange.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weftio/access.hpp"
#include "weftio/counters.hpp"
#include "weftio/detail/internals.hpp"
#include "weftio/device.hpp"
#include "weftio/device/rdma.h"
#include "weftio/device/rdma_datagram.h"
#include "weftio/memory.hpp"
#include "weftio/port.hpp"
#include "weftio/rdma_dump.hpp"
#include "weftio/rdma_state.hpp"

namespace weftio {

struct rdma_device_options {
    /// IPv4 ("10.0.0.1") or IPv6 ("fd00::1"), without a prefix length: a unicast address that the host's operating
    /// system does not have. The port claims UDP packets to port 4791 at this address ahead of all flow rules, and
    /// answers ARP and ND for it.
    std::string address;
    /// Further addresses of the device, each in the form of `address`. queue_pair_attributes::gid_index selects one.
    std::vector<std::string> more_addresses{};
    /// Adds the IPv6 link-local address that is made from the MAC (fe80::, EUI-64). It is the last of the addresses.
    bool link_local = false;
    /// Indices of rdma_device::gids() that it lists once more, at its end: programs that know an address by the index
    /// that other devices have it at. Each is less than the length of the list so far.
    std::vector<std::uint8_t> repeated_gids{};
    /// VLAN of the address, 1 to 4094: packets in both directions have a tag with this identifier. 0: no VLAN.
    std::uint16_t vlan = 0;
    std::uint8_t vlan_priority = 0; ///< priority (PCP) in the tag of sent packets, 0 to 7; also allowed with VLAN 0
    /// Must be true on a port in inline mode, and false on a port with engine threads. true: the application promises
    /// to run the engine all the time, by port::turn() or by a CPU kernel that waits. The engine answers the requests
    /// of a peer only while it runs.
    bool application_turns = false;
    /// How queue pairs of the device treat binds of memory windows. true: as the InfiniBand specification: a bind
    /// beyond its region is refused, peers may execute atomics in a window that gives the right. false: as a ConnectX:
    /// such a bind is accepted, and accesses beyond the region, and all atomics, are refused.
    bool strict_windows = true;
    /// Which windows of type 2 the queue pairs of the device bind (InfiniBand specification, 10.6.7.2). true: type 2A:
    /// as long as they are bound, the queue pair cannot be destroyed: see rdma_queue::close(). false: type 2B: it can,
    /// which leaves them dead.
    bool windows_of_type_2a = false;
    /// Keeps the last packets of the port's queue pairs for rdma_queue::write_trace(). Each packet then costs a clock
    /// read and a copy of 96 bytes, and queue pairs of the same port exchange packets (see
    /// port_options::rdma_by_packet). The environment variable WEFTIO_RDMA_TRACE=FOLDER, read when the port is opened,
    /// has the same effect; in addition the engine writes a trace file into FOLDER whenever a queue pair fails, at most
    /// 64 files per process.
    bool trace = false;
};

struct rdma_peer;

/// The way of datagrams to a peer.
struct datagram_path {
    std::uint8_t gid_index = 0;     ///< local address, an index in rdma_device::gids()
    std::uint8_t traffic_class = 0; ///< DSCP in the upper six bits
    std::uint8_t hop_limit = 64;    ///< IPv6 hop limit or IPv4 time to live; at least 1
};

/// A port with an address. Queue pairs are created on it, as on an RDMA device of verbs.
///
/// While the rdma_device or one of its queue pairs exists, the port answers requests for the MAC of the address (ARP,
/// IPv6 neighbor discovery). rdma_queue::connect() sends such a request if the peer's rdma_address has no MAC. Packets
/// go directly to that MAC. For a peer behind a router, set rdma_peer::mac. If the port's driver has no MAC address
/// (net_ring), the port uses a MAC that is made from the address.
///
/// - Ownership: a cheap handle; copies refer to the same device; keeps the port alive.
/// - Threads: any.
class rdma_device {
 public:
    /// @throws weftio::error errc::invalid_argument `address` is missing or cannot belong to a host; `vlan`,
    ///         `vlan_priority` or an index in `repeated_gids` is out of range; `application_turns` is false on a port
    ///         in inline mode, or true on a port with threads; errc::in_use another rdma_device of the port has the
    ///         address; errc::not_supported the port's MTU is too small for the smallest path MTU, or it cannot send
    rdma_device(const port& port, const rdma_device_options& options);

    const std::string& address() const noexcept; ///< as inet_ntop() writes it
    bool is_ipv6() const noexcept;
    /// All addresses: `address`, more_addresses, the link-local one, then the repeated ones. The index in this list is
    /// the GID index of verbs.
    std::vector<std::string> gids() const;
    /// For kernels that send datagrams (weftio/device/rdma_datagram.h): pass it to device::launch as the argument for a
    /// parameter `struct weftio_dev_datagram_peer`. It stays right as long as the peer keeps its queue pair and its
    /// MAC. Blocks as mac_of(), if `peer` has no MAC.
    /// @param peer  rdma_queue::address().peer() of the other end. Or a multicast group: the group in `address`,
    ///              rdma_peer::group_queue in `queue`, and the Q_Key of its members in `queue_key`
    /// @throws weftio::error as mac_of(); errc::invalid_argument the service is not datagram; the Q_Key has its highest
    ///         bit set; `path` or `queue` is out of its range
    weftio_dev_datagram_peer datagram_peer(const rdma_peer& peer, datagram_path path = {}) const;
    /// The MAC for packets from the address gids()[gid_index] to a host, which is asked for it by ARP or ND and has 3 s
    /// to answer, or to a multicast group, for which the MAC is computed. For entries of UD queue pairs.
    /// @throws weftio::error errc::invalid_argument `peer` is no such address, or of another IP version than ours;
    ///         there is no such index; errc::timed_out no host has answered; errc::closed the port's device has been
    ///         removed
    std::array<std::uint8_t, 6> mac_of(const std::string& peer, unsigned gid_index = 0) const;
    /// Of all queue pairs of the port. Any thread; blocks for up to one iteration of its engines.
    rdma_port_counters counters() const;
    /// The largest path MTU that fits the port's MTU: 256, 512, 1024, 2048 or 4096 bytes.
    std::uint32_t most_path_mtu() const;

 private:
    friend class queue_pair;
    friend class rdma_connections;
    friend class rdma_queue;
    friend detail::internals;

    struct state;
    std::shared_ptr<const state> state_;
};

/// Connection data of a queue pair, as verbs programs exchange it. The name of each value in verbs is in brackets.
struct rdma_peer {
    static constexpr std::uint32_t group_queue = 0xffffff; ///< `queue` of a multicast group

    std::string address;                           ///< IPv4 or IPv6 (its GID)
    std::uint32_t queue = 0;                       ///< queue pair number (qp_num): 2 to 2^24 - 1
    std::uint32_t first_psn = 0;                   ///< PSN of its first request (sq_psn): 2^24 - 1 at most
    rdma_service service = rdma_service::reliable; ///< (qp_type)
    std::uint32_t path_mtu = 1024;                 ///< in bytes (path_mtu): 256, 512, 1024, 2048 or 4096
    std::uint8_t most_reads = 16; ///< READs and atomics in flight per direction (max_dest_rd_atomic): at least 1
    /// MAC of the peer, or of the router on the path to it. Empty: rdma_queue::connect() resolves `address` by ARP or
    /// ND.
    std::optional<std::array<std::uint8_t, 6>> mac{};
    std::uint32_t queue_key = 0; ///< datagrams: its Q_Key (qkey), without the highest bit
};

/// What a peer needs to connect to a queue pair: 64 bytes that are the same on hosts of any byte order. They contain a
/// version and a checksum, so that truncated or changed bytes, and those of an incompatible version, are rejected. The
/// format is that of docs/formats.md, section "Connection data".
struct rdma_address {
    static constexpr std::size_t size_bytes = 64;
    std::array<std::uint8_t, size_bytes> bytes{};

    /// 128 hexadecimal digits.
    std::string text() const;
    /// @throws weftio::error errc::invalid_argument `text` is not the complete output of text()
    static rdma_address of_text(std::string_view text);
    /// @throws weftio::error errc::invalid_argument `bytes` are no address, are truncated, or have another version
    static rdma_address of_bytes(std::span<const std::uint8_t> bytes);
    /// The address of a queue pair that was received in another form, such as from a verbs program.
    /// @throws weftio::error errc::invalid_argument a value that the comments of rdma_peer exclude
    static rdma_address of(const rdma_peer& peer);
    /// The same data in the form of verbs, for a peer that is not Weftio.
    /// @throws weftio::error as of_bytes()
    rdma_peer peer() const;

    bool operator==(const rdma_address&) const = default;
};

/// Local memory that a peer may access, or memory of a peer that this end may access. It is sent to the other end like
/// an rdma_address.
struct remote_region {
    static constexpr std::size_t size_bytes = 32;
    std::uint64_t address = 0; ///< address of the first byte in requests: memory_region::iova() plus an offset
    std::uint64_t bytes = 0;
    std::uint32_t rkey = 0; ///< host byte order
    access rights = access::none;

    /// Bytes [offset, offset + bytes) of a region; `bytes` 0: up to its end. `rkey` is memory_region::lkey(). If the
    /// region has another key at the port of the queue pair, set `rkey` to memory_region::lkey(port).
    /// @throws weftio::error errc::invalid_argument the bytes are not within the region, or it grants a peer no right
    static remote_region of(const memory_region& region, std::size_t offset = 0, std::size_t bytes = 0);

    std::array<std::uint8_t, size_bytes> to_bytes() const;
    std::string text() const; ///< 64 hexadecimal digits
    /// @throws weftio::error errc::invalid_argument as the functions of rdma_address
    static remote_region of_text(std::string_view text);
    static remote_region of_bytes(std::span<const std::uint8_t> bytes);
    /// For kernels: pass it to device::launch as the argument for a parameter `struct weftio_dev_remote`.
    weftio_dev_remote on_device() const noexcept;

    bool operator==(const remote_region&) const = default;
};

struct rdma_queue_options {
    rdma_service service = rdma_service::reliable; ///< the same at both ends
    std::uint32_t entries = 1024;                  ///< depth of the send ring; a power of two in 64..32768
    std::uint32_t receive_entries = 1024;          ///< depth of the receive ring; a power of two in 64..32768
    std::uint32_t receive_segments = 1;            ///< pieces of memory in a receive; a power of two, 64 at most
    /// Payload bytes of a packet: 256, 512, 1024, 2048 or 4096; 0: the largest that fits the port's MTU. A connection
    /// uses the smaller value of its two ends.
    std::uint32_t path_mtu = 0;
    access rights = access::remote_write | access::remote_read | access::remote_atomic; ///< what the peer may do
    std::uint8_t most_reads = 16; ///< READs and atomics in flight per direction, 1..16; limited to the peer's value
    std::uint8_t timeout = 14;    ///< acknowledgment timeout: 4.096 us x 2^timeout; 0: no timeout; 31 at most
    std::uint8_t retry_count = 7; ///< retries after a loss; 7 at most
    std::uint8_t rnr_retry = 7;   ///< retries while the peer has no receive posted (RNR NAK); 7: no limit
    /// Minimum RNR NAK delay that this end asks the peer for, as the 5-bit code of the InfiniBand specification (table
    /// "Encoding for RNR NAK Timer Field"); 31 at most. The default 12 is 0.64 ms. A Weftio peer doubles a delay below
    /// 0.64 ms at each retry, up to 0.64 ms.
    std::uint8_t min_rnr_timer = 12;
    std::uint8_t traffic_class = 0; ///< DSCP in the upper six bits
    std::uint8_t hop_limit = 64;    ///< IPv6 hop limit or IPv4 time to live; at least 1
    /// PSN of the first request, 2^24 - 1 at most. Empty: a new value for each connection, so that late packets of an
    /// earlier connection are out of sequence.
    std::optional<std::uint32_t> first_psn{};
    protection_domain domain{}; ///< entries, and requests of the peer, may name regions of this domain only
    /// Datagrams: those with this Q_Key are received. The highest bit is 0.
    std::uint32_t queue_key = 0x11111111;
};

/// The receive ring of an rdma_queue, as an argument of device::launch. It is part of the queue: hold it by reference.
class rdma_receives {
 public:
    rdma_receives(const rdma_receives&) = delete;
    rdma_receives& operator=(const rdma_receives&) = delete;
    virtual ~rdma_receives() = default;

    virtual weftio_dev_rdma_recv* handle() const noexcept = 0;
    virtual weftio_dev_control* control() const noexcept = 0;

 protected:
    rdma_receives() = default;

 private:
    friend detail::internals;
    virtual std::shared_ptr<devices::lifeline> line() const noexcept = 0;
};

/// A queue pair: a send ring and a receive ring that kernels own, and a connection to the queue pair of a peer.
///
/// The peer may be at another port, on another machine, or another queue pair of the same port. A local protection
/// error fails this queue pair. On a reliable connection, a remote access error fails both ends. In both cases no byte
/// is written, and the progress_engine of each end reports the reason. Memory is protected by its key, its rights and
/// its protection domain; a secret address is no protection.
///
/// With rdma_service::datagram (UD) it has no connection: it is in RTS from the beginning and after each reset(),
/// kernels name the peer of each message (weftio/device/rdma_datagram.h), and peers need address() to reach it. Only
/// `entries`, the receive options, `path_mtu`, `first_psn`, `domain` and `queue_key` of the options matter then.
///
/// - Ownership: move-only; keeps its port and its device alive. The destructor flushes entries that have not been
///   executed, and blocks for up to one iteration of the engine. The peer is not notified: its requests fail after its
///   retries. If windows of type 2A are bound by the queue pair, the destructor stops it, keeps it and its memory until
///   they have been destroyed, and logs how many there are.
/// - Threads: create, move, connect, reset and destroy from one thread at a time. connect() is also allowed while a
///   kernel holds the handles.
class rdma_queue {
 public:
    /// @throws weftio::error errc::invalid_argument an option has a value that its comment excludes, or `path_mtu` does
    ///         not fit the port's MTU; errc::not_supported the port cannot send, or its NIC has no queue pairs;
    ///         errc::out_of_memory
    rdma_queue(const rdma_device& at, const device& device, rdma_queue_options options = {});
    rdma_queue(rdma_queue&&) noexcept;
    rdma_queue& operator=(rdma_queue&&) noexcept;
    ~rdma_queue();

    /// The send side. Pass the queue itself to device::launch. If the device is "cpu", the host may also call the
    /// functions of weftio/device/rdma.h with both handles.
    weftio_dev_rdma* handle() const noexcept;
    weftio_dev_control* control() const noexcept;
    /// The receive side: a separate argument of device::launch. The reference is valid as long as the queue exists,
    /// also after the queue has been moved.
    const rdma_receives& receives() const noexcept;

    /// The argument for the peer's connect(); of datagrams, for rdma_device::datagram_peer(). Each reset() changes it.
    rdma_address address() const noexcept;
    /// Connects to the queue pair of `peer`, which must connect to this one too, before or after. Entries and receives
    /// that were committed earlier are executed from now on. An entry fails after its retries, by default after half a
    /// second: send nothing before the peer has connected too.
    ///
    /// Blocks for up to one iteration of the engine. If the address has no MAC, blocks until the peer has answered ARP
    /// or ND, at most 3 s with three requests; on a port in inline mode, this call runs the engine meanwhile.
    /// @throws weftio::error errc::invalid_argument the service is datagram; the queue is connected already; `peer` is
    ///         no address, or one of another version; its IP version or its service differs from that of this queue;
    ///         the agreed path MTU no longer fits the port's MTU;
    ///         errc::timed_out no host has answered for the peer's MAC;
    ///         errc::closed the port's device has been removed
    void connect(const rdma_address& peer);

    /// Datagrams: as queue_pair::attach() and queue_pair::detach(). A reset() leaves it as it is.
    /// @throws weftio::error as these
    void attach(const std::string& group);
    void detach(const std::string& group);

    /// State of the queue pair: INIT after construction (receives may be posted, nothing is received), RTS after
    /// connect(), ERR after a failure or a stop, until reset(). Blocks for up to one iteration of the engine.
    rdma_state state() const;
    /// Whether an entry or a receive has failed, a request of the peer was refused, or the queue pair was stopped. An
    /// unreliable queue pair does not fail for a request that it refuses: it drops and counts the request
    /// (rdma_counters::refused). Blocks for up to one iteration of the engine.
    bool failed() const;
    /// Any thread; blocks for up to one iteration of the engine.
    rdma_counters counters() const;
    /// A snapshot: what the queue pair waits for and what it has done last, also while a kernel waits. Any thread;
    /// blocks for up to one iteration of the engine.
    rdma_dump dump() const;
    /// Writes the last 256 packets of the port's queue pairs to a pcapng file: the first 96 bytes, the time and the
    /// direction of each. The comment of the file is dump(). May be called while a kernel waits. Blocks until the file
    /// is written.
    /// @throws weftio::error errc::not_supported the port keeps no packets (set rdma_device_options::trace or
    ///         WEFTIO_RDMA_TRACE); errc::not_found, errc::permission_denied, errc::device_error the file cannot be
    ///         written
    void write_trace(const std::string& path) const;
    std::uint32_t number() const noexcept; ///< queue pair number, at the port and on the wire
    /// Payload bytes of a packet: the value agreed with the peer; before connect(), the limit of this end.
    std::uint32_t path_mtu() const noexcept;

    /// Makes the queue pair usable again: not connected, at position 0, with fresh memory, new handles and a new
    /// address(). Counters continue, and a progress_engine stays attached. A kernel that still runs keeps the old
    /// memory, which the NIC no longer uses. Memory windows that the queue pair has bound stay bound, also for the next
    /// peer. The peer must reset too; then both connect again. Blocks for up to one
    /// iteration of the engine.
    /// @throws weftio::error errc::out_of_memory
    void reset();
    /// Destroys the queue pair now, unless windows of type 2A are bound by it
    /// (rdma_device_options::windows_of_type_2a). Afterwards the object is as one that was moved from.
    /// @throws weftio::error errc::in_use such windows are bound; the text says how many. Invalidate or destroy them
    ///         first. On error the queue pair is unchanged.
    void close();

 private:
    friend class rdma_connections;
    friend detail::internals;
    struct members;
    explicit rdma_queue(std::shared_ptr<members> state) noexcept;
    std::shared_ptr<members> state_;
};

} // namespace weftio
