// Notices that a port's device, or the kernel's interface behind it, has been taken away.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace weftio::nic {

/// Drivers do not say it: af_packet and af_xdp take no more frames, and wait.
class port_watch {
 public:
    /// @param interface  that the port is on, in the network of the calling thread; empty: none
    port_watch(std::uint16_t port, const std::string& interface) noexcept;
    port_watch(const port_watch&) = delete;
    port_watch& operator=(const port_watch&) = delete;
    ~port_watch();

    /// Called every turn, looks at the device each time and at its interface every 20 ms at most. Returns true once: when it is
    /// gone. The engine's thread.
    /// @param busy  the turn before moved something; then the time is looked at every 64th turn only
    bool has_just_gone(bool busy) noexcept;
    /// Any thread.
    bool gone() const noexcept { return gone_.load(std::memory_order_acquire); }

 private:
    bool is_time() noexcept;
    bool is_there() const noexcept;

    std::uint16_t port_;
    int socket_ = -1;
    int index_ = 0; ///< of the interface, whose name may change, and may become another's; 0: none
    unsigned turns_ = 0;
    std::uint64_t next_look_ns_ = 0;
    std::atomic<bool> gone_{false};
};

} // namespace weftio::nic
