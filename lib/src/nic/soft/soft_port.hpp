// The software NIC of one port: a DPDK device and the engines that drive it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "dpdk/dpdk_port.hpp"
#include "dpdk/interface_lock.hpp"
#include "dpdk/port_spec.hpp"
#include "keys/key_table.hpp"
#include "nic/backend.hpp"
#include "nic/soft/engines.hpp"
#include "nic/soft/offloads.hpp"
#include "nic/soft/receive/slot_pool.hpp"
#include "nic/soft/telemetry.hpp"
#include "nic/soft/work/doorbell_pages.hpp"
#include "weftio/options.hpp"

namespace weftio::nic::soft {

/// The software NIC. Members are destroyed in reverse order: engines first, then queues and rules, then the device,
/// then the memory that its driver may have held.
class soft_port final : public backend, public std::enable_shared_from_this<soft_port> {
 public:
    soft_port(std::string spec, const dpdk::port_spec& parsed, const port_options& options);

    const std::string& spec() const noexcept override { return spec_; }
    const std::string& driver() const noexcept override { return device_.driver(); }
    port_info info() const override { return device_.info(); }
    std::array<std::uint8_t, 6> mac() const noexcept override { return device_.mac(); }
    std::uint16_t mtu() const noexcept override { return device_.mtu(); }
    bool link_up() const noexcept override { return device_.link_up(); }
    port_counters counters() override;
    rdma_port_counters rdma_counts() override;
    bool exhausted() const noexcept override { return engines_.exhausted(); }
    bool gone() const noexcept override { return engines_.gone(); }
    unsigned engine_count() const noexcept override { return engines_.count(); }
    bool is_inline() const noexcept override { return !engines_.have_threads(); }
    unsigned turn() override { return engines_.turn(); }
    unsigned turn(unsigned engine) override { return engines_.engine(engine).turn(); }
    std::unique_ptr<region> register_memory(const region_request& wanted) override;
    std::shared_ptr<receive_queue> make_receive_queue(const receive_ring& ring, int engine) override;
    std::shared_ptr<eth_send_queue> make_send_queue(const send_ring& ring, int engine) override;
    std::shared_ptr<completion_queue> make_completion_queue(const completion_memory& memory) override;
    std::shared_ptr<rdma_queue> make_rdma_queue(const rdma_rings& rings, rdma_service service) override;
    std::shared_ptr<shared_receives> make_shared_receives(const shared_receive_ring& ring) override;
    std::unique_ptr<window> make_window(window_type type, protection_domain domain) override;
    std::unique_ptr<held_rdma_address> add_rdma_address(const rdma_own_address& own) override;
    std::vector<std::unique_ptr<rule>> install(std::span<const rule_request> wanted) override;

    const dpdk::dpdk_port& device() const noexcept { return device_; }
    const slot_pools& slots() const noexcept { return slots_; }
    nic::soft::engines& engines() noexcept { return engines_; }
    nic::soft::engine& engine(unsigned number = 0) noexcept { return engines_.engine(number); }
    nic::soft::receiver& receiver(unsigned engine = 0) noexcept
    {
        return engines_.receiver(engine);
    } ///< between two turns only
    nic::soft::sender& sender(unsigned engine = 0) noexcept
    {
        return engines_.sender(engine);
    }                                                                               ///< between two turns only
    rdma_unit& rdma(unsigned engine = 0) noexcept { return engines_.rdma(engine); } ///< between two turns only
    keys::nic_keys& keys() noexcept { return keys_; }
    nic::soft::offloads& offloads() noexcept { return offloads_; }
    doorbell_pages& doorbells() noexcept { return doorbells_; }
    /// Prepares memory for sending frames from it. If the port's device reads memory by itself, maps the memory for it;
    /// when that fails, frames in this memory are copied when they are sent, and the log says why. If the CPU cannot
    /// access the memory, prepares all engines to copy frames from its device; throws what
    /// device_backend::make_copy_queue() throws.
    frame_memory_list take_up(std::shared_ptr<const devices::memory_block> block);
    /// From now on, the NIC refuses `key`.
    void forget_key(std::uint32_t key) noexcept;
    /// Frees `memory` once no frame in it is being sent. Blocks until then, at most 1 s; after that the memory is kept
    /// until the frames have come back, and the log says so. For memory that the CPU cannot access, waits at most as
    /// long for the copies that copy engines have started, and then frees it.
    void let_go(frame_memory_list memory) noexcept;
    /// Adds copies of frames that are under way to memory_block::unfinished, if that is set: let_go() then waits for
    /// none.
    void leave_copies(const devices::memory_block& block) noexcept;
    /// Announces the port's first own address to the members of its wire, if it is on one. Call it between two turns of
    /// all engines.
    void announce_first_address() noexcept;
    /// Checks whether another member of the port's wire, if it is on one, has announced this address.
    /// @param below  only members with lower slots count  @throws weftio::error errc::in_use
    void require_nobody_has(const net::roce_gid& address, unsigned below) const;
    /// MAC of the member of the port's wire, if it is on one, that has announced this address. Blocks for some system
    /// calls.
    std::optional<net::mac_address> mac_on_wire(const net::roce_gid& address) const;
    /// Slot of the port on its wire; 0 without one.
    unsigned slot() const noexcept;
    /// Returns a number that increases with each call. Rules of equal priority decide in the order of these numbers.
    std::uint64_t next_sequence() noexcept { return sequence_.fetch_add(1, std::memory_order_relaxed); }

 private:
    void require_sending() const;
    void require_rdma(std::string_view who) const;
    void pull_from(const std::shared_ptr<devices::device_backend>& device);
    static std::unique_ptr<staged_stream> make_staged(const std::shared_ptr<devices::device_backend>& device);
    void let_go_of_host(frame_memory_list memory) noexcept;
    void let_go_of_device(const devices::memory_block& block) noexcept;
    bool unused(const devices::memory_block& block) noexcept;
    void free_what_came_back() noexcept;

    std::string spec_;
    std::mutex pulling_; ///< one pull_from() at a time
    const bool sends_;
    keys::nic_keys keys_{"port " + spec_};
    dpdk::interface_lock lock_;
    const std::shared_ptr<const void> environment_; ///< DPDK must run until the members below are destroyed
    send_pool send_pool_{spec_};
    slot_pools slots_; ///< the driver of device_ takes mbufs from these pools
    dpdk::dpdk_port device_;
    doorbell_pages doorbells_;
    nic::soft::engines engines_;
    nic::soft::offloads offloads_{device_, spec_};
    std::atomic<std::uint64_t> sequence_{0};
    telemetry_entry telemetry_{*this}; ///< declared last: telemetry shows the port only while all other members exist
};

/// Opens the software NIC for a spec that names no other kind of NIC. Throws as weftio::port::open().
std::shared_ptr<backend> open_soft_port(std::string_view spec, const port_options& options);

} // namespace weftio::nic::soft
