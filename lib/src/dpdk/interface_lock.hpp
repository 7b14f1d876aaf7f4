// One Weftio port for one kernel interface.
#pragma once

#include <string>
#include <string_view>

namespace weftio::dpdk {

/// Reserves an interface against other ports of this and other processes in the same network namespace. The lock is the
/// name of an abstract Unix socket, so the kernel releases it however the process dies.
class interface_lock {
 public:
    interface_lock() = default;
    /// Blocks for up to half a second while another port has the interface. Throws weftio::error errc::in_use, or
    /// errc::device_error without a socket.
    interface_lock(std::string_view spec, const std::string& interface);
    interface_lock(interface_lock&& other) noexcept : socket_(other.socket_) { other.socket_ = -1; }
    interface_lock& operator=(interface_lock&& other) noexcept;
    ~interface_lock();

 private:
    int socket_ = -1;
};

} // namespace weftio::dpdk
