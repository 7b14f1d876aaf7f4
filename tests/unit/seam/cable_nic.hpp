// A NIC of the tests' own: what its send queues send comes back to its receive queues. It reads and writes rings by
// docs/formats.md and shares no code with the software NIC, so that everything above nic/backend.hpp is seen to work
// with a second one.
#pragma once

namespace weftio::test {

/// From now on port::open("cable:...") opens one; "cable:ethernet" opens one that cannot do RDMA.
void add_cable_nic();

} // namespace weftio::test
