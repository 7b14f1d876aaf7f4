// Detects that a port's device, or the kernel interface behind it, is removed or down, or receives nothing any more.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "dpdk/kernel_interface.hpp"
#include "dpdk/port_claim.hpp"
#include "dpdk/xdp_hook.hpp"

namespace weftio::dpdk {

/// Drivers do not report it: af_packet and af_xdp then take no frames, or take frames and lose them.
class port_watch {
 public:
    /// @param interface  interface behind the port, in the network namespace of the calling thread; empty: none
    /// @param hook       of the AF_XDP port, which must outlive this; nullptr: it is none
    port_watch(std::uint16_t port, const std::string& interface, xdp_hook* hook = nullptr) noexcept;
    /// Called in every iteration. Checks for removal each time, and the interface every 20 ms at most. Returns true
    /// once, when the device is gone. The engine's thread.
    /// @param busy  the last iteration moved something; the clock is then read in every 64th iteration only
    bool has_just_gone(bool busy) noexcept;
    /// Whether frames could leave at the last check; always true without an interface behind the port. The engine's
    /// thread, like the next two functions.
    bool link_is_up() const noexcept { return up_; }
    /// Whether the link has been down for longer than a flap.
    bool link_is_given_up() const noexcept { return !up_ && polled_ns_ - down_since_ns_ > longest_flap_ns; }
    /// Of the interface at the last check; 0: none is behind the port, or it has not been read yet.
    std::uint32_t mtu() const noexcept { return mtu_; }
    /// Like has_just_gone(), but for a removal of the DPDK port only, which costs a load. For use before a change
    /// between two iterations, which may call the driver.
    bool has_just_been_removed() noexcept
    {
        if (!removal_.came())
            return false;
        removal_.leave();
        return !gone_.exchange(true, std::memory_order_acq_rel);
    }
    /// Makes a removal of the device wait for this engine, which calls the driver in each iteration, until the engine
    /// has seen the removal or calls leave().
    void attend() noexcept { removal_.attend(); }
    void leave() noexcept { removal_.leave(); }
    /// Any thread.
    bool gone() const noexcept { return gone_.load(std::memory_order_acquire); }
    /// What happened, once has_just_gone() was true.
    const char* why() const noexcept { return why_; }

 private:
    static constexpr std::uint64_t longest_flap_ns = 2'000'000'000; ///< Linux may report a carrier a second late

    bool is_time() noexcept;
    bool is_there() noexcept;

    std::uint16_t port_;
    removal_notice removal_;
    std::array<char, 96> path_{}; ///< the NIC in sysfs, gone once it is unplugged; empty: not on PCI
    kernel_interface interface_;
    xdp_hook* hook_;
    const char* why_ = "its device or its interface was removed";
    unsigned turns_ = 0;
    std::uint64_t polled_ns_ = 0, down_since_ns_ = 0;
    std::uint32_t mtu_ = 0;
    bool up_ = true;
    std::atomic<bool> gone_{false};
};

} // namespace weftio::dpdk
