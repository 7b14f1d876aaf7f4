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

/// What an engine thread does when it finds nothing.
enum class idle_policy {
    sleep, ///< spin a little, yield a little, then sleep 20 us at a time: the friendly default
    yield, ///< spin a little, then yield
    busy,  ///< never give the core away: lowest latency
};

/// Who runs the engine.
enum class engine_mode {
    thread,        ///< a thread of its own
    inline_worker, ///< the receive and push calls of a CPU kernel, or port::turn()
};

struct port_options {
    engine_mode mode = engine_mode::thread;
    idle_policy idle = idle_policy::sleep;
    /// So many port queues in each direction, 1 to most_engines, and an engine for each, which shares nothing with the
    /// others while it works: the port's hash spreads flows over the queues, eth_rxq and eth_txq say at which engine
    /// they are. In inline mode each engine has to be driven, by kernels that use a queue there or by port::turn():
    /// what its port queue receives waits for that.
    unsigned engines = 1;
    static constexpr unsigned most_engines = 64;
    int core = -1; ///< core of the first engine's thread, engine n runs on core + n; -1: wherever the system puts them
    /// Priority of the engine thread as a real-time one (SCHED_FIFO), 1 to 99; 0: as any other thread. Nothing else
    /// runs on its core while a deadline is near; Linux takes the core away for 50 ms in each second unless
    /// kernel.sched_rt_runtime_us is -1.
    int realtime = 0;
    /// Hold packets back while the queue they go to is full, instead of dropping them. `automatic`: for capture files,
    /// which can wait; a wire cannot. Held packets also hold those behind them, whatever queue they go to.
    enum class hold { automatic, on, off } hold_when_full = hold::automatic;
    std::uint16_t mtu = 0;                    ///< 68 to 16,362; 0: the driver's own
    std::vector<std::string> eal_arguments{}; ///< extra words for EAL, used if this port is the one that starts it
};

/// Why packets never reached a kernel. Every packet that a port received was delivered or is in exactly one of these.
enum class drop_reason {
    no_match,        ///< no flow rule wanted it
    dropped_by_flow, ///< a rule said drop
    out_of_buffer,   ///< no free slot: the kernel has not released enough
    too_long,        ///< longer than a slot
    runt,            ///< shorter than an Ethernet header
    queue_closed,    ///< its queue went away while it was on its way
    count_           ///< how many there are
};
const char* to_string(drop_reason reason) noexcept;

/// Conservation, always: received = delivered + held + sum(dropped). Each is counted for itself, where packets come and
/// go.
struct port_counters {
    std::uint64_t received = 0;       ///< packets taken from the driver
    std::uint64_t received_bytes = 0; ///< of those that have been given to a queue or dropped
    std::uint64_t delivered = 0;      ///< completions written
    /// In the port: waiting for a slot (see port_options::hold_when_full), on the way to another engine, or being
    /// copied to where kernels read them (see eth_rxq_options::buffers).
    std::uint64_t held = 0;
    std::array<std::uint64_t, static_cast<std::size_t>(drop_reason::count_)> dropped{};
    /// Lost below us, as the driver reports it; not part of `received`. On AF_XDP at least what the kernel's interface
    /// dropped of what arrived since the port was opened: its rx_dropped and rx_missed_errors, of all its queues.
    std::uint64_t driver_missed = 0;
    std::uint64_t copied_bytes = 0;    ///< payload that was copied on its way to a kernel
    std::uint64_t capture_damaged = 0; ///< 1 when a capture file ended inside a record
    /// Frames that the kernel's interface behind the port dropped instead of sending them since the port was opened:
    /// its tx_dropped, of all programs. They have counted as sent.
    std::uint64_t tx_dropped = 0;

    std::uint64_t dropped_total() const noexcept;
};

/// A DPDK port whose queues kernels can own.
///
/// - Ownership: a cheap handle; queues and flows made on it keep it alive. The last one closes it, and gives a kernel's
///   interface the MTU and the promiscuous mode that it had, unless somebody else has changed them meanwhile.
/// - Threads: any. Queues and flows come and go while it runs.
/// - Processes: a child of fork() may exec or exit, which does not touch the port; it has none of its threads and must
///   not use or end ports, queues and kernels.
class port {
 public:
    /// Opens `pcap:FILE`, `pcap:rx=FILE,tx=FILE` (either may be left out), `pcap:builtin`, `iface:NAME`, `tap:NAME`,
    /// `loopback`, `null`, any DPDK devargs (`net_af_xdp0,iface=eth0`), a PCI address, or the name of a DPDK port that
    /// exists already. Starts EAL if nobody has: in memory, without a PCI scan unless a PCI port is named.
    /// A driver has as many queues as its own words say (`net_af_packet0,iface=eth0,qpairs=4`); `iface:NAME` says them
    /// itself. A capture that a port of this process writes is neither read nor written by another.
    /// Blocks until packets can arrive: some 10 to 100 ms; on an interface of which this process has had a port
    /// before until Linux has let go of that, at most 3 s.
    /// @throws weftio::error errc::invalid_argument, errc::not_found, errc::permission_denied, errc::in_use,
    ///         errc::not_supported, errc::out_of_memory, also for a 65th port; the text says which value and what to do
    static port open(std::string_view spec, port_options options = {});

    const std::string& spec() const noexcept;
    const std::string& driver() const noexcept; ///< "net_af_xdp", ...: for `iface:` it says which one worked
    std::array<std::uint8_t, 6> mac() const noexcept;
    /// The longest packet that can be sent: the MTU of the kernel's interface behind the port, if there is one, else
    /// the driver's; and no more than the driver can take.
    std::uint16_t mtu() const noexcept;
    /// Whether frames can leave now: of a kernel's interface, that it is up and has a carrier; of other ports, what the
    /// driver says. Any thread; does not block.
    bool link_up() const noexcept;
    /// All of one moment, between two turns of all engines: blocks as long as one turn, while packets arrive without a
    /// pause up to 1 ms. Any thread.
    port_counters counters() const;

    /// Whether a capture file has been read to its end and nothing of it is held; always false for other ports.
    bool exhausted() const noexcept;
    /// Whether the device, or the kernel interface behind it, has been taken away, or a NIC that is unplugged waits for
    /// the port to close. An engine notices within some 20 ms, as long as it has turns: send queues are in error then,
    /// what they had not handed over is flushed, and nothing is received any more.
    bool gone() const noexcept;
    /// How many it was opened with.
    unsigned engines() const noexcept;
    /// Inline mode: runs each engine once and returns the packets and entries they moved. Any thread; two that drive
    /// the same engine wait for each other.
    /// @throws weftio::error errc::invalid_argument the port has engine threads
    unsigned turn();
    /// The same of one engine.
    /// @throws weftio::error errc::invalid_argument the port has engine threads, or no such engine
    unsigned turn(unsigned engine);

    nic::backend& backend() const noexcept { return *backend_; }
    const std::shared_ptr<nic::backend>& share() const noexcept { return backend_; }

 private:
    explicit port(std::shared_ptr<nic::backend> backend) : backend_(std::move(backend)) {}

    std::shared_ptr<nic::backend> backend_;
};

} // namespace weftio
