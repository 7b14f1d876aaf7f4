// A DPDK port with engines behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/process.hpp"
#include "nic/capture_writer.hpp"
#include "nic/interface_lock.hpp"
#include "nic/kernel_interface.hpp"
#include "nic/packet_sockets.hpp"
#include "nic/port_claim.hpp"
#include "nic/port_spec.hpp"
#include "nic/soft/engines.hpp"
#include "nic/soft/key_table.hpp"
#include "nic/soft/rx_pool.hpp"
#include "nic/telemetry.hpp"
#include "nic/xdp_objects.hpp"
#include "weftio/port.hpp"

struct rte_device;
struct rte_eth_dev_info;
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
    bool removed() const noexcept { return claim_.removed(); } ///< by somebody else: its number may be another's
    const std::string& driver() const noexcept { return driver_; }
    std::array<std::uint8_t, 6> mac() const noexcept;
    std::uint16_t mtu() const noexcept;
    /// A received packet that is so long may have been cut by the driver.
    std::uint32_t cut_bytes() const noexcept;
    std::uint64_t missed() const noexcept;
    /// As port::link_up().
    bool link_up() const noexcept;
    /// As port_counters::tx_dropped.
    std::uint64_t tx_dropped() const noexcept;
    /// Of each port queue: what a send queue needs to know of it, and what lets receive queues lend their slots to the
    /// driver, if that suits it.
    std::vector<engine_supplies::port_queue> queues() const;
    /// Whether the device may read frames where they lie, once it has been told of the memory.
    bool lends() const noexcept { return lends_; }
    /// The device that has to be told of memory; nullptr when none has.
    rte_device* reads_by_itself() const noexcept { return dma_; }

 private:
    void find_reach(const rte_eth_dev_info& info) noexcept;
    void wait_for_copies() const noexcept;
    void probe(std::string_view spec, const port_candidate& candidate);
    void configure(std::string_view spec, const port_options& options);
    void make_pools(std::string_view spec, const rte_eth_dev_info& info);
    void make_queues(std::string_view spec);
    int make_receive_queue(std::uint16_t queue, std::uint16_t entries);
    void claim(std::string_view spec);
    void take_down() noexcept;
    void remove_device() noexcept;

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
    rte_mempool *pool_ = nullptr, *copies_ = nullptr;
    std::vector<std::unique_ptr<rx_pool>>
        lending_pools_;                           ///< what its queues take from instead of pool_, if that suits it
    nic::xdp_objects xdp_objects_;                ///< that came with the driver's queues
    std::uint32_t ring_frame_bytes_ = 0;          ///< of net_af_packet, a packet and what lies before it; else 0
    std::uint32_t most_mtu_ = 0;                  ///< that the driver and copies_ can take
    std::vector<packet_socket> packet_sockets_;   ///< of net_af_packet, one a queue
    std::unique_ptr<capture_writer> file_;        ///< takes what is sent, if the port writes a capture
    std::unique_ptr<kernel_interface> interface_; ///< behind the port, if there is one
};

/// What a weftio::port stands for. Members end in reverse order: engines, then queues and rules, then the device, then
/// what its driver may have held.
class soft_port {
 public:
    soft_port(std::string spec, const port_spec& parsed, const port_options& options);

    /// Whether this process may still end what belongs to the port.
    bool may_end() const noexcept { return maker_.may_end(); }
    const std::string& spec() const noexcept { return spec_; }
    const dpdk_port& device() const noexcept { return device_; }
    /// As port::counters().
    port_counters counters();
    bool exhausted() const noexcept { return engines_.exhausted(); }
    bool gone() const noexcept { return engines_.gone(); }
    nic::engines& engines() noexcept { return engines_; }
    nic::engine& engine(unsigned number = 0) noexcept { return engines_.engine(number); }
    nic::receiver& receiver(unsigned engine = 0) noexcept
    {
        return engines_.receiver(engine);
    }                                                                                     ///< between two turns only
    nic::sender& sender(unsigned engine = 0) noexcept { return engines_.sender(engine); } ///< between two turns only
    key_table& keys() noexcept { return keys_; } ///< between two turns of all engines only
    /// Throws weftio::error errc::invalid_argument, in the name of `who`, when there is no engine of that number.
    void require_engine(std::string_view who, unsigned engine) const;
    /// Throws weftio::error errc::not_supported when nothing can be sent on the port.
    void require_sending() const;
    /// Memory that frames are to be sent from: tells the device of it, if it must be told. What it cannot be told of is
    /// copied when it is sent; a line in the log says why.
    memory_place take_up(std::shared_ptr<const detail::memory_block> block) const;
    /// The NIC refuses `key` from now on.
    void forget_key(std::uint32_t key) noexcept;
    /// Lets memory of the NIC's go once no frame lies in it that is on its way out. Waits for that, at most a second;
    /// then the memory is kept, with a line in the log, until the frames have come back.
    void let_go(memory_place memory) noexcept;
    /// A number that grows: makes rules of equal priority keep the order of their making.
    std::uint64_t next_sequence() noexcept { return sequence_.fetch_add(1, std::memory_order_relaxed); }

 private:
    bool unused(const detail::memory_block& block) noexcept;
    void free_what_came_back() noexcept;

    const detail::maker maker_{};
    std::string spec_;
    const bool sends_;
    interface_lock lock_;
    const std::shared_ptr<const void> environment_; ///< needed until all that is DPDK's has gone
    send_pool send_pool_{spec_};
    dpdk_port device_;
    key_table keys_;
    nic::engines engines_;
    std::atomic<std::uint64_t> sequence_{0};
    telemetry_entry telemetry_{*this}; ///< last to come, first to go
};

} // namespace weftio::nic
