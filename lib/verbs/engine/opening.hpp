// Ports are opened, and become devices.
#pragma once

#include <deque>

#include "node.hpp"
#include "settings.hpp"

namespace weftio::verbs {

/// Appends a node for each device. Starts EAL, with the drivers alone that the ports need, in a thread that leaves all
/// signals to the program's threads. Blocks until all ports are open.
/// @param events  of all nodes; must outlive them  @throws error, std::exception
void open_nodes(const settings& wanted, const weftio_verbs_host& host, watcher& events, std::deque<node>& nodes);

} // namespace weftio::verbs
