// RDMA over RoCEv2: kernels read, write and change the memory of a peer, and send it messages.
//
// A connection has a queue pair at each end. Each end makes an rdma_queue, hands the peer its address() over any
// channel, and calls connect() with the peer's. From then on kernels use both directions (weftio/device/rdma.h). A peer
// reaches memory of ours whose region has rights for it, by the key that remote_region tells it.
//
// The peer may be a queue pair that is not Weftio's, of a ConnectX or of Linux's rdma_rxe: rdma_peer has what programs
// over verbs tell each other.
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
#include "weftio/memory.hpp"
#include "weftio/port.hpp"
#include "weftio/rdma_dump.hpp"
#include "weftio/rdma_state.hpp"

namespace weftio {

struct rdma_device_options {
    /// IPv4 ("10.0.0.1") or IPv6 ("fd00::1"), without a prefix length: one host's own, which the host's system does not
    /// have. The port takes what is UDP to port 4791 of this address, before its rules, and who asks for its MAC.
    std::string address;
    /// More addresses that the device has, each as `address`; queue_pair_attributes::gid_index names one.
    std::vector<std::string> more_addresses{};
    /// The device has its IPv6 link-local address, too, which is made from its MAC (fe80::, EUI-64), as the last one.
    bool link_local = false;
    /// The VLAN that the address is in: packets both ways have a tag with this identifier, 1 to 4094; 0: none.
    std::uint16_t vlan = 0;
    std::uint8_t vlan_priority =
        0; ///< of the tag that packets are sent with, 7 at most; a tag with VLAN 0 may have one
    /// Of a port in inline mode only: the application promises turns of the engine at all times, by port::turn() or by
    /// a CPU kernel that waits, for a peer's requests are answered in turns, and no kernel is asked.
    bool application_turns = false;
    /// The port keeps the last packets of its queue pairs for rdma_queue::write_trace(): each costs a look at the clock
    /// and a copy of 96 bytes, and queue pairs of one port exchange packets, as port_options::rdma_by_packet says. Where the environment variable WEFTIO_RDMA_TRACE names a folder when the port is opened,
    /// the port keeps them too, and its engine writes them to a file there whenever a queue pair fails, 64 times a process.
    bool trace = false;
};

/// A port with an address, at which queue pairs are made.
///
/// The port answers who asks for the MAC of the address (ARP, IPv6 neighbor discovery), as long as the rdma_device or a
/// queue pair of it exists. rdma_queue::connect() asks in turn, where the peer's rdma_address tells no MAC. Packets go
/// to that MAC, not by way of a router. Where the port's driver has no MAC address (net_ring), the address has one that
/// is made from it.
///
/// - Ownership: a cheap handle; copies are the same; keeps the port alive.
/// - Threads: any.
class rdma_device {
 public:
    /// @throws weftio::error errc::invalid_argument no address, or none that a host can have; a VLAN or a priority that
    ///         none is; the port is in inline mode and `application_turns` is false, or the port has threads and it is
    ///         true; errc::in_use another rdma_device of the port has the address; errc::not_supported the port's MTU
    ///         is too small for the smallest path MTU, the port cannot send, or has several engines
    rdma_device(const port& port, const rdma_device_options& options);

    const std::string& address() const noexcept; ///< as inet_ntop() writes it
    bool is_ipv6() const noexcept;
    /// All its addresses: `address`, more_addresses, the link-local one; their places are verbs' GID indices.
    std::vector<std::string> gids() const;
    /// The largest path MTU that the port's MTU has room for: 256, 512, 1024, 2048 or 4096.
    std::uint32_t most_path_mtu() const;

 private:
    friend class queue_pair;
    friend class rdma_queue;
    friend detail::internals;

    struct state;
    std::shared_ptr<const state> state_;
};

enum class rdma_service : std::uint8_t {
    reliable,  ///< RC: an entry is done when the peer has acknowledged it; packets that are lost are repeated
    unreliable ///< UC: an entry is done when it is sent; a message that loses a packet is lost; no reads, no atomics
};

/// A queue pair as programs over verbs tell each other of it. In brackets what verbs call it.
struct rdma_peer {
    std::string address;                           ///< IPv4 or IPv6 (its GID)
    std::uint32_t queue = 0;                       ///< its number (qp_num): 2 to 2^24 - 1
    std::uint32_t first_psn = 0;                   ///< of its requests (sq_psn): 2^24 - 1 at most
    rdma_service service = rdma_service::reliable; ///< (qp_type)
    std::uint32_t path_mtu = 1024;                 ///< in bytes (path_mtu): 256, 512, 1024, 2048 or 4096
    std::uint8_t most_reads = 16; ///< that it takes (max_dest_rd_atomic), and has in flight: at least 1
    /// Of the peer, or of the router on the way to it. Nothing: rdma_queue::connect() asks for that of the address.
    std::optional<std::array<std::uint8_t, 6>> mac{};
};

/// What a peer needs to connect to a queue pair. The same 64 bytes on hosts of any byte order; they carry a version and
/// a sum, so what was cut, changed or made by an incompatible version is refused.
struct rdma_address {
    static constexpr std::size_t size_bytes = 64;
    std::array<std::uint8_t, size_bytes> bytes{};

