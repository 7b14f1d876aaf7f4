// A network to measure on.
#pragma once

#include <string>

namespace weftio::bench {

/// Moves the process into a network namespace of its own, with a veth pair `near` and `peer` that is up. The namespace
/// ends with the process. Call it before the process has other threads.
/// @throws std::runtime_error a step failed; the text names it
void make_private_network(const std::string& near, const std::string& peer, unsigned mtu = 1500);

} // namespace weftio::bench
