// Parses the spec of a port into DPDK's terms.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weftio/log.hpp"
#include "weftio/options.hpp"
#include "wires/loss.hpp"

namespace weftio::dpdk {

/// One way to make the port; several are tried in order.
struct port_candidate {
    std::string device; ///< DPDK device name: "net_pcap0"
    std::string arguments;
    bool pci = false;
};

struct port_spec {
    std::vector<port_candidate> candidates;
    std::string interface;   ///< kernel interface behind the port, if any
    std::string capture;     ///< capture file that the port reads, if any
    std::string written{};   ///< capture file that the port writes, if any
    bool sends = true;       ///< false for a capture that is only read
    wires::loss loss{};      ///< of the frames that a port of such a wire sends
    std::string wire{};      ///< name of the wire in shared memory, if the port is a member of one
    bool all_queues = false; ///< the port has all receive queues of the interface
    struct {
        log_level level = log_level::info;
        std::string text; ///< empty: none
    } note{};             ///< to be logged when the port opens
};

/// The largest MTU that a port of that spec can have, whatever its driver can.
std::uint16_t most_mtu_of(std::string_view spec);

/// Parses a spec for a port with `queues` queues in each direction and that MTU (0: the interface's), and checks what
/// can be checked without DPDK: files, interfaces, permissions. Blocks for up to half a second if a tap interface
/// exists that an ended program may still release. Throws weftio::error errc::invalid_argument, errc::not_found,
/// errc::permission_denied, errc::not_supported, errc::in_use.
port_spec parse_port_spec(std::string_view spec, unsigned queues = 1, std::uint32_t mtu = 0);

} // namespace weftio::dpdk
