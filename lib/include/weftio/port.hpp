// A network port: the software NIC on top of any DPDK port.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weftio/counters.hpp"
#include "weftio/detail/internals.hpp"
#include "weftio/options.hpp"
#include "weftio/port_info.hpp"

namespace weftio {

/// A DPDK port whose queues kernels can own.
///
/// - Ownership: a cheap handle; queues and flows on the port keep it alive. The last one closes the port and restores
///   the MTU and the promiscuous mode of the Linux interface, unless another program has changed them meanwhile.
/// - Threads: any. Queues and flows may be made and destroyed while the port runs.
/// - Processes: a child of fork() may exec or exit, which does not affect the port. It has none of the port's threads
///   and must not use or destroy ports, queues and kernels.
class port {
 public:
    /// Opens `pcap:FILE`, `pcap:rx=FILE,tx=FILE` (either may be left out), `pcap:builtin`, `iface:NAME`, `tap:NAME`,
    /// `wire:NAME`, `loopback`, `null`, any DPDK devargs (`net_af_xdp0,iface=eth0`), a PCI address, or the name of a
    /// DPDK port that exists already. Starts EAL unless it runs: in memory, without a PCI scan unless a PCI port is
    /// named.
    /// A driver's arguments must give it enough queues (`net_af_packet0,iface=eth0,qpairs=4`); `iface:NAME` does so
    /// itself. `iface:NAME` is AF_XDP where that receives every packet and takes none that Linux needs: the interface
    /// has one receive queue for each engine, no IP address (except IPv6 link-local), and no XDP program of another
    /// program. Else it is AF_PACKET, and the log says why; info() returns the consequences. `iface:NAME,xdp=only` is
    /// AF_XDP, also on an interface with an address, or it is refused. A capture that one port of this process writes
    /// cannot be read or written by another.
    /// Blocks until packets can arrive: some 10 to 100 ms; on an interface of an earlier port of this process up to
    /// 3 s, until Linux has released it.
    /// @throws weftio::error errc::invalid_argument, errc::not_found, errc::permission_denied, errc::in_use,
    ///         errc::not_supported, errc::out_of_memory, also with 64 ports and engines open; the text says what to do
    static port open(std::string_view spec, port_options options = {});

    const std::string& spec() const noexcept;
    const std::string& driver() const noexcept; ///< "net_af_xdp", ...: for `iface:` the driver that worked
    /// What the driver does to the packets of the interface. Throws std::bad_alloc.
    port_info info() const;
    std::array<std::uint8_t, 6> mac() const noexcept;
    /// The longest packet that can be sent: the MTU of the Linux interface behind the port, else of the driver; at
    /// most what the driver can send.
    std::uint16_t mtu() const noexcept;
    /// Whether frames can leave now. For a Linux interface: it is up and has a carrier; for other ports: the
    /// driver's link status. Any thread; never blocks.
    bool link_up() const noexcept;
    /// Counters of one moment, when every engine is between two iterations: blocks for up to one iteration, or up to 1
    /// ms while packets arrive without a pause. Any thread.
    port_counters counters() const;

    /// Whether a capture file has been read to its end and no packet of it is held; always false for other ports.
    bool exhausted() const noexcept;
    /// Whether the device, or the Linux interface behind it, has been removed, or an unplugged NIC waits for the port
    /// to close, or another program has detached or replaced the port's XDP program, without which AF_XDP receives
    /// nothing. A running engine detects this within about 20 ms: send queues then fail and flush the entries that the
    /// driver has not taken, and no packet is received any more.
    bool gone() const noexcept;
    /// Number of engines.
    unsigned engines() const noexcept;
    /// Inline mode: runs each engine once. Returns 0 when there was nothing to do, else a measure of the work done: the
    /// number of packets received, entries begun and entries completed (a sent frame counts twice). Any thread; threads
    /// that run the same engine wait for each other.
    /// @throws weftio::error errc::invalid_argument the port has engine threads
    unsigned turn();
    /// Like turn(), for one engine.
    /// @throws weftio::error errc::invalid_argument the port has engine threads, or no such engine
    unsigned turn(unsigned engine);

 private:
    friend detail::internals;
    explicit port(std::shared_ptr<nic::backend> backend) : backend_(std::move(backend)) {}

    std::shared_ptr<nic::backend> backend_;
};

} // namespace weftio
