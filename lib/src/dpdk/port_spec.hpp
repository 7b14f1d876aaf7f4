// The words that open a port, and what they mean to DPDK.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weftio/port.hpp"

namespace weftio::nic {

/// One way to make the port; several are tried in order.
struct port_candidate {
    std::string device; ///< DPDK device name: "net_pcap0"
    std::string arguments;
    bool pci = false;
};

struct port_spec {
    std::vector<port_candidate> candidates;
    std::string interface; ///< kernel interface it takes over, if any
    std::string capture;   ///< capture file it reads, if any
    std::string written{}; ///< capture file that it writes, if any
    bool sends = true;     ///< frames can be sent on it; a capture that is only read takes none
    bool existing = false; ///< a DPDK port of that name is there already
    bool needs_raw_sockets = false;
};

/// Reads a spec, for a port with so many queues in each direction and that MTU (0: as it is), and checks what can be
/// checked without DPDK: files, interfaces, permissions. Blocks for half a second at most, for a tap interface that a
/// program before may leave. Throws weftio::error errc::invalid_argument, errc::not_found, errc::permission_denied,
/// errc::not_supported, errc::in_use.
port_spec parse_port_spec(std::string_view spec, unsigned queues = 1, std::uint32_t mtu = 0);

} // namespace weftio::nic
