// Restores what a port changes at the kernel's interface behind it.
#pragma once

#include <cstdint>
#include <string>

namespace weftio::dpdk {

/// Remembers the MTU and the promiscuous mode of an interface in the network namespace of the constructing thread. Not
/// thread-safe.
class interface_settings {
 public:
    /// @param name  empty, or of no interface: nothing is remembered or restored
    explicit interface_settings(const std::string& name) noexcept;
    interface_settings(const interface_settings&) = delete;
    interface_settings& operator=(const interface_settings&) = delete;
    ~interface_settings();

    /// Call it after the port's own changes: a value that restore() finds different from now on was set by somebody
    /// else.
    void have_been_changed() noexcept { changed_ = read_state(); }
    /// Call it before the port releases the interface, since the driver may change settings again when it closes.
    void are_let_go() noexcept { at_end_ = read_state(); }
    /// Restores each setting that nobody else has changed meanwhile. Does nothing if the interface is gone.
    void restore() noexcept;

 private:
    struct values {
        bool known = false, promiscuous = false;
        int mtu = 0;
    };

    values read_state() const noexcept;
    void set_mtu(int mtu) const noexcept;
    void set_promiscuous(bool on) const noexcept;

    int socket_ = -1, index_ = 0;
    values before_, changed_, at_end_;
};

} // namespace weftio::dpdk
