// A loopback NIC for tests: frames of its send queues arrive at its receive queues. It implements the rings of
// docs/formats.md and shares no code with the software NIC, to test that all code above nic/backend.hpp works with a
// second NIC.
#pragma once

namespace weftio::test {

/// After this call, port::open("cable:...") opens such a NIC; "cable:ethernet" opens one without RDMA.
/// Of "cable:late", messages of queue pairs are complete before their bytes are there.
void add_cable_nic();

} // namespace weftio::test
