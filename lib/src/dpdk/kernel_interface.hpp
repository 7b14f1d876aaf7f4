// The kernel's state and counters of the network interface behind a port.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace weftio::dpdk {

/// An interface in the network namespace of the constructing thread, known by its index, since its name may change.
///
/// - Threads: any. Nothing here takes the kernel's lock of network settings (RTNL).
class kernel_interface {
 public:
    struct state {
        bool there = true;
        bool up = true;        ///< up and with a carrier: frames can leave
        std::uint32_t mtu = 0; ///< 0: unknown
    };

    /// @param name  empty, or of no interface: state() reports an interface that is up, counters stay 0
    explicit kernel_interface(const std::string& name) noexcept;
    kernel_interface(const kernel_interface&) = delete;
    kernel_interface& operator=(const kernel_interface&) = delete;
    ~kernel_interface();

    bool known() const noexcept { return index_ != 0; }
    state read_state() const noexcept;
    /// Frames of all programs that the kernel has dropped instead of sending since construction (tx_dropped).
    std::uint64_t tx_dropped() const noexcept;
    /// Frames that have arrived since construction and were lost before any program received them (rx_dropped and
    /// rx_missed_errors).
    std::uint64_t rx_dropped() const noexcept;

 private:
    struct drops {
        std::uint64_t received = 0, sent = 0;
    };

    static std::optional<drops> drops_in(const char* fields) noexcept;
    std::optional<drops> all_drops() const noexcept;

    int socket_ = -1;
    int counters_ = -1; ///< /proc/net/dev of that network namespace
    int index_ = 0;
    drops before_;
};

} // namespace weftio::dpdk
