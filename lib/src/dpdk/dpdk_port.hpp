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
#include "dpdk/frame_dump.hpp"
#include "dpdk/interface_settings.hpp"
#include "dpdk/kernel_interface.hpp"
#include "dpdk/packet_pools.hpp"
#include "dpdk/packet_ring.hpp"
#include "dpdk/packet_sockets.hpp"
#include "dpdk/port_claim.hpp"
#include "dpdk/port_queue.hpp"
#include "dpdk/port_spec.hpp"
#include "dpdk/shared_wire.hpp"
#include "dpdk/xdp_hook.hpp"
#include "dpdk/xdp_objects.hpp"
#include "weftio/options.hpp"
#include "weftio/port_info.hpp"

struct rte_device;
struct rte_eth_conf;
struct rte_eth_dev_info;

namespace weftio::dpdk {

/// Finds or makes the DPDK device, configures and starts it; the destructor stops and removes it.
class dpdk_port {
 public:
    /// Throws weftio::error as port::open does.
    /// @param slot_pools  makes the pools by which the driver takes slots; must outlive this
    dpdk_port(std::string_view spec, const port_spec& parsed, const port_options& options, slot_pool_maker& slot_pools);
    dpdk_port(const dpdk_port&) = delete;
    dpdk_port& operator=(const dpdk_port&) = delete;
    ~dpdk_port();

    std::uint16_t id() const noexcept { return id_; }
    bool removed() const noexcept
    {
        return claim_.removed();
    } ///< somebody else removed the device; another port may have its number
    const std::string& driver() const noexcept { return driver_; }
    port_info info() const;
    std::array<std::uint8_t, 6> mac() const noexcept;
    std::uint16_t mtu() const noexcept;
    /// A received packet of this length may have been truncated by the driver.
    std::uint32_t cut_bytes() const noexcept;
    /// See port_counters::driver_missed. Any thread.
    std::uint64_t missed() const noexcept;
    /// See port::link_up().
    bool link_up() const noexcept;
    /// See port_counters::tx_dropped.
    std::uint64_t tx_dropped() const noexcept;
    /// The wire in shared memory; nullptr for other ports.
    dpdk::shared_wire* shared() const noexcept { return shared_.get(); }
    /// For each port queue, what a send queue needs to know of it.
    std::vector<port_queue> port_queues() const;
    /// Whether the device can read frames where they lie, once their memory is mapped for it.
    bool zero_copy() const noexcept { return zero_copy_; }
    /// Whether the driver passes everything on to drivers of other devices.
    bool stands_before_others() const noexcept;
    /// The device for which memory has to be mapped; nullptr if it does no DMA.
    rte_device* reads_by_itself() const noexcept { return dma_; }

 private:
    void find_reach(const rte_eth_dev_info& info) noexcept;
    void wait_for_copies() const noexcept;
    void probe(std::string_view spec, const port_candidate& candidate);
    int make_device(const std::string& arguments);
    void configure(std::string_view spec, const port_spec& parsed, const port_options& options);
    rte_eth_conf configuration_for(const rte_eth_dev_info& info, std::uint32_t mtu);
    void make_queues(std::string_view spec);
    int make_receive_queue(std::uint16_t queue, std::uint16_t entries);
    void claim(std::string_view spec);
    void take_down() noexcept;
    void close_device(bool removed) noexcept;
    void remove_device() noexcept;

    interface_settings settings_;
    std::uint16_t id_ = UINT16_MAX; ///< invalid until the device exists
    port_claim claim_;
    std::uint16_t queue_count_ = 1; ///< in each direction
    const char* bus_ = "vdev";
    bool ours_ = false; ///< the port made the device, so it removes it
    bool started_ = false;
    bool comes_back_ = false; ///< a closed AF_XDP port may still hold the queue: retry
    std::string device_, driver_;
    bool sends_on_time_ = false; ///< the driver sends mbufs at their timestamps
    rte_device* dma_ = nullptr;  ///< set if the device reads memory by DMA
    bool zero_copy_ = true;
    packet_pools pools_;
    std::unique_ptr<xdp_hook> hook_;                          ///< net_af_xdp only
    dpdk::xdp_objects xdp_objects_;                           ///< made by the driver's receive queues
    std::vector<int> xdp_sockets_;                            ///< net_af_xdp: one for each queue
    std::uint32_t ring_frame_bytes_ = 0;                      ///< net_af_packet: a packet and its header; else 0
    std::uint32_t most_mtu_ = 0;                              ///< largest that the driver and copies_ can take
    std::vector<packet_socket> packet_sockets_;               ///< net_af_packet: one for each queue
    capture_claim read_;                                      ///< the capture that the driver reads
    mutable std::atomic<std::uint64_t> missed_by_sockets_{0}; ///< sum of what packet_sockets_ have reported
    std::unique_ptr<capture_writer> file_;                    ///< takes sent frames if the port writes a capture
    std::unique_ptr<dpdk::shared_wire> shared_;               ///< takes and brings frames if the port is on a wire
    std::unique_ptr<frame_dump> dump_;                        ///< port_options::dump
    std::unique_ptr<kernel_interface> interface_;             ///< interface behind the port, if it has one
    std::vector<std::unique_ptr<packet_ring>> packet_rings_;  ///< net_af_packet: one for each queue
};

} // namespace weftio::dpdk
