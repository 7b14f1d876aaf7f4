// A network to measure on.
#pragma once

#include <string>

namespace weftio::bench {

/// Moves the process into a network namespace of its own, with a veth pair `near` and `far` that are up. It is gone
/// when the process is. Call it before there are threads.
/// @throws std::runtime_error saying what could not be done
void make_private_network(const std::string& near, const std::string& far, unsigned mtu = 1500);

} // namespace weftio::bench
