// Whether the interface behind a port is still there.
#pragma once

#include <string>

namespace weftio::replay {

/// Looks at a kernel interface. Drivers take frames for one that has gone without a word, so somebody has to look.
class port_watch {
 public:
    /// @param spec  of a port: `iface:NAME`, or devargs with `iface=NAME`; anything else is never missed
    explicit port_watch(const std::string& spec);
    port_watch(const port_watch&) = delete;
    port_watch& operator=(const port_watch&) = delete;
    ~port_watch();

    /// What is wrong with it, empty when nothing is. Never blocks. One that is down is no trouble: the send queue waits
    /// for it, and fails when that takes too long.
    std::string trouble() const;

 private:
    std::string interface_;
    int socket_ = -1;
};

} // namespace weftio::replay
