// Checks that the interface behind a port still exists.
#pragma once

#include <string>

namespace weftio::replay {

/// Checks a kernel interface. Drivers silently accept frames for an interface that has disappeared.
class port_watch {
 public:
    /// @param spec  spec of the port: `iface:NAME`, or devargs with `iface=NAME`; other ports are never reported
    explicit port_watch(const std::string& spec);
    port_watch(const port_watch&) = delete;
    port_watch& operator=(const port_watch&) = delete;
    ~port_watch();

    /// An error for the user; empty if there is none. Never blocks. An interface that is down is no error: the send
    /// queue waits for it, and fails if that takes too long.
    std::string trouble() const;

 private:
    std::string interface_;
    int socket_ = -1;
};

} // namespace weftio::replay
