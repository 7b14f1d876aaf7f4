// A DPDK port with an engine behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "nic/interface_lock.hpp"
#include "nic/port_spec.hpp"
#include "nic/soft/engine.hpp"
#include "nic/soft/key_table.hpp"
#include "nic/soft/receiver.hpp"
#include "nic/soft/rx_pool.hpp"
#include "nic/soft/sender.hpp"
#include "nic/telemetry.hpp"
#include "nic/xdp_objects.hpp"
#include "weftio/port.hpp"

struct rte_mempool;

namespace weftio::nic {

/// Finds or makes the DPDK device, configures and starts it, and takes it down in the destructor.
class dpdk_port {
 public:
    /// Throws weftio::error as port::open does.
    dpdk_port(std::string_view spec, const port_spec& parsed, const port_options& options);
    dpdk_port(const dpdk_port&) = delete;
    dpdk_port& operator=(const dpdk_port&) = delete;
    ~dpdk_port();

    std::uint16_t id() const noexcept { return id_; }
    const std::string& driver() const noexcept { return driver_; }
    std::array<std::uint8_t, 6> mac() const noexcept;
    std::uint16_t mtu() const noexcept;
    std::uint64_t missed() const noexcept;
    /// What lets queues lend their slots to the driver; nullptr when the driver does not suit that.
    rx_pool* lending_pool() const noexcept { return lending_pool_.get(); }
    /// What a send queue needs to know of the port.
    nic::wire wire() const;

 private:
    void probe(std::string_view spec, const port_candidate& candidate);
    void configure(std::string_view spec, const port_options& options);
    int make_receive_queue(std::uint16_t entries);
    void take_down() noexcept;

    std::uint16_t id_ = UINT16_MAX; ///< of no port, until there is one
    const char* bus_ = "vdev";
    bool ours_ = false; ///< we made the device, so we remove it
    bool started_ = false;
    std::string device_, driver_;
    bool sends_on_time_ = false; ///< the driver keeps timestamps of mbufs
    rte_mempool *pool_ = nullptr, *copies_ = nullptr;
    std::unique_ptr<rx_pool> lending_pool_; ///< what the driver takes from instead of pool_, if it suits that
    nic::xdp_objects xdp_objects_; ///< that came with the driver's queue
};

/// What a weftio::port stands for. Members end in reverse order: engine, then queues and rules, then the device, then what its
/// driver may have held.
class soft_port {
 public:
    soft_port(std::string spec, const port_spec& parsed, const port_options& options);

    const std::string& spec() const noexcept { return spec_; }
    const dpdk_port& device() const noexcept { return device_; }
    port_counters counters() const;
    bool exhausted() const noexcept { return receiver_.exhausted(); }
    bool gone() const noexcept { return watch_.gone(); }
    nic::engine& engine() noexcept { return engine_; }
    nic::receiver& receiver() noexcept { return receiver_; } ///< between two turns only
    nic::sender& sender() noexcept { return sender_; }       ///< between two turns only
    key_table& keys() noexcept { return keys_; }              ///< between two turns only
    /// The NIC refuses `key` from now on. Returns when the key's region is unused.
    void forget_key(std::uint32_t key) noexcept;
    /// Returns when no frame on its way out lies in these bytes any more; after a second, with a line in the log, in any case.
    void wait_until_unused(const std::byte* begin, std::size_t bytes) noexcept;
    /// A number that grows: makes rules of equal priority keep the order of their making.
    std::uint64_t next_sequence() noexcept { return sequence_.fetch_add(1, std::memory_order_relaxed); }

 private:
    std::string spec_;
    interface_lock lock_;
    send_pool send_pool_;
    dpdk_port device_;
    key_table keys_;
    nic::sender sender_;
    nic::receiver receiver_;
    port_watch watch_;
    nic::engine engine_;
    std::atomic<std::uint64_t> sequence_{0};
    telemetry_entry telemetry_{*this}; ///< last to come, first to go
};

} // namespace weftio::nic
