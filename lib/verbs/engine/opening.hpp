// Opens the ports of the devices.
#pragma once

#include <deque>

#include "node.hpp"
#include "settings.hpp"

namespace weftio::verbs {

/// Appends a node for each device. Starts EAL with only the drivers that the ports need, in a thread that blocks
/// signals, so that the program's threads get them. Blocks until all ports are open.
/// @param events  for all nodes; must outlive them  @throws error, std::exception
void open_nodes(const settings& wanted, const weftio_verbs_host& host, watcher& events, std::deque<node>& nodes);

} // namespace weftio::verbs
