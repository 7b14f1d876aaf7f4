// Notices that a port's device, or the kernel's interface behind it, has been taken away, or is down.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "dpdk/kernel_interface.hpp"
#include "dpdk/port_claim.hpp"

namespace weftio::nic {

/// Drivers do not say it: af_packet and af_xdp take no more frames and wait, or take frames and lose them.
class port_watch {
 public:
    /// @param interface  that the port is on, in the network of the calling thread; empty: none
    port_watch(std::uint16_t port, const std::string& interface) noexcept;
    /// Called every turn, looks at the device each time and at its interface every 20 ms at most. Returns true once:
    /// when it is gone. The engine's thread.
    /// @param busy  the turn before moved something; then the time is looked at every 64th turn only
    bool has_just_gone(bool busy) noexcept;
    /// Whether frames could leave at the last look. Always, where no interface is behind the port. The engine's thread,
    /// like the next two.
    bool link_is_up() const noexcept { return up_; }
    /// Whether they could not for longer than a link takes that only flaps.
    bool link_is_given_up() const noexcept { return !up_ && looked_ns_ - down_since_ns_ > longest_flap_ns; }
    /// Returns true once when the interface has another MTU than before, or has one at all.
    bool mtu_has_changed() noexcept { return mtu_changed_ && std::exchange(mtu_changed_, false); }
    std::uint32_t mtu() const noexcept { return mtu_; }
    /// The same, of the device alone; costs a load. For before a change between two turns, which may ask the driver for
    /// things.
    bool has_just_been_removed() noexcept
    {
        if (!removal_.came())
            return false;
        removal_.leave();
        return !gone_.exchange(true, std::memory_order_acq_rel);
    }
    /// Whoever removes the device waits for this engine, which calls the driver in each turn, from attend() on until it
    /// has seen the removal, or leaves.
    void attend() noexcept { removal_.attend(); }
    void leave() noexcept { removal_.leave(); }
    /// Any thread.
    bool gone() const noexcept { return gone_.load(std::memory_order_acquire); }

 private:
    static constexpr std::uint64_t longest_flap_ns = 2'000'000'000; ///< Linux may tell of a carrier a second late

    bool is_time() noexcept;
    bool is_there() noexcept;

    std::uint16_t port_;
    removal_notice removal_;
    std::array<char, 96> path_{}; ///< of a NIC in sysfs, which it leaves when it is unplugged; empty: not on PCI
    kernel_interface interface_;
    unsigned turns_ = 0;
    std::uint64_t looked_ns_ = 0, down_since_ns_ = 0;
    std::uint32_t mtu_ = 0;
    bool up_ = true, mtu_changed_ = false;
    std::atomic<bool> gone_{false};
};

} // namespace weftio::nic
