// A network port: the software NIC on top of any DPDK port.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weftio {

namespace nic {
class backend;
}

/// What an engine's thread does while it is idle.
enum class idle_policy {
    sleep, ///< spin briefly, then yield briefly, then sleep 20 us at a time: the default
    yield, ///< spin briefly, then yield
    busy,  ///< always spin: lowest latency
};

/// Who runs the engines.
enum class engine_mode {
    thread, ///< a thread for each engine
    /// Receive and push calls of a CPU kernel, or port::turn(). Kernels on other devices drive no engine: beside them
    /// the application calls port::turn().
    inline_worker,
};

struct port_options {
    engine_mode mode = engine_mode::thread;
    idle_policy idle = idle_policy::sleep;
    /// Number of port queues in each direction, 1 to most_engines, each with an engine of its own. Engines share
    /// nothing while they work. The port's hash distributes flows over the queues; eth_rxq and eth_txq tell at which
    /// engine they are. In inline mode every engine must be driven, by kernels that use a queue there or by
    /// port::turn(); packets of its port queue wait until then.
    unsigned engines = 1;
    static constexpr unsigned most_engines = 64;
    int core = -1; ///< core of the first engine's thread; engine n runs on core + n; -1: the system decides
    /// Real-time priority (SCHED_FIFO) of the engine threads, 1 to 99; 0: normal scheduling. Near a deadline nothing
    /// else runs on the engine's core. Linux takes the core away for 50 ms in each second unless
    /// kernel.sched_rt_runtime_us is -1.
    int realtime = 0;
    /// Hold packets back while their queue is full, instead of dropping them. `automatic` does so for capture files,
    /// which can wait, unlike a wire. A held packet also holds those behind it, whatever their queue.
    enum class hold { automatic, on, off } hold_when_full = hold::automatic;
    std::uint16_t mtu = 0;                    ///< 68 to 16,362; 0: the driver's own
    std::vector<std::string> eal_arguments{}; ///< extra EAL arguments, used if this port starts EAL
};

/// Why a packet did not reach a kernel. Each packet that a port received is delivered, held, or counted under one
/// reason.
enum class drop_reason {
    no_match,        ///< no flow rule matched
    dropped_by_flow, ///< a rule dropped it; what the driver drops for a rule is not received (see flow)
    out_of_buffer,   ///< no free slot: the kernel has not released enough
    too_long,        ///< longer than a slot
    runt,            ///< shorter than an Ethernet header
    queue_closed,    ///< its queue was closed while the packet was in transit
    count_           ///< number of reasons
};
const char* to_string(drop_reason reason) noexcept;

/// Always: received = delivered + held + sum(dropped). Each is counted independently, at the place where packets enter
/// or leave.
struct port_counters {
    /// Packets taken from the driver, but for those of queue pairs, which are in rdma_counters and, in sum and with those
    /// for no queue pair, in DPDK's telemetry (`rdma_received` of `/weftio/port`).
    std::uint64_t received = 0;
    std::uint64_t received_bytes = 0; ///< bytes of packets given to a queue or dropped
    std::uint64_t delivered = 0;      ///< completions written
    /// Packets in the port: waiting for a slot (see port_options::hold_when_full), in transit to another engine, or
    /// being copied to the memory that kernels read (see eth_rxq_options::buffers).
    std::uint64_t held = 0;
    std::array<std::uint64_t, static_cast<std::size_t>(drop_reason::count_)> dropped{};
    /// Packets lost below the port, as the driver reports them; not part of `received`. On AF_XDP at least the packets
    /// that the kernel's interface has dropped on all its queues since the port was opened: rx_dropped and
    /// rx_missed_errors.
    std::uint64_t driver_missed = 0;
    std::uint64_t copied_bytes = 0;    ///< bytes copied on the way to a kernel
    std::uint64_t capture_damaged = 0; ///< 1 if a capture file ended inside a record
    /// Frames that the kernel's interface behind the port has dropped instead of sending since the port was opened: its
    /// tx_dropped, which counts frames of all programs. The frames of this port among them have counted as sent.
    std::uint64_t tx_dropped = 0;

