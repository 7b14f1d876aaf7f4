// The software NIC behind a port, for tests and benches.
#pragma once

#include "nic/soft/soft_port.hpp"
#include "weftio/port.hpp"

namespace weftio {

/// The software NIC of `port`. Throws std::bad_cast if the port has another NIC.
inline nic::soft::soft_port& software_nic(const port& port)
{
    return dynamic_cast<nic::soft::soft_port&>(detail::internals::backend(port));
}

} // namespace weftio
