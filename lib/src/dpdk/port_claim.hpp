// DPDK's ports by more than their numbers, which become others' when a port is removed.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace weftio::nic {

/// Of ports with one number.
struct removals {
    std::atomic<std::uint32_t> count{0};
    std::atomic<std::uint32_t> attending{0}; ///< threads that call the driver again and again, and look here in between
    std::atomic<std::uint32_t> unplugged{0}; ///< devices of theirs that were, or wait for the port to close
};

/// Hears that a DPDK port is removed, by whomever.
class removal_notice {
 public:
    void begin(std::uint16_t port) noexcept;
    /// Whether the port is no longer the one of begin(). Any thread; costs a load.
    bool came() const noexcept { return removals_ && removals_->count.load(std::memory_order_acquire) != seen_; }
    /// Whether the device has been unplugged, or waits for that until the port is closed. Any thread; costs a load.
    bool unplugged() const noexcept
    {
        return removals_ && removals_->unplugged.load(std::memory_order_acquire) != unplugged_seen_;
    }
    /// From now on a removal waits, half a second at most, until this leaves: it has seen that came(), and calls the
    /// driver no more. @pre begin(). One thread, as leave()
    void attend() noexcept;
    void leave() noexcept;

 private:
    removals* removals_ = nullptr; ///< never destroyed
    std::uint32_t seen_ = 0, unplugged_seen_ = 0;
    bool attends_ = false;
};

/// A DPDK port that belongs to a Weftio port, until either ends.
class port_claim {
 public:
    port_claim() = default;
    port_claim(const port_claim&) = delete;
    port_claim& operator=(const port_claim&) = delete;
    ~port_claim() { release(); }

    /// Returns whether no other claim has the port. Throws std::bad_alloc.
    bool take(std::uint16_t port);
    void release() noexcept;
    /// Whether somebody else has removed the port: its number and its name may be others' now. False after release().
    bool removed() const noexcept { return notice_.came(); }
    /// The device of that name is unplugged. Any thread; what ports are on it hear of it. Never blocks for long.
    static void tell_of_unplugged(const char* device) noexcept;

 private:
    std::uint16_t port_ = 0;
    std::string device_; ///< which may have other ports too
    bool taken_ = false;
    removal_notice notice_;
};

} // namespace weftio::nic
