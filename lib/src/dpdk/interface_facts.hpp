// What decides how a port takes an interface of Linux.
#pragma once

#include <string>

namespace weftio::dpdk {

struct interface_facts {
    unsigned receive_queues = 1; ///< in use
    unsigned combined_queues =
        0;                     ///< of these, the ones that receive and send (ethtool -l); AF_XDP's driver counts them
    bool has_channels = false; ///< "ethtool -L" can change the number of queues
    bool is_virtual = false;   ///< no device behind it, such as veth: its driver copies frames of AF_XDP sockets
    std::string
        used_by_linux; ///< why Linux's own network stack needs it: "has the address 10.0.0.1"; empty: it does not
};

/// Reads them for an interface in the network namespace of the calling thread. What Linux does not report keeps its
/// initial value. Throws std::bad_alloc.
interface_facts read_facts(const std::string& name);
/// The number of receive queues in use, as "ethtool -l" has it; 0: the interface does not report it. In the network
/// namespace of the calling thread.
unsigned queues_of(const std::string& name) noexcept;

} // namespace weftio::dpdk
