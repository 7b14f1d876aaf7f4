// What a port changes at the kernel's interface behind it, and changes back.
#pragma once

#include <cstdint>
#include <string>

namespace weftio::nic {

/// Remembers the MTU and the promiscuous mode of an interface in the network of the thread that makes this. Not for
/// several threads.
class interface_settings {
 public:
    /// @param name  empty, or of no interface: nothing is remembered
    explicit interface_settings(const std::string& name) noexcept;
    interface_settings(const interface_settings&) = delete;
    interface_settings& operator=(const interface_settings&) = delete;
    ~interface_settings();

    /// The port has changed what it changes: what restore() finds different then, somebody else has set.
    void have_been_changed() noexcept { changed_ = look(); }
    /// The port is about to let go of the interface; its driver may change something again.
    void are_let_go() noexcept { at_end_ = look(); }
    /// Gives the interface what it had, as far as nobody else has changed it meanwhile. Nothing, where it is gone.
    void restore() noexcept;

 private:
    struct values {
        bool known = false, promiscuous = false;
        int mtu = 0;
    };

    values look() const noexcept;
    void set_mtu(int mtu) const noexcept;
    void set_promiscuous(bool on) const noexcept;

    int socket_ = -1, index_ = 0;
    values before_, changed_, at_end_;
};

} // namespace weftio::nic
