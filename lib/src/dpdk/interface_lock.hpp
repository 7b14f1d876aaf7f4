// One Weftio port for one kernel interface.
#pragma once

#include <string>
#include <string_view>

namespace weftio::nic {

/// Holds an interface against other ports, of this and of other processes in the same network namespace. The kernel
/// lets go when the process dies, however it dies: the lock is the name of an abstract Unix socket.
class interface_lock {
 public:
    interface_lock() = default;
    /// Blocks for half a second at most, when another has it. Throws weftio::error errc::in_use.
    interface_lock(std::string_view spec, const std::string& interface);
    interface_lock(interface_lock&& other) noexcept : socket_(other.socket_) { other.socket_ = -1; }
    interface_lock& operator=(interface_lock&& other) noexcept;
    ~interface_lock();

 private:
    int socket_ = -1;
};

} // namespace weftio::nic
