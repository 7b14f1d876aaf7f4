// A DPDK device that a port receives from and sends through.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dpdk/capture_writer.hpp"
#include "dpdk/interface_settings.hpp"
#include "dpdk/kernel_interface.hpp"
#include "dpdk/packet_pools.hpp"
#include "dpdk/packet_ring.hpp"
#include "dpdk/packet_sockets.hpp"
#include "dpdk/port_claim.hpp"
#include "dpdk/port_spec.hpp"
#include "dpdk/wire.hpp"
#include "dpdk/xdp_objects.hpp"
#include "weftio/port.hpp"

struct rte_device;
struct rte_eth_dev_info;

namespace weftio::nic {

/// Finds or makes the DPDK device, configures and starts it, and takes it down in the destructor.
class dpdk_port {
 public:
    /// Throws weftio::error as port::open does.
    /// @param lender  may lend memory to the driver; must outlive this
    dpdk_port(std::string_view spec, const port_spec& parsed, const port_options& options, slot_lender& lender);
    dpdk_port(const dpdk_port&) = delete;
    dpdk_port& operator=(const dpdk_port&) = delete;
    ~dpdk_port();

    std::uint16_t id() const noexcept { return id_; }
    bool removed() const noexcept { return claim_.removed(); } ///< by somebody else: its number may be another's
    const std::string& driver() const noexcept { return driver_; }
    std::array<std::uint8_t, 6> mac() const noexcept;
    std::uint16_t mtu() const noexcept;
    /// A received packet that is so long may have been cut by the driver.
    std::uint32_t cut_bytes() const noexcept;
    /// As port_counters::driver_missed. Any thread.
    std::uint64_t missed() const noexcept;
    /// As port::link_up().
    bool link_up() const noexcept;
    /// As port_counters::tx_dropped.
    std::uint64_t tx_dropped() const noexcept;
    /// Of each port queue, what a send queue needs to know of it.
    std::vector<wire> wires() const;
    /// Whether the device may read frames where they lie, once it has been told of the memory.
    bool lends() const noexcept { return lends_; }
    /// The device that has to be told of memory; nullptr when none has.
    rte_device* reads_by_itself() const noexcept { return dma_; }

 private:
    void find_reach(const rte_eth_dev_info& info) noexcept;
    void wait_for_copies() const noexcept;
    void probe(std::string_view spec, const port_candidate& candidate);
    int make_device(const std::string& arguments);
    void configure(std::string_view spec, const port_options& options);
    void make_queues(std::string_view spec);
    int make_receive_queue(std::uint16_t queue, std::uint16_t entries);
    void claim(std::string_view spec);
    void take_down() noexcept;
    void remove_device() noexcept;

    interface_settings settings_;
    std::uint16_t id_ = UINT16_MAX; ///< of no port, until there is one
    port_claim claim_;
    std::uint16_t queue_count_ = 1; ///< in each direction
    const char* bus_ = "vdev";
    bool ours_ = false; ///< we made the device, so we remove it
    bool started_ = false;
    bool comes_back_ = false; ///< what was not to be had is on its way back from a port before
    std::string device_, driver_;
    bool sends_on_time_ = false; ///< the driver keeps timestamps of mbufs
    rte_device* dma_ = nullptr;  ///< a device on a bus, which reads memory by itself
    bool lends_ = true;
    packet_pools pools_;
    nic::xdp_objects xdp_objects_;              ///< that came with the driver's queues
    std::uint32_t ring_frame_bytes_ = 0;        ///< of net_af_packet, a packet and what lies before it; else 0
    std::uint32_t most_mtu_ = 0;                ///< that the driver and copies_ can take
    std::vector<packet_socket> packet_sockets_; ///< of net_af_packet, one a queue
    capture_claim read_;                        ///< of the capture that the driver reads
    mutable std::atomic<std::uint64_t> missed_by_sockets_{0}; ///< as far as they have been asked
    std::unique_ptr<capture_writer> file_;                    ///< takes what is sent, if the port writes a capture
    std::unique_ptr<kernel_interface> interface_;             ///< behind the port, if there is one
    std::vector<std::unique_ptr<packet_ring>> packet_rings_;  ///< as packet_sockets_
};

} // namespace weftio::nic