    /// 128 hexadecimal digits.
    std::string text() const;
    /// @throws weftio::error errc::invalid_argument it is not what text() has written, or not all of it
    static rdma_address of_text(std::string_view text);
    /// @throws weftio::error errc::invalid_argument they are no address, not all of it, or one of another version
    static rdma_address of_bytes(std::span<const std::uint8_t> bytes);
    /// Of a queue pair that tells it otherwise.
    /// @throws weftio::error errc::invalid_argument a value that the comments of rdma_peer exclude
    static rdma_address of(const rdma_peer& peer);
    /// For a program that connects otherwise.
    /// @throws weftio::error as of_bytes()
    rdma_peer peer() const;

    bool operator==(const rdma_address&) const = default;
};

/// Memory of ours that a peer may use, or a peer's that we may: what is to be told of it, as rdma_address is.
struct remote_region {
    static constexpr std::size_t size_bytes = 32;
    std::uint64_t address = 0; ///< by which the region names its bytes: memory_region::iova(), and behind
    std::uint64_t bytes = 0;
    std::uint32_t rkey = 0; ///< host byte order
    access rights = access::none;

    /// `bytes` bytes of a region from `offset` on; 0: up to its end. `rkey` is memory_region::lkey(); where the queue pair
    /// is at a port at which the region has another key, set it to that one.
    /// @throws weftio::error errc::invalid_argument they are not within the region, or it has no right for a peer
    static remote_region of(const memory_region& region, std::size_t offset = 0, std::size_t bytes = 0);

    std::array<std::uint8_t, size_bytes> to_bytes() const;
    std::string text() const; ///< 64 hexadecimal digits
    /// @throws weftio::error errc::invalid_argument as those of rdma_address
    static remote_region of_text(std::string_view text);
    static remote_region of_bytes(std::span<const std::uint8_t> bytes);
    /// For kernels: pass it to device::launch, where the kernel has a parameter `struct weftio_dev_remote`.
    weftio_dev_remote on_device() const noexcept;

    bool operator==(const remote_region&) const = default;
};

struct rdma_queue_options {
    rdma_service service = rdma_service::reliable; ///< the same at both ends
    std::uint32_t entries = 1024;                  ///< of the send ring; a power of two in 64..32768
    std::uint32_t receive_entries = 1024;          ///< of the receive ring; likewise
    std::uint32_t receive_segments = 1;            ///< pieces of a receive; a power of two, 64 at most
    /// Bytes of payload in a packet: 256, 512, 1024, 2048 or 4096; 0: as many as the port's MTU has room for. Both ends
    /// use the smaller one of theirs.
    std::uint32_t path_mtu = 0;
    access rights = access::remote_write | access::remote_read | access::remote_atomic; ///< what the peer may ask for
    std::uint8_t most_reads = 16; ///< reads and atomics in flight, in each direction: 1..16, and the peer's at most
    std::uint8_t timeout = 14;    ///< time to wait for an acknowledgment: 4.096 us x 2^timeout; 0: for ever; 31 at most
    std::uint8_t retry_count = 7; ///< repeats after a loss; 7 at most
    std::uint8_t rnr_retry = 7;   ///< repeats while the peer has no receive; 7: for ever
    /// Code of how long the peer waits at least when we have no receive: 0.64 ms; 31 at most. A peer of this library
    /// doubles a time below 0.64 ms with each repeat, up to that.
    std::uint8_t min_rnr_timer = 12;
    std::uint8_t traffic_class = 0; ///< DSCP in the upper six bits
    std::uint8_t hop_limit = 64;    ///< or time to live; at least 1
    /// Sequence number of the first request, 2^24 - 1 at most. Nothing: another one for each connection, so that late
    /// packets of the one before are out of sequence.
    std::optional<std::uint32_t> first_psn{};
    protection_domain domain{}; ///< local memory of entries, and memory that the peer names, is of this one
};

/// The receive ring of an rdma_queue, for device::launch. It is part of the queue: take it by reference.
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
/// The peer may be another port, another machine, or another queue pair of this port. An entry that
/// names memory of ours which it may not use fails our queue pair, one that names memory of the peer's fails both ends,
/// where the service is reliable, and no byte changes; the progress_engine of each end tells why. What protects memory is its key, its rights and its
/// domain, not that nobody knows its address.
///
/// - Ownership: move-only; keeps its port and its device alive. The destructor flushes what has not been executed, and
///   blocks as long as one turn. The peer hears nothing of it: its requests fail once its repeats are used up.
/// - Threads: create, move, connect, reset and destroy from one thread at a time; connect also while a kernel holds the
///   handles.
class rdma_queue {
 public:
    /// @throws weftio::error errc::invalid_argument an option that its comment excludes, a path MTU above what the
    ///         port's MTU has room for; errc::not_supported the port cannot send, has several engines, or a NIC
    ///         without queue pairs; errc::out_of_memory
    rdma_queue(const rdma_device& at, const device& device, rdma_queue_options options = {});
    rdma_queue(rdma_queue&&) noexcept;
    rdma_queue& operator=(rdma_queue&&) noexcept;
    ~rdma_queue();

