// A DPDK port with engines behind it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/process.hpp"
#include "dpdk/dpdk_port.hpp"
#include "dpdk/interface_lock.hpp"
#include "dpdk/port_spec.hpp"
#include "nic/soft/engines.hpp"
#include "nic/soft/key_table.hpp"
#include "nic/soft/rx_pool.hpp"
#include "nic/soft/telemetry.hpp"
#include "weftio/port.hpp"

namespace weftio::nic {

/// What a weftio::port stands for. Members end in reverse order: engines, then queues and rules, then the device, then
/// what its driver may have held.
class soft_port {
 public:
    soft_port(std::string spec, const port_spec& parsed, const port_options& options);

    /// Whether this process may still end what belongs to the port.
    bool may_end() const noexcept { return maker_.may_end(); }
    const std::string& spec() const noexcept { return spec_; }
    const dpdk_port& device() const noexcept { return device_; }
    const slot_pools& slots() const noexcept { return slots_; }
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
    slot_pools slots_; ///< that device_ borrows
    dpdk_port device_;
    key_table keys_;
    nic::engines engines_;
    std::atomic<std::uint64_t> sequence_{0};
    telemetry_entry telemetry_{*this}; ///< last to come, first to go
};

} // namespace weftio::nic
