// Checks that the interface behind a port still exists.
#pragma once

#include <string>

namespace weftio::replay {

/// Checks a kernel interface. Drivers silently accept frames for an interface that has disappeared. port::gone() may
/// be 20 ms late, and that many frames would count as sent; this asks the kernel at each call.
class interface_watch {
 public:
    /// @param spec  spec of the port: `iface:NAME`, or devargs with `iface=NAME`; other ports are never reported
    explicit interface_watch(const std::string& spec);
    interface_watch(const interface_watch&) = delete;
    interface_watch& operator=(const interface_watch&) = delete;
    ~interface_watch();

    /// An error for the user; empty if there is none. Never blocks. An interface that is down is no error: the send
    /// queue waits for it, and fails if that takes too long.
    std::string trouble() const;

 private:
    std::string interface_;
    int socket_ = -1;
};

} // namespace weftio::replay