    std::uint64_t dropped_total() const noexcept;
};

/// A DPDK port whose queues kernels can own.
///
/// - Ownership: a cheap handle; queues and flows on the port keep it alive. The last one closes the port and restores
///   the MTU and the promiscuous mode of the kernel's interface, unless somebody else has changed them meanwhile.
/// - Threads: any. Queues and flows may be made and destroyed while the port runs.
/// - Processes: a child of fork() may exec or exit, which does not affect the port. It has none of the port's threads
///   and must not use or destroy ports, queues and kernels.
class port {
 public:
    /// Opens `pcap:FILE`, `pcap:rx=FILE,tx=FILE` (either may be left out), `pcap:builtin`, `iface:NAME`, `tap:NAME`,
    /// `loopback`, `null`, any DPDK devargs (`net_af_xdp0,iface=eth0`), a PCI address, or the name of a DPDK port that
    /// exists already. Starts EAL unless it runs: in memory, without a PCI scan unless a PCI port is named.
    /// A driver's arguments must give it enough queues (`net_af_packet0,iface=eth0,qpairs=4`); `iface:NAME` does so
    /// itself. A capture that one port of this process writes cannot be read or written by another.
    /// Blocks until packets can arrive: some 10 to 100 ms; on an interface of an earlier port of this process up to
    /// 3 s, until Linux has released it.
    /// @throws weftio::error errc::invalid_argument, errc::not_found, errc::permission_denied, errc::in_use,
    ///         errc::not_supported, errc::out_of_memory, also for a 65th port; the text says which value and what to do
    static port open(std::string_view spec, port_options options = {});

    const std::string& spec() const noexcept;
    const std::string& driver() const noexcept; ///< "net_af_xdp", ...: for `iface:` the driver that worked
    std::array<std::uint8_t, 6> mac() const noexcept;
    /// The longest packet that can be sent: the MTU of the kernel's interface behind the port, else the driver's;
    /// limited to what the driver can take.
    std::uint16_t mtu() const noexcept;
    /// Whether frames can leave now. For a kernel's interface: it is up and has a carrier; for other ports: the
    /// driver's link status. Any thread; never blocks.
    bool link_up() const noexcept;
    /// Counters of one moment, when every engine is between two iterations: blocks for up to one iteration, or up to 1
    /// ms while packets arrive without a pause. Any thread.
    port_counters counters() const;

    /// Whether a capture file has been read to its end and no packet of it is held; always false for other ports.
    bool exhausted() const noexcept;
    /// Whether the device, or the kernel interface behind it, has been removed, or an unplugged NIC waits for the port
    /// to close. An engine detects it within some 20 ms while it runs: send queues then fail and flush what they had
    /// not handed over, and nothing is received any more.
    bool gone() const noexcept;
    /// Number of engines.
    unsigned engines() const noexcept;
    /// Inline mode: runs each engine once. Returns 0 when there was nothing to do, else how much was: packets that came,
    /// entries that were begun, and entries that completed, so that a frame counts twice. Any thread; threads that drive
    /// the same engine wait for each other.
    /// @throws weftio::error errc::invalid_argument the port has engine threads
    unsigned turn();
    /// Like turn(), for one engine.
    /// @throws weftio::error errc::invalid_argument the port has engine threads, or no such engine
    unsigned turn(unsigned engine);

    nic::backend& backend() const noexcept { return *backend_; }
    const std::shared_ptr<nic::backend>& share() const noexcept { return backend_; }

 private:
    explicit port(std::shared_ptr<nic::backend> backend) : backend_(std::move(backend)) {}

    std::shared_ptr<nic::backend> backend_;
};

} // namespace weftio
