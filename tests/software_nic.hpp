// The software NIC behind a port, for tests and benches.
#pragma once

#include "nic/soft/soft_port.hpp"
#include "weftio/port.hpp"

namespace weftio {

/// Throws std::bad_cast when another NIC is behind `port`.
inline nic::soft::soft_port& software_nic(const port& port)
{
    return dynamic_cast<nic::soft::soft_port&>(detail::internals::backend(port));
}

} // namespace weftio
