// The setups that the RDMA benchmark measures: two ends, at two ports that a wire connects, or both at one port.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weftio/weftio.hpp"

struct rte_ring;

namespace weftio::bench {

/// The cores of kernels and engines. If cores are equal, engines yield theirs.
struct rdma_cores {
    int near_kernel, near_engine, peer_engine, peer_kernel;
};

/// Two queue pairs that are connected.
struct rdma_pair {
    std::array<rdma_queue, 2> ends;
};

/// Memory of one end that the peer may access.
struct rdma_memory {
    rdma_memory(const port& port, const device& device, std::size_t bytes);

    weftio::memory memory;
    memory_region region;
    weftio_dev_buf buffer;
    weftio_dev_remote remote;
};

class rdma_setup {
 public:
    static constexpr std::size_t memory_bytes = std::size_t{16} << 20;
    static constexpr std::uint16_t port_mtu = 4200; ///< for packets of 4096 bytes of payload

    /// Two ports; each receives the frames that the other sends. Threads run their engines, or run_turns() does.
    static std::unique_ptr<rdma_setup> on_rings(const rdma_cores& cores, engine_mode mode = engine_mode::thread);
    /// One port; its engine has a thread, or waits of the calling thread run it.
    static std::unique_ptr<rdma_setup> at_one_port(const rdma_cores& cores, engine_mode mode);
    /// Two ports that exist, as port::open takes them, with the MTU that they have. Threads run their engines.
    static std::unique_ptr<rdma_setup> at(const std::string& near, const std::string& peer, const rdma_cores& cores);
    /// As at(), on two cores: waits of the calling thread run the near engine, and the peer's engine has a thread.
    static std::unique_ptr<rdma_setup> on_two_cores(const std::string& near, const std::string& peer,
                                                    const rdma_cores& cores);
    rdma_setup(const rdma_setup&) = delete;
    rdma_setup& operator=(const rdma_setup&) = delete;
    ~rdma_setup();

    /// Runs each engine of two ports without threads once. @pre with_turns()
    void run_turns() const;
    /// This object if the calling thread must run the engines of both ports by run_turns(); else nullptr.
    const rdma_setup* with_turns() const { return has_turns_ ? this : nullptr; }
    const port& at_end(unsigned end) const { return *ports_[end]; }
    const rdma_device& device_at(unsigned end) const { return *devices_[end]; }
    const rdma_memory& memory(unsigned end) const { return *memories_[end]; }
    std::uint32_t path_mtu() const { return devices_[0]->most_path_mtu(); }
    rdma_pair pair(std::uint32_t entries = 1024, std::uint32_t receives = 64) const;

    const device cpu = device::open("cpu");

 private:
    rdma_setup() = default;
    void open(const std::string& near, const std::string& peer, const rdma_cores& cores,
              std::array<engine_mode, 2> modes, std::uint16_t mtu);

    bool has_turns_ = false;           ///< two ports, without threads
    std::uint8_t timeout_ = 18;        ///< 1 s: rings lose nothing, and an engine may be preempted for long
    std::array<rte_ring*, 2> wires_{}; ///< wires_[n] carries frames to port n
    std::string name_;
    std::array<std::optional<port>, 2> ports_;
    std::array<std::optional<rdma_device>, 2> devices_;
    std::array<std::optional<rdma_memory>, 2> memories_;
};

} // namespace weftio::bench