    /// The send side. Pass the queue itself to device::launch; of a queue on device "cpu" the host may call the
    /// functions of weftio/device/rdma.h with both handles, too.
    weftio_dev_rdma* handle() const noexcept;
    weftio_dev_control* control() const noexcept;
    /// The receive side: an argument of its own for device::launch. The reference is valid until the queue ends, also
    /// when it is moved.
    const rdma_receives& receives() const noexcept;

    /// What the peer's connect() wants. Another one after each reset().
    rdma_address address() const noexcept;
    /// Connects to the queue pair that the address is of, which connects to this one at any time. Entries and receives
    /// that were committed before are executed from now on. Blocks as long as one turn; where the address tells no MAC,
    /// until the peer has answered for it, 3 s at most: it is asked three times, and a port in inline mode gets its
    /// turns meanwhile. An entry fails once its repeats are used up, half a second by default: begin when the peer has
    /// connected, too.
    /// @throws weftio::error errc::invalid_argument the queue is connected already; what is given is no address, or one
    ///         of another version; the address is of the other IP version, or the queue pair of the other service; the
    ///         path MTU that both can do is no longer within the port's MTU; errc::timed_out nobody has answered for
    ///         the peer's MAC; errc::closed the port's device has gone meanwhile
    void connect(const rdma_address& peer);

    /// A queue pair that is made receives nothing yet, though receives may be posted (INIT); connect() makes it RTS at
    /// once; what fails it, or stops it, makes it ERR until reset(). Blocks as long as one turn.
    rdma_state state() const;
    /// Whether an entry or a receive has failed, a request of the peer's was refused, or the queue pair was stopped. An
    /// unreliable queue pair drops what it refuses, and counts it (rdma_counters::refused).
    /// Blocks as long as one turn.
    bool failed() const;
    /// Any thread; blocks as long as one turn.
    rdma_counters counters() const;
    /// What it waits for, and what it has done last, also while a kernel waits. Any thread; blocks as long as one turn.
    rdma_dump dump() const;
    /// Writes the last 256 packets of the port's queue pairs, the first 96 bytes of each with time and direction, as a
    /// pcapng file with dump() as its comment, also while a kernel waits. Blocks as long as the file does.
    /// @throws weftio::error errc::not_supported the port keeps none (rdma_device_options::trace, WEFTIO_RDMA_TRACE);
    ///         errc::not_found, errc::permission_denied, errc::device_error the file cannot be written
    void write_trace(const std::string& path) const;
    std::uint32_t number() const noexcept; ///< at its port, and on the wire
    /// Bytes of payload in a packet: what both ends agreed on; before connect() what this end can do.
    std::uint32_t path_mtu() const noexcept;

    /// Brings the queue pair back, not connected, at position 0 with fresh memory, other handles and another address();
    /// counters go on, and a progress_engine stays attached. A kernel that still runs keeps the old memory, which the
    /// NIC no longer uses. The peer resets too, and both connect again. Blocks as long as one turn.
    /// @throws weftio::error errc::out_of_memory
    void reset();

 private:
    friend detail::internals;
    struct members;
    std::shared_ptr<members> state_;
};

} // namespace weftio
