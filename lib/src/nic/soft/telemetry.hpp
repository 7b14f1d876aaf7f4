// Counters for dpdk-telemetry.py: /weftio/ports, /weftio/port, /weftio/eth_rxq, /weftio/eth_txq,
// /weftio/rdma_queue, /weftio/rdma_dump, /weftio/flow.
#pragma once

#include <cstdint>

struct rte_tel_data;

namespace weftio::nic::soft {

class soft_port;

/// Lists a port in telemetry from construction to destruction. Any thread may construct and destroy it.
class telemetry_entry {
 public:
    explicit telemetry_entry(soft_port& port);
    telemetry_entry(const telemetry_entry&) = delete;
    telemetry_entry& operator=(const telemetry_entry&) = delete;
    ~telemetry_entry();

 private:
    soft_port& port_;
};

/// Shows what queue pair `number` waits for. @return false: the port has no queue pair of that number
bool fill_rdma_dump(soft_port& port, std::uint64_t number, rte_tel_data* dict);

} // namespace weftio::nic::soft
