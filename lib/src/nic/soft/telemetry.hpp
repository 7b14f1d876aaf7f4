// Counters for dpdk-telemetry.py: /weftio/ports, /weftio/port, /weftio/eth_rxq, /weftio/eth_txq,
// /weftio/rdma_queue, /weftio/flow.
#pragma once

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

} // namespace weftio::nic::soft
