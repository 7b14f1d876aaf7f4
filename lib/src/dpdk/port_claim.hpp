// Tells a DPDK port from a later one with the same number, which DPDK reuses after a removal.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace weftio::dpdk {

/// Events of all ports that have had one number.
struct removals {
    std::atomic<std::uint32_t> count{0};
    std::atomic<std::uint32_t> attending{0}; ///< threads that poll the driver, and check `count` in between
    std::atomic<std::uint32_t> unplugged{0}; ///< how often a device was unplugged or asked to be closed
};

/// Learns that a DPDK port has been removed, by whomever.
class removal_notice {
 public:
    void begin(std::uint16_t port) noexcept;
    /// Whether the port of begin() has been removed. Any thread; costs a load.
    bool came() const noexcept { return removals_ && removals_->count.load(std::memory_order_acquire) != seen_; }
    /// Whether the device has been unplugged, or waits for the port to close. Any thread; costs a load.
    bool unplugged() const noexcept
    {
        return removals_ && removals_->unplugged.load(std::memory_order_acquire) != unplugged_seen_;
    }
    /// Makes a removal wait up to half a second until leave(), which is to be called once came() is true and the driver
    /// is no longer called. @pre begin(). One thread calls attend() and leave()
    void attend() noexcept;
    void leave() noexcept;

 private:
    removals* removals_ = nullptr; ///< points to a static object
    std::uint32_t seen_ = 0, unplugged_seen_ = 0;
    bool attends_ = false;
};

/// A DPDK port that is reserved for one Weftio port, until either ends.
class port_claim {
 public:
    port_claim() = default;
    port_claim(const port_claim&) = delete;
    port_claim& operator=(const port_claim&) = delete;
    ~port_claim() { release(); }

    /// Claims the port. Returns false if another claim has it. Throws std::bad_alloc.
    bool take(std::uint16_t port);
    void release() noexcept;
    /// Whether somebody else has removed the port, whose number and name may then belong to another. False after
    /// release().
    bool removed() const noexcept { return notice_.came(); }
    /// Reports that the device of that name is unplugged to the ports on it. Any thread. Blocks for a short lock only.
    static void tell_of_unplugged(const char* device) noexcept;

 private:
    std::uint16_t port_ = 0;
    std::string device_; ///< may have other ports too
    bool taken_ = false;
    removal_notice notice_;
};

} // namespace weftio::dpdk
