// What the driver of a port does to the packets of the Linux interface behind it.
#pragma once

#include <string>

namespace weftio {

/// `iface:NAME` is AF_XDP or AF_PACKET, which differ for packets and for Linux. Constant while the port is open.
struct port_info {
    std::string driver; ///< see port::driver()
    /// Linux receives the packets of the interface, too: its own addresses there stay reachable. False on AF_XDP, which
    /// takes all packets away from Linux, and for ports without an interface of Linux.
    bool linux_receives_too = false;
    /// Received IPv4 fragments without a VLAN tag are joined: a kernel sees the whole packet, or none if a fragment is
    /// missing. A packet longer than the driver's buffers is truncated and counts as drop_reason::too_long.
    bool joins_fragments = false;
    /// The outer tag of a received 802.1ad frame (0x88a8) is an 802.1Q tag (0x8100) when a kernel sees it.
    bool rewrites_service_tags = false;
};

} // namespace weftio
